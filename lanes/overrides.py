"""The override file of a recorded session: what a log cannot say of its own answers, written by hand.

Room: recorded_log comes in. A thrown stream, an answer that never ended and one that was lost cannot be derived from a
log; each such call needs exactly one entry, and no other call may have one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lanes.errors import CassetteError
from lanes.normalize import Json

OVERRIDE_NAME = "override.json"
VERSION = 1
FIELDS = frozenset({"version", "calls"})
KINDS = ("throw", "hang", "patch")
CALL_FIELDS = frozenset({"session", "call", *KINDS})
ALLOWED = {"failed": ("throw", "patch"), "unfinished": ("hang",)}

Kind = Literal["throw", "hang", "patch"]


class _Call(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def ending(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Override:
    """How one call ended.

    Shape: session is the number in the file's name, 0 without one; call counts the calls of that file from 1. A throw
    holds one `fault` or `http_error` of the mock provider's scripts, a patch the parts of a reply, a hang nothing.
    """

    session: int
    call: int
    kind: Kind
    parts: tuple[Json, ...] = ()


def read_overrides(data: bytes | None, where: str) -> tuple[Override, ...]:
    """Read the file; None is an absent one.

    Raises: CassetteError with code CASSETTE_OVERRIDE for anything that is not known.
    """
    if data is None:
        return ()
    try:
        document: Json = json.loads(data)
    except ValueError as error:
        raise _wrong(where, f"not valid JSON: {error}", "one object") from None
    fields = _object(document, FIELDS, FIELDS, where)
    if fields["version"] != VERSION or isinstance(fields["version"], bool):
        raise _wrong(f"{where}, version", f"is {fields['version']!r}", str(VERSION))
    calls = fields["calls"]
    if not isinstance(calls, list) or not calls:
        raise _wrong(f"{where}, calls", "holds no call", "at least one; without any the file may not exist")
    return tuple(_read_call(value, f"{where}, calls[{at}]") for at, value in enumerate(calls))


def check_needed(overrides: Sequence[Override], sessions: Sequence[Sequence[_Call]], where: str) -> None:
    """Check that exactly those calls have an entry whose end is not in the log.

    Raises: CassetteError with code CASSETTE_OVERRIDE naming the call.
    """
    entries: dict[tuple[int, int], Override] = {}
    for each in overrides:
        if (each.session, each.call) in entries:
            raise _wrong(where, f"call {each.call} of session {each.session} has two entries", "one")
        entries[each.session, each.call] = each
    for session, calls in enumerate(sessions):
        for number, call in enumerate(calls, start=1):
            entry = entries.pop((session, number), None)
            place = f"call {number} of session {session} ({call.name})"
            allowed = ALLOWED.get(call.ending, ())
            if entry is None and allowed:
                raise _wrong(where, f"{place} {_ended(call)} and has no entry", f"an entry with {' or '.join(allowed)}")
            if entry is not None and not allowed:
                raise _wrong(where, f"{place} has an entry, but its answer is in the log", "no entry for it")
            if entry is not None and entry.kind not in allowed:
                raise _wrong(where, f"{place} {_ended(call)}, its entry is a {entry.kind}", " or ".join(allowed))
    if entries:
        session, number = min(entries)
        raise _wrong(where, f"there is no call {number} of session {session}", "an entry for a call that is recorded")


def _ended(call: _Call) -> str:
    return "failed" if call.ending == "failed" else "did not come to its end"


def _read_call(value: Json, where: str) -> Override:
    fields = _object(value, CALL_FIELDS, frozenset({"session", "call"}), where)
    kinds = [kind for kind in KINDS if kind in fields]
    if len(kinds) != 1:
        raise _wrong(where, f"names {len(kinds)} kinds: {', '.join(kinds) or 'none'}", f"one of {', '.join(KINDS)}")
    numbers: dict[str, int] = {}
    for name, least in (("session", 0), ("call", 1)):
        number = fields[name]
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise _wrong(f"{where}, {name}", f"is {number!r}", f"a whole number from {least}")
        numbers[name] = number
    if kinds == ["hang"]:
        if fields["hang"] is not True:
            raise _wrong(f"{where}, hang", f"is {fields['hang']!r}", "true")
        return Override(numbers["session"], numbers["call"], "hang")
    if kinds == ["throw"]:
        thrown = _object(fields["throw"], frozenset({"fault", "http_error"}), frozenset(), f"{where}, throw")
        if len(thrown) != 1:
            raise _wrong(f"{where}, throw", f"holds {len(thrown)} fields", "one of fault, http_error")
        return Override(numbers["session"], numbers["call"], "throw", (dict(thrown),))
    parts = fields["patch"]
    if not isinstance(parts, list):
        raise _wrong(f"{where}, patch", "is no list", "the parts of a reply")
    return Override(numbers["session"], numbers["call"], "patch", tuple(parts))


def _object(value: Json, known: Iterable[str], wanted: frozenset[str], where: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise _wrong(where, "is no object", f"an object with {', '.join(sorted(known))}")
    unknown = sorted(set(value) - set(known))
    missing = sorted(wanted - set(value))
    if unknown or missing:
        what = f"unknown field {unknown[0]!r}" if unknown else f"field {missing[0]!r} is missing"
        raise _wrong(where, what, ", ".join(sorted(known)))
    return value


def _wrong(where: str, what: str, expected: str) -> CassetteError:
    return CassetteError(
        what, where=where, expected=expected, fix="mend the override file by hand", code="CASSETTE_OVERRIDE"
    )
