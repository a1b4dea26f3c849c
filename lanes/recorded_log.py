"""A recorded session as it stands in its folder: the logs of a root session and its children, origin and overrides.

Room: the player and the recorder may come in. It knows the product: it reads logs with the product's own reader.

Files: `session.jsonl` is the root session, `session.1.jsonl` and so on are the children in the order in which they were
created, `origin.json` says who spoke, `override.json` what the logs cannot say. Nothing else may stand there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError
from harness.log.events import Event, SessionHeader
from harness.log.load import scan
from lanes.errors import CassetteError
from lanes.interaction import canonical_json, digest_of
from lanes.normalize import Json
from lanes.overrides import OVERRIDE_NAME, Override, check_needed, read_overrides
from lanes.recorded_calls import RecordedCall, derive_calls

LOG_NAME = "session.jsonl"
ORIGIN_NAME = "origin.json"
ORIGIN_FIELDS = frozenset({"class", "story", "model", "recorder", "recorded_at", "note"})
_CHILD_NAME = re.compile(r"session\.([1-9][0-9]*)\.jsonl")


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session of a recording: its log, and the calls that are its own; those a fork inherited are its parent's."""

    name: str
    header: SessionHeader
    events: tuple[Event, ...]
    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A checked recording.

    Shape: sessions begins with the root, its children follow as they were created; digest covers the bytes of every
    file; origin says who spoke.
    """

    name: str
    digest: str
    sessions: tuple[SessionRecord, ...]
    overrides: tuple[Override, ...]
    origin: Mapping[str, Json]

    def override(self, session: int, call: int) -> Override | None:
        """The entry for a call, if it has one; calls count from 1."""
        return next((each for each in self.overrides if (each.session, each.call) == (session, call)), None)


def child_name(number: int) -> str:
    """The file name of a child's log; children count from 1."""
    return f"session.{number}.jsonl"


def load_recorded_session(folder: Path) -> RecordedSession:
    """Read and check a recording.

    Raises: CassetteError with the file and what is wrong; nothing is ever played in part.
    """
    name = f"cassettes/session-logs/{folder.name}"
    names = _names(folder, name)
    contents = {each: (folder / each).read_bytes() for each in names}
    sessions = tuple(_read_session(contents[each], f"{name}/{each}") for each in names if each.startswith("session."))
    _check_family(sessions, name)
    where = f"{name}/{OVERRIDE_NAME}"
    overrides = read_overrides(contents.get(OVERRIDE_NAME), where)
    check_needed(overrides, [session.calls for session in sessions], where)
    return RecordedSession(
        name=name,
        digest=digest_of(canonical_json({each: digest_of(contents[each]) for each in names})),
        sessions=sessions,
        overrides=overrides,
        origin=_origin(contents[ORIGIN_NAME], f"{name}/{ORIGIN_NAME}"),
    )


def _names(folder: Path, name: str) -> list[str]:
    """The files of a recording: root and children in order, then the rest."""
    try:
        found = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise _missing(name, error) from None
    children = sorted(int(match[1]) for each in found if (match := _CHILD_NAME.fullmatch(each)))
    if children != list(range(1, len(children) + 1)):
        gap = next(number for number, held in enumerate([*children, 0], start=1) if number != held)
        raise _damaged(name, f"{child_name(gap)} is missing, a later child is there", "children without a gap")
    wanted = [LOG_NAME, *map(child_name, children), ORIGIN_NAME]
    for each in wanted:
        if each not in found:
            raise _missing(f"{name}/{each}", FileNotFoundError(2, "No such file or directory"))
    if odd := sorted(found - {*wanted, OVERRIDE_NAME}):
        raise _damaged(f"{name}/{odd[0]}", "is no file of a recording", "session logs, origin and overrides alone")
    return [*wanted, *([OVERRIDE_NAME] if OVERRIDE_NAME in found else [])]


def _read_session(data: bytes, where: str) -> SessionRecord:
    try:
        found = scan(data, clock=lambda: 0)
    except HarnessError as error:
        raise _damaged(where, error.what) from None
    if found.damage is not None or found.lacks_newline:
        raise _damaged(where, found.damage or "the last line has no newline")
    header, events = found.log.header, tuple(found.log)
    begin = header.seed_length or 0
    if begin > len(events):
        raise _damaged(where, f"it inherited {begin} events and holds {len(events)}")
    calls = derive_calls(events, begin, where, data)
    if not calls:
        raise _damaged(where, "no model call is recorded")
    return SessionRecord(where, header, events, calls)


def _check_family(sessions: Sequence[SessionRecord], name: str) -> None:
    """One root, every other one a descendant of a session before it, and in the order in which they were created."""
    known: set[str] = set()
    for at, session in enumerate(sessions):
        header = session.header
        if header.id in known:
            raise _damaged(session.name, f"session {header.id!r} stands twice", code="CASSETTE_DUPLICATE_ID")
        if at and header.parent_session not in known:
            raise _damaged(session.name, f"its parent {header.parent_session!r} is no session before it")
        if not at and header.parent_session is not None:
            raise _damaged(session.name, "the first session is somebody's child", f"the root of {name}")
        if at > 1 and header.created_at < sessions[at - 1].header.created_at:
            raise _damaged(session.name, "it was created before the one numbered before it", "the order of creation")
        known.add(header.id)


def _origin(data: bytes, where: str) -> Mapping[str, Json]:
    try:
        value: Json = json.loads(data)
    except ValueError as error:
        raise _damaged(where, f"not valid JSON: {error}", code="CASSETTE_UNDECODABLE") from None
    if not isinstance(value, dict) or set(value) != ORIGIN_FIELDS:
        expected = f"an object with {', '.join(sorted(ORIGIN_FIELDS))}"
        raise _damaged(where, "fields are not the known ones", expected, code="CASSETTE_FIELD")
    if value["class"] != "scripted":
        raise _damaged(where, f"class is {value['class']!r}", "'scripted': a session log carries no live proof")
    return value


def _missing(where: str, error: OSError) -> CassetteError:
    return CassetteError(
        f"cannot be read: {error.strerror or error}",
        where=where,
        expected="a recording",
        fix="restore the file, or record the log again",
        code="CASSETTE_MISSING",
    )


def _damaged(
    where: str, what: str, expected: str = "the recording as it was committed", code: str = "CASSETTE_DAMAGED"
) -> CassetteError:
    return CassetteError(what, where=where, expected=expected, fix="restore the file", code=code)
