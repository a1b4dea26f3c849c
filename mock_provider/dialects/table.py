"""The table of dialects: reader, renderer and error form of each, loaded when the first request in it comes.

Room: pure; the routes, the engine and the wrapped command come in. A new dialect is a new room of its name here, and a
new place.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from mock_provider.dialects.codec import Dialect
from mock_provider.dialects.places import PLACES, Base, Place


class _Dialects(Mapping[str, Dialect]):
    """Each by its name. A play speaks one or two, and all of them would be a fifth of what a server loads."""

    def __init__(self) -> None:
        self._loaded: dict[str, Dialect] = {}

    def __getitem__(self, name: str) -> Dialect:
        found = self._loaded.get(name)
        if found is None:
            if name not in PLACE_OF:
                raise KeyError(name)
            found = self._loaded[name] = importlib.import_module(f"mock_provider.dialects.{name}").DIALECT
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(PLACE_OF)

    def __len__(self) -> int:
        return len(PLACE_OF)

    def __contains__(self, name: object) -> bool:
        return name in PLACE_OF


PLACE_OF: Mapping[str, Place] = {place.name: place for place in PLACES}
DIALECTS: Mapping[str, Dialect] = _Dialects()
BASES: tuple[Base, ...] = tuple(base for place in PLACES for base in place.bases)
BASE_PATHS: Mapping[str, str] = {base.name: base.path for base in BASES}
