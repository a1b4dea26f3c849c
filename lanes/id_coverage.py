"""Which edges of the specifications have a test that carries their id.

Room: I/O; reads the list of ids and the source of the suites, and imports no test. The command line comes in.
"""

from __future__ import annotations

import ast
import difflib
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanes.errors import UsageError
from lanes.policy import LANES
from lanes.spec_ids import spec_ids

IDS_FILE = Path("lanes") / "spec_ids.toml"
SCHEMA = "spec-ids/1"
_RANGE = re.compile(r"([A-Z]{1,3})-([0-9]{2})\.\.\1-([0-9]{2})")
_ID = re.compile(r"[A-Z]{1,3}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class IdGroup:
    """The ids of one specification. Shape: missing are those no test's name begins with, in the order of the list."""

    name: str
    ids: tuple[str, ...]
    missing: tuple[str, ...]


def id_coverage(root: Path, names: Sequence[str] = ()) -> tuple[IdGroup, ...]:
    """Compare the listed ids with the tests of every lane; names choose groups, none means all.

    Raises: UsageError for a list that cannot be read, a malformed id, a duplicate, or an unknown group.
    """
    groups = _load(root / IDS_FILE)
    for name in names:
        if name not in groups:
            near = difflib.get_close_matches(name, groups, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"no group of ids '{name}'{hint}", where=str(IDS_FILE), expected=", ".join(groups))
    tested = frozenset(_tested(root))
    return tuple(
        IdGroup(name, ids, tuple(each for each in ids if each not in tested))
        for name, ids in groups.items()
        if not names or name in names
    )


def _load(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(IDS_FILE), expected=f"schema {SCHEMA}") from error
    if document.pop("schema", None) != SCHEMA:
        raise UsageError("is of another form", where=f"{IDS_FILE}, schema", expected=repr(SCHEMA))
    groups: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for name, subjects in document.items():
        where = f"{IDS_FILE}, {name}"
        if not isinstance(subjects, dict):
            raise UsageError("is no table", where=where, expected='subject = ["L-01..L-10"]')
        ids: list[str] = []
        for subject, entries in subjects.items():
            for each in _expand(entries, f"{where}.{subject}"):
                if each in seen:
                    raise UsageError(
                        f"{each} is listed twice", where=f"{where}.{subject}", expected=f"once, {seen[each]}"
                    )
                seen[each] = f"in {name}.{subject}"
                ids.append(each)
        groups[name] = tuple(ids)
    return groups


def _expand(entries: object, where: str) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else [entries]:
        text = entry if isinstance(entry, str) else repr(entry)
        if match := _RANGE.fullmatch(text):
            yield from (f"{match[1]}-{number:02}" for number in range(int(match[2]), int(match[3]) + 1))
        elif _ID.fullmatch(text):
            yield text
        else:
            raise UsageError(f"{text} is no id", where=where, expected='"L-01" or a range, "L-01..L-10"')


def _tested(root: Path) -> Iterator[str]:
    for lane in LANES:
        for path in sorted((root / "lanes" / lane).rglob("test_*.py")):
            for node in ast.walk(_parse(path, root)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from spec_ids(node.name)


def _parse(path: Path, root: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot be read: {error}", where=path.relative_to(root).as_posix()) from None
