"""Values that are made for every request: as unchangeable as a frozen dataclass, to the type checker alone.

Room: pure; anyone may come in. At run time a frozen dataclass takes six times as long to make, field by field; and to
define one takes five times as long, which counts where a process starts for one answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")
_LATER = ("__eq__", "__hash__", "__repr__")


@dataclass_transform(frozen_default=True, kw_only_default=False, field_specifiers=(dataclasses.field,))
def value(cls: type[Class]) -> type[Class]:
    """Make a class a value: compared and hashed by its fields, which nobody may assign to.

    Limits: how values are compared, hashed and shown is written out when the first of a class asks for it, for most
    classes never do.
    """
    made = dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)
    for name in _LATER:
        setattr(made, name, _written_later(made, name))
    return made


def _written_later(cls: type, name: str) -> Callable[..., object]:
    def first(*given: object) -> object:
        _write_out(cls)
        return getattr(cls, name)(*given)

    return first


def _write_out(cls: type) -> None:
    """Put in place what a dataclass of the same fields would have."""
    fields = [
        (each.name, object, dataclasses.field(compare=each.compare, hash=each.hash, repr=each.repr))
        for each in dataclasses.fields(cls)
    ]
    twin = dataclasses.make_dataclass(cls.__name__, fields, unsafe_hash=True, init=False)
    for name in _LATER:
        setattr(cls, name, twin.__dict__[name])
