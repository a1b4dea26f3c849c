"""Bytes of a log file to the log they hold, and what is wrong with them.

Room: pure; the store reads the bytes and acts on what is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from harness.errors import InvalidEventError, LogDamagedError
from harness.log.chunk_rows import is_row, pack, unpack
from harness.log.events import Event, SessionHeader
from harness.log.json_form import encode_line, event_from_json, header_from_json, header_to_json, parse_line
from harness.log.model_form import JsonDict
from harness.log.session_log import SessionLog
from harness.log.usual_form import read_usual

SALVAGE = "the file stays as it is; harness sessions salvage ID copies what stands before the damage into a new session"


@dataclass(frozen=True, slots=True)
class Scan:
    """What a file holds.

    Shape: log is the good prefix, good_size the bytes it takes in the file, lacks_newline whether the last record of
    it still wants its newline; damage says what was passed over, None when nothing was.
    """

    log: SessionLog
    good_size: int
    lacks_newline: bool
    damage: str | None


def encode_header(header: SessionHeader) -> bytes:
    """The first line of a log."""
    return encode_line(header_to_json(header))


def encode_events(events: Sequence[Event]) -> bytes:
    """The lines that hold these events."""
    return b"".join(encode_line(row) for row in pack(events))


def read_header(line: bytes) -> SessionHeader:
    """The header on a first line.

    Raises: LogUnsupportedError for another version, LogDamagedError for anything that is no header.
    """
    try:
        value = parse_line(line)
    except InvalidEventError as error:
        raise LogDamagedError(f"the first line is not a session header: {error.what}") from error
    return header_from_json(value)


def scan(data: bytes, *, clock: Callable[[], int], salvage: bool = False) -> Scan:
    """Read a whole file.

    The first complete line that does not read, or does not follow, ends the log, and so does a last fragment without
    a newline unless it is a whole record. With salvage the good prefix is taken whatever stands behind it, and a seed
    length beyond it comes down to it: that much of the seed is there, and what follows is the session's own.
    Raises: LogDamagedError when a turn end stands behind the first bad line, or the log ends inside its seed: that is
    committed history, no torn tail, for a fork appears with its whole seed or not at all. LogUnsupportedError for
    another version, or an unknown event that may not be skipped.
    """
    found = _scan(data, clock, salvage=salvage)
    inherited, present = found.log.header.seed_length or 0, len(found.log)
    if inherited <= present:
        return found
    if not salvage:
        raise LogDamagedError(
            f"line 1: header.seedLength is {inherited}, and {present} events read"
            + ("" if found.damage is None else f"; {found.damage}"),
            expected=f"the {inherited} events the session inherited",
            fix=SALVAGE,
        )
    log = SessionLog(replace(found.log.header, seed_length=present), clock=clock)
    log.adopt(found.log)
    short = f"{inherited - present} of {inherited} inherited events are missing"
    return replace(found, log=log, damage=short if found.damage is None else f"{found.damage}; {short}")


def _scan(data: bytes, clock: Callable[[], int], *, salvage: bool) -> Scan:
    lines = data.split(b"\n")
    tail = lines.pop()  # what stands behind the last newline: nothing, or a fragment
    if not lines:
        lines, tail, headless_newline = [tail], b"", True
    else:
        headless_newline = False
    log = SessionLog(read_header(lines[0]), clock=clock)
    size = len(lines[0]) + (0 if headless_newline else 1)
    seq = 0
    for number, line in enumerate(islice(lines, 1, None), start=2):
        try:
            seq = _take_line(log, line, seq)
        except InvalidEventError as error:
            reason = f"line {number} does not read ({error.where}: {error.what})"
            if not salvage:
                _check_uncommitted([*lines[number - 1 :], tail], number, reason)
            dropped = len(data) - size
            return Scan(log, size, headless_newline, f"{reason}; {dropped} bytes from there on are not part of the log")
        size += len(line) + 1
    if not tail:
        return Scan(log, size, headless_newline, None)
    try:
        _take_line(log, tail, seq)
    except InvalidEventError:
        return Scan(log, size, False, f"the last record is torn; its {len(tail)} bytes are not part of the log")
    return Scan(log, size + len(tail), True, None)


def _take_line(log: SessionLog, line: bytes, seq: int) -> int:
    """Put what a line holds at the end of a log of that length, and give its new length."""
    value = parse_line(line)
    event = read_usual(value, seq)
    if event is not None:
        log.restore_usual(event)
        return seq + 1
    if is_row(value):
        row = unpack(value)
        log.restore_row(row)
        return seq + len(row)
    log.restore(event_from_json(value))
    return seq + 1


def _check_uncommitted(lines: Sequence[bytes], number: int, reason: str) -> None:
    """Refuse when any of the lines from the bad one on is a turn end."""
    for at, line in enumerate(lines):
        if b"turn/end" not in line.replace(b"\\/", b"/"):
            continue
        try:
            value: JsonDict = parse_line(line)
        except InvalidEventError:
            continue
        if value.get("type") == "turn/end":
            raise LogDamagedError(
                f"{reason}, and line {number + at} ends a turn: history that was committed is damaged",
                expected="damage at the very end only",
                fix=SALVAGE,
            )
