"""The text of a script as a tree in which every value still knows its line and column.

Room: pure; only the script rooms come in. Both readers, script_yaml and script_json, end in the same tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mock_provider.errors import Problem, ScriptError
from mock_provider.json_values import MAX_DEPTH, Json
from mock_provider.values import value

TOO_DEEP = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"


@value
class Mark:
    """Where a value stands. Units: line and column from 1; 0 when there is no text."""

    line: int
    column: int


NO_MARK = Mark(0, 0)


@value
class Scalar:
    """A text, number, truth value or null."""

    value: bool | int | float | str | None
    mark: Mark


@value
class Items:
    """A list."""

    items: tuple[Node, ...]
    mark: Mark


@value
class Entry:
    """One key of a mapping with its value."""

    key: str
    mark: Mark
    value: Node


@value
class Entries:
    """A mapping, duplicates and order kept."""

    entries: tuple[Entry, ...]
    mark: Mark


Node: TypeAlias = "Scalar | Items | Entries"


def plain(node: Node) -> Json:
    """Drop the places: the value as JSON; of duplicate keys the last one stays."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {entry.key: plain(entry.value) for entry in node.entries}


def from_plain(value: object, name: str, field: str = "") -> Node:
    """Make the same tree from a value built in Python.

    Raises: ScriptError for a value that JSON does not have.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return Scalar(value, NO_MARK)
    if field.count(".") + field.count("[") > MAX_DEPTH:
        raise ScriptError([Problem(name, 0, 0, "", TOO_DEEP, "SCRIPT_SYNTAX")])
    if isinstance(value, Mapping):
        entries = tuple(
            Entry(str(key), NO_MARK, from_plain(item, name, f"{field}.{key}" if field else str(key)))
            for key, item in value.items()
        )
        return Entries(entries, NO_MARK)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return Items(tuple(from_plain(item, name, f"{field}[{at}]") for at, item in enumerate(value)), NO_MARK)
    what = f"a {type(value).__name__} is not a JSON value"
    raise ScriptError([Problem(name, 0, 0, field, what, "SCRIPT_TYPE", "text, number, truth value, list or mapping")])
