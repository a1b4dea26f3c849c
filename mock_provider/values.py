"""Values that are made for every request: as unchangeable as a frozen dataclass, to the type checker alone.

Room: pure; anyone may come in. At run time a frozen dataclass takes six times as long to make, field by field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, kw_only_default=False)
def value(cls: type[Class]) -> type[Class]:
    """Make a class a value: compared and hashed by its fields, which nobody may assign to."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
