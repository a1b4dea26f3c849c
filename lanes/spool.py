"""The spool: the folder where the processes of one run leave lines for each other.

Room: the plugin and the runner read here; the guard, channels and children append. One run has one spool.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanes.errors import UsageError
from lanes.guard import CANARIES_FILE, REFUSALS_FILE, UNSEEN_FILE
from lanes.record import Json
from lanes.whole_file import write_whole

COLLECTED_FILE = "collected.json"
SUBJECT_FILE = "subject.json"
FACTS_FILE = "facts.json"
SUMMARY_FILE = "summary.json"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One try that the guard refused."""

    item: str | None
    module: str | None
    what: str
    code: str
    pid: int


@dataclass(frozen=True, slots=True)
class Canary:
    """One outcome of the canaries of one process, and the file that it has its loop from, if it has loaded one."""

    pid: int
    when: str
    outcome: str
    loop: str | None = None


class _Lines:
    """The complete lines that were appended to a file since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> tuple[dict[str, Any], ...]:
        """Read on from where the last look ended; the guard alone writes here, and it writes what it is read as."""
        try:
            size = os.stat(self._path).st_size  # noqa: PTH116 - asked twice per phase of every test
        except FileNotFoundError:
            return ()
        if size <= self._offset:
            return ()
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        complete = data.rfind(b"\n") + 1  # a line still being written is read next time
        self._offset += complete
        return tuple(json.loads(line) for line in data[:complete].splitlines())


class RefusalReader:
    """Read the refusals that came since the last look, whoever they belong to."""

    def __init__(self, spool: Path) -> None:
        self._lines = _Lines(spool / REFUSALS_FILE)
        self._by_item: dict[str | None, list[Refusal]] = {}

    def of_item(self, item: str | None) -> tuple[Refusal, ...]:
        """Return every refusal of an item so far, oldest first."""
        self._read()
        return tuple(self._by_item.get(item, ()))

    def all(self) -> tuple[Refusal, ...]:
        """Return every refusal so far."""
        self._read()
        return tuple(refusal for refusals in self._by_item.values() for refusal in refusals)

    def _read(self) -> None:
        for row in self._lines.read():
            refusal = Refusal(row["item"], row["module"], row["what"], row["code"], row["pid"])
            self._by_item.setdefault(refusal.item, []).append(refusal)


class UnseenReader:
    """Read what items started that the guard of a process cannot look into."""

    def __init__(self, spool: Path) -> None:
        self._lines = _Lines(spool / UNSEEN_FILE)
        self._by_item: dict[str | None, set[str]] = {}

    def of_item(self, item: str | None) -> tuple[str, ...]:
        """Return what an item has started so far, each kind once, in a stable order."""
        for row in self._lines.read():
            self._by_item.setdefault(row["item"], set()).add(row["what"])
        return tuple(sorted(self._by_item.get(item, ())))


def read_canaries(spool: Path) -> tuple[Canary, ...]:
    """Return the canary lines of every process of the run."""
    path = spool / CANARIES_FILE
    if not path.exists():
        return ()
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    return tuple(Canary(row["pid"], row["when"], row["outcome"], row["loop"]) for row in rows)


def write_document(path: Path, document: Mapping[str, Json]) -> None:
    """Write a JSON object so that a reader sees all of it or nothing."""
    write_whole(path, json.dumps(document, sort_keys=True).encode("utf-8"))


def read_document(path: Path) -> dict[str, Json] | None:
    """Return the JSON object of a file, None when nobody wrote it."""
    if not path.exists():
        return None
    document = json.loads(path.read_text("utf-8"))
    return document if isinstance(document, dict) else None


def read_specification(arguments: Sequence[str], where: str, fields: Sequence[str]) -> dict[str, Any]:
    """What a child process of a lane is to do, from the one file that it was given.

    Shape: fields names all that is in it, sorted; each is handed to the room that checks it.
    Raises: UsageError when there is not exactly one file, or it holds other fields.
    """
    if len(arguments) != 1:
        raise UsageError("one specification is wanted", where=where)
    document = json.loads(Path(arguments[0]).read_text("utf-8"))
    if not isinstance(document, dict) or sorted(document) != sorted(fields):
        raise UsageError("the specification has other fields", where=where, expected=", ".join(fields))
    return document
