"""Values that are made by the hundred thousand: a quicker way to fill a frozen dataclass.

Room: pure; messages, chunks and events come in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

Record = TypeVar("Record")


def made_often(cls: type[Record]) -> type[Record]:
    """Give a frozen dataclass with slots an `__init__` that fills its slots without asking whether it may.

    Shape: the same parameters and defaults, in the same order; nothing else of the class changes. What dataclass writes
    goes through object.__setattr__ by name for each field and takes twice as long; loading a log makes millions.
    Raises: TypeError for a field with a default factory, which no such class needs.
    """
    scope: dict[str, Any] = {}  # Any: the setters and defaults by the names the source below uses
    parameters: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type] # only dataclasses come here
        if field.default_factory is not dataclasses.MISSING:
            raise TypeError(f"{cls.__name__}.{field.name} has a default factory")
        scope[f"set_{field.name}"] = cls.__dict__[field.name].__set__
        lines.append(f"    set_{field.name}(self, {field.name})")
        if field.default is dataclasses.MISSING:
            parameters.append(field.name)
        else:
            scope[f"default_{field.name}"] = field.default
            parameters.append(f"{field.name}=default_{field.name}")
    source = f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(lines or ["    pass"])
    exec(source, scope)  # noqa: S102 - made of the class's own field names, the way dataclass makes its methods
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = dict(cls.__init__.__annotations__)
    type.__setattr__(cls, "__init__", made)
    return cls
