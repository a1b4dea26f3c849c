"""The requests seen, redacted before they are kept, with helpers to look at them.

Room: reads and writes one file when asked; the engine writes, tests read.
"""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


class Journal:
    """All entries, oldest first, bounded.

    Shape: has_file tells whether finished entries are written somewhere; failure says why the file takes no more.
    Limits: MAX_ENTRIES entries and MAX_BODY_BYTES of bodies; `dropped` counts entries that had to go.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._entries: deque[Entry] = deque()
        self._with_body: deque[Entry] = deque()
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
        return tuple(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: int) -> Entry:
        return self._entries[at]

    def numbered(self, number: int) -> Entry | None:
        """The entry of one request, if it is still there; they are numbered one after the other."""
        at = number - self._entries[0].number if self._entries else -1
        return self._entries[at] if 0 <= at < len(self._entries) else None

    def of(self, conversation: str) -> tuple[Entry, ...]:
        """The entries of one conversation."""
        return tuple(entry for entry in self._entries if entry.conversation == conversation)

    def bodies(self) -> tuple[Json, ...]:
        """The request bodies in order of arrival."""
        return tuple(entry.body for entry in self._entries)

    def text(self) -> str:
        """All entries, one line each, for failure messages."""
        lines = [str(entry) for entry in self._entries]
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
        self._entries.append(entry)
        while self._waiting:
            self._waiting.pop().open()
        if entry.kept_body is not None:
            self._with_body.append(entry)
            self._bodies.add(entry.kept_body)
        while self._bodies.size_bytes > MAX_BODY_BYTES and len(self._with_body) > 1:
            self._drop_body(self._with_body.popleft())
        if len(self._entries) > MAX_ENTRIES:
            oldest = self._entries.popleft()
            self.dropped += 1
            if self._with_body and self._with_body[0] is oldest:
                self._drop_body(self._with_body.popleft())

    def _drop_body(self, entry: Entry) -> None:
        self._bodies.take(entry.kept_body or b"")
        entry.kept_body = None

    def close_entry(self, entry: Entry) -> None:
        """Write a finished entry to the file, if there is one."""
        if self._path is None or self.failure:
            return
        line = json.dumps(entry.to_json(), separators=(",", ":")) + "\n"
        try:
            with self._path.open("ab", buffering=0) as file:
                end = file.tell()
                if file.write(line.encode("ascii")) != len(line):
                    file.truncate(end)  # half a line is none
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:  # the client gets its answer all the same; the verdict says what is missing
            why = error.strerror or error
            self.failure = f"{self._path}: the journal ends before request {entry.number}: {why} [JOURNAL]"

    def clear(self) -> None:
        """Forget everything kept; a file keeps what it has."""
        self._entries.clear()
        self._with_body.clear()
        self._bodies.clear()
        self.dropped = 0
