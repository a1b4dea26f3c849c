"""The requests seen, redacted before they are kept, with helpers to look at them.

Room: reads and writes one file when asked; the engine writes, tests read.
"""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from mock_provider.errors import UsageError
from mock_provider.filled import Filled
from mock_provider.filled_stream import FilledStream
from mock_provider.gates import Latch
from mock_provider.json_values import Json, JsonObject
from mock_provider.spelling import KeptBody, Shelf, Spelling

MAX_ENTRIES = 10_000
MAX_BODY_BYTES = 12 << 20  # of all bodies kept together; older ones are dropped first, their entries stay


@dataclass(slots=True)
class Entry:
    """One request and what became of it.

    Shape: number counts arrivals from 1. problem says why it was refused, rule is the stable name of that.
    end is "open" while the answer is under way, then "complete", "client gone at piece N" or "fault KIND".
    kept_body is a JSON document without secrets, as it was spelled; kept_headers may be shared between entries,
    length_bytes is what this one said in content-length. digest is that of the body that was sent; of a filled answer
    it is worked out when somebody asks for it.
    """

    number: int
    method: str
    path: str
    kept_headers: Mapping[str, str]
    dialect: str = ""
    conversation: str | None = None
    client: str = ""
    step: int | None = None
    matched: bool = False
    rule: str | None = None
    problem: str | None = None
    status: int | None = None
    pieces_sent: int = 0
    gates_passed: tuple[str, ...] = ()
    extra_fields: tuple[str, ...] = ()
    end: str = "open"
    digest: bytes = b""
    kept_body: KeptBody = None
    length_bytes: int | None = None
    filled: Filled | FilledStream | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers, redacted."""
        headers = dict(self.kept_headers)
        if self.length_bytes is not None:
            headers["content-length"] = str(self.length_bytes)
        return headers

    def spelled_body(self) -> bytes | None:
        """The body as bytes, redacted; None as body."""
        kept = self.kept_body
        return kept.data() if isinstance(kept, Spelling) else kept

    @property
    def body(self) -> Json:
        """The request body, redacted; None when there was none, it was not JSON, or it was dropped for space."""
        data = self.spelled_body()
        if data is None:
            return None
        try:
            value: Json = json.loads(data)
        except ValueError:
            return None
        return value

    @property
    def reply_digest(self) -> str:
        """SHA-256 of the body bytes that were really sent, in hexadecimal; empty while the answer is under way."""
        if self.filled is not None and self.end == "complete" and not self.digest:
            self.digest = self.filled.digest()
        return self.digest.hex()

    def to_json(self) -> JsonObject:
        """The entry as one JSON object, keys in fixed order."""
        gates: list[Json] = list(self.gates_passed)
        extra: list[Json] = list(self.extra_fields)
        headers: JsonObject = {**self.headers}
        return {
            "number": self.number,
            "conversation": self.conversation,
            "client": self.client,
            "step": self.step,
            "dialect": self.dialect,
            "method": self.method,
            "path": self.path,
            "headers": headers,
            "body": self.body,
            "extra_fields": extra,
            "matched": self.matched,
            "rule": self.rule,
            "problem": self.problem,
            "status": self.status,
            "pieces_sent": self.pieces_sent,
            "gates_passed": gates,
            "end": self.end,
            "reply_digest": self.reply_digest,
        }

    def __str__(self) -> str:
        who = f" {self.conversation or 'single'}{f'@{self.client}' if self.client else ''}" if self.matched else ""
        step = f" step {self.step}" if self.step else ""
        told = f": {self.problem.splitlines()[0]}" if self.problem else ""
        return f"#{self.number} {self.method} {self.path} → {self.status or '-'}{who}{step}, {self.end}{told}"


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """What entries of answers that stand have in common.

    Shape: first is one of them without what a Row says; fill gives the answer of a use, with a count of the input;
    tells_length says that the requests have a content-length.
    """

    first: Entry
    fill: Callable[[int, int], Filled]
    tells_length: bool


# An entry that nobody has looked at yet: what it has in common with others, its number, the use and the count of the
# input that its answer was filled for, the body and its length. Ten thousand of these are kept, and made and freed with
# every request; an entry is ten times as much.
Row: TypeAlias = "tuple[Alike, int, int, int, KeptBody, int]"


def _read_row(row: Row) -> Entry:
    alike, number, use, counted, kept_body, length_bytes = row
    return replace(
        alike.first,
        number=number,
        kept_body=kept_body,
        length_bytes=length_bytes if alike.tells_length else None,
        filled=alike.fill(use, counted),
    )


def _number_of(item: Entry | Row) -> int:
    return item[1] if isinstance(item, tuple) else item.number


class Journal:
    """All entries, oldest first, bounded.

    Shape: has_file tells whether finished entries are written somewhere; failure says why the file takes no more.
    One thread adds, any may read.
    Limits: MAX_ENTRIES entries and MAX_BODY_BYTES of bodies; `dropped` counts entries that had to go.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._entries: deque[Entry | Row] = deque()
        self._with_body: deque[Entry | Row] = deque()
        self._looked_at: dict[int, Entry] = {}  # rows that somebody has read, by their numbers
        self._bodies = Shelf()
        self._path = path
        self.has_file = path is not None
        self.dropped = 0
        self.failure = ""
        self._waiting: list[Latch] = []
        if path is not None:
            try:  # a pipe that nobody reads must not hold us up
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o600))
            except OSError as error:
                what = f"the journal cannot be written: {error.strerror or error}"
                raise UsageError(what, where=str(path), fix="check the path") from None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything kept."""
        return tuple([self._entry(item) for item in tuple(self._entries)])

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: int) -> Entry:
        return self._entry(self._entries[at])

    def _entry(self, item: Entry | Row) -> Entry:
        if not isinstance(item, tuple):
            return item
        number = item[1]
        return self._looked_at.get(number) or self._looked_at.setdefault(number, _read_row(item))

    def numbered(self, number: int) -> Entry | None:
        """The entry of one request, if it is still there; they are numbered one after the other."""
        at = number - _number_of(self._entries[0]) if self._entries else -1
        return self[at] if 0 <= at < len(self._entries) else None

    def of(self, conversation: str) -> tuple[Entry, ...]:
        """The entries of one conversation."""
        return tuple(entry for entry in self.entries if entry.conversation == conversation)

    def bodies(self) -> tuple[Json, ...]:
        """The request bodies in order of arrival."""
        return tuple(entry.body for entry in self.entries)

    def text(self) -> str:
        """All entries, one line each, for failure messages."""
        lines = [str(entry) for entry in self.entries]
        if self.dropped:
            lines.insert(0, f"({self.dropped} older requests were dropped)")
        return "\n".join(lines) or "(no request arrived)"

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the next entry."""
        return bool(self._waiting)

    def news(self) -> Latch:
        """Something that opens with the next entry."""
        latch = Latch()
        self._waiting.append(latch)
        return latch

    def add(self, entry: Entry) -> None:
        """Keep a new entry."""
        self._add(entry, entry.kept_body)

    def add_row(self, row: Row) -> None:
        """Keep a new entry that is like others."""
        self._add(row, row[4])

    def _add(self, item: Entry | Row, kept_body: KeptBody) -> None:
        entries = self._entries
        entries.append(item)
        while self._waiting:
            self._waiting.pop().open()
        if kept_body is not None:
            self._with_body.append(item)
            self._bodies.add(kept_body)
            while self._bodies.size_bytes > MAX_BODY_BYTES and len(self._with_body) > 1:
                self._drop_body(self._with_body.popleft())
        if len(entries) > MAX_ENTRIES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        number = _number_of(self._entries.popleft())
        self.dropped += 1
        if self._with_body and _number_of(self._with_body[0]) == number:
            oldest = self._with_body.popleft()
            self._bodies.take((oldest[4] if isinstance(oldest, tuple) else oldest.kept_body) or b"")
        if self._looked_at:
            self._looked_at.pop(number, None)

    def _drop_body(self, item: Entry | Row) -> None:
        if isinstance(item, tuple):
            alike, number, use, counted, kept_body, length_bytes = item
            self._entries[number - _number_of(self._entries[0])] = alike, number, use, counted, None, length_bytes
            entry = self._looked_at.get(number)
        else:
            entry, kept_body = item, item.kept_body
        self._bodies.take(kept_body or b"")
        if entry is not None:
            entry.kept_body = None

    def close_entry(self, entry: Entry) -> None:
        """Write a finished entry to the file, if there is one."""
        if self._path is None or self.failure:
            return
        line = json.dumps(entry.to_json(), separators=(",", ":")) + "\n"
        try:
            with self._path.open("ab", buffering=0) as file:
                end = file.tell() if file.seekable() else None  # a pipe has no place to go back to
                if file.write(line.encode("ascii")) != len(line):
                    if end is not None:
                        file.truncate(end)  # half a line is none
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:  # the client gets its answer all the same; the verdict says what is missing
            why = error.strerror or error
            self.failure = f"{self._path}: the journal ends before request {entry.number}: {why} [JOURNAL]"

    def clear(self) -> None:
        """Forget everything kept; a file keeps what it has."""
        self._entries.clear()
        self._with_body.clear()
        self._looked_at.clear()
        self._bodies.clear()
        self.dropped = 0
