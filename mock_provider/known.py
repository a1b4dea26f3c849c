"""Parts of requests that arrived before: an agent sends its tools and its history again with every request.

Room: pure; the reader of bodies makes these values, the dialects ask what was found out about them already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from mock_provider.json_values import Json, JsonObject

Finding = TypeVar("Finding")


class KnownObject(dict[str, Json]):
    """A JSON object that arrived before, byte for byte, and is now shared between requests.

    Shape: a dict like any other that nobody may change; findings holds what `once` found out, by the asking function.
    """

    __slots__ = ("findings",)

    def __init__(self, content: JsonObject) -> None:
        super().__init__(content)
        self.findings: dict[object, object] = {}


def once(examine: Callable[[JsonObject], Finding], value: JsonObject) -> Finding:
    """What a function says about an object, asked only once for one that arrives again and again.

    Limits: only for functions whose answer depends on nothing but the object, and is not changed afterwards.
    """
    if not isinstance(value, KnownObject):
        return examine(value)
    findings = value.findings
    if examine in findings:
        return cast("Finding", findings[examine])
    found = findings[examine] = examine(value)
    return found
