"""Looking after stored sessions: `harness sessions list`, `show` and `salvage`.

Room: the command line comes in. Composes no presets; model choice belongs to the host, and no agent is made here.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.capabilities.chance import fresh_ids, wall_clock
from harness.errors import UsageError
from harness.log.events import SessionHeader
from harness.log.fold import highest_turn, turn_end_reason
from harness.log.inbox import fold_inbox
from harness.log.json_form import encode_line, event_to_json
from harness.log.model_form import JsonDict, with_optional
from harness.log.store import LoadedLog, SessionStore
from harness.model.messages import Message, SessionId, TextBlock, ToolCallBlock, ToolResultBlock, text_of
from harness.surfaces.progress import one_line
from harness.transport.stdio import StandardStreams

EXIT_UNREADABLE = 1
ACTIONS = ("list", "show", "salvage")
MAX_SHOWN = 160  # characters of a message: two lines of a usual terminal; --json has all of it
HELP = """\
usage: harness sessions list | show ID | salvage ID [options]

  list        every stored session, oldest first; a file that cannot be read
              stands at the end with the reason
  show ID     what a session holds: its state and its conversation
  salvage ID  copy what still reads of a damaged session into a new one; the
              damaged file stays as it is

  --as NEW_ID            salvage: the id of the new session
  --json                 an object a line; show: the session, then its events
  --session-root FOLDER  where session logs are kept        HARNESS_SESSION_ROOT
  -h, --help             this text
exit codes: 0 done, 1 a session cannot be read, 2 usage
example:
  harness sessions salvage ID && harness run --resume NEW_ID "go on"
"""


@dataclass(frozen=True, slots=True)
class SessionsCall:
    """What one call of the command asks for; new_id belongs to salvage."""

    action: str
    session_id: SessionId | None
    new_id: SessionId | None
    as_json: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    """Teach the parser the options of this command."""
    parser.add_argument("action", nargs="?", default="")
    parser.add_argument("session_id", nargs="?")
    parser.add_argument("--as", dest="new_id")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--session-root")
    parser.add_argument("-h", "--help", action="store_true")


def read_options(known: argparse.Namespace) -> SessionsCall:
    """The call these options make.

    Raises: UsageError for an action that is none, and for ids where they do not belong or lack.
    """
    action: str = known.action
    if action not in ACTIONS:
        near = difflib.get_close_matches(action, ACTIONS, n=1)
        raise UsageError(
            (f"{action[:60]!r} is nothing it does" if action else "what is to be done with them?")
            + (f"; did you mean {near[0]!r}?" if near else ""),
            where="harness sessions",
            expected=f"one of {', '.join(ACTIONS)}",
        )
    if (known.session_id is None) != (action == "list"):
        raise UsageError(
            "no id is needed to list them" if action == "list" else "which session?",
            where=f"harness sessions {action}",
            expected="no id" if action == "list" else "the id of one",
            fix="harness sessions list tells the ids",
        )
    if known.new_id is not None and action != "salvage":
        raise UsageError("--as belongs to salvage", where=f"harness sessions {action}", fix="leave it out")
    return SessionsCall(action, known.session_id, known.new_id, known.json)


def run_sessions(call: SessionsCall, session_root: Path, streams: StandardStreams) -> int:
    """Do what is asked and give the exit code.

    Raises: LogError for a session that is not there or cannot be read, UsageError for an id that is none.
    """
    store = SessionStore(session_root, clock=wall_clock)
    if call.session_id is None:
        return _list(store, streams, as_json=call.as_json)
    if call.action == "show":
        return _show(store.inspect(call.session_id), streams, as_json=call.as_json)
    new_id = call.new_id if call.new_id is not None else SessionId(fresh_ids(None, "session")("session"))
    return asyncio.run(_salvage(store, call.session_id, new_id, streams, as_json=call.as_json))


def _list(store: SessionStore, streams: StandardStreams, *, as_json: bool) -> int:
    listings = store.list()
    found = [(listing.header, listing.path) for listing in listings if listing.header is not None]
    for header, path in sorted(found, key=lambda each: (each[0].created_at, each[1])):
        if as_json:
            streams.write_bytes(encode_line(_session_json(header, path)))
        else:
            folder = "(no folder)" if header.cwd is None else one_line(header.cwd)
            streams.write(f"{_moment(header.created_at)}  {one_line(header.id)}  {folder}\n")
    unreadable = [listing for listing in listings if listing.header is None]
    for listing in unreadable:
        problem = listing.problem or "cannot be read"
        if as_json:
            streams.write_bytes(encode_line({"type": "problem", "path": str(listing.path), "problem": problem}))
        else:
            streams.write(f"cannot be read: {one_line(str(listing.path))}: {one_line(problem)}\n")
    return EXIT_UNREADABLE if unreadable else 0


def _show(found: LoadedLog, streams: StandardStreams, *, as_json: bool) -> int:
    if as_json:
        state = {"live": found.live, "events": len(found.events), "state": _state(found)}
        streams.write_bytes(
            encode_line(with_optional({**_session_json(found.header, found.path), **state}, damage=found.damage))
        )
        for event in found.events:
            streams.write_bytes(
                encode_line({"type": "session_event", "sessionId": found.header.id, "event": event_to_json(event)})
            )
        return 0
    header = found.header
    waiting = len(fold_inbox(found.events, header.seed_length))
    size = f"{_count(len(found.events), 'event')} in {_count(highest_turn(found.events), 'turn')}"
    facts = {
        "session": header.id,
        "file": str(found.path),
        "folder": header.cwd,
        "created": _moment(header.created_at),
        "parent": header.parent_session,
        "holds": f"{size}; {_state(found)}",
        "waiting": _count(waiting, "message") if waiting else None,
        "damage": found.damage,
    }
    for name, fact in facts.items():
        if fact is not None:
            streams.write(f"{name:<9}{one_line(fact)}\n")
    streams.write("\n")
    for message in found.log.messages():
        for line in _lines_of(message):
            streams.write(f"{line}\n")
    return 0


async def _salvage(
    store: SessionStore, session_id: SessionId, new_id: SessionId, streams: StandardStreams, *, as_json: bool
) -> int:
    writer = await store.salvage(session_id, new_id)
    await writer.close()
    if as_json:
        line: JsonDict = {"type": "salvaged", "sessionId": new_id, "from": session_id, "path": str(writer.path)}
        streams.write_bytes(encode_line(with_optional({**line, "events": len(writer.log)}, damage=writer.damage)))
        return 0
    streams.write(
        f"{one_line(new_id)} holds what reads of {one_line(session_id)}: {_count(len(writer.log), 'event')}\n"
    )
    streams.write(f"  left behind: {'nothing' if writer.damage is None else one_line(writer.damage)}\n")
    streams.write(f"  file: {one_line(str(writer.path))}\n")
    return 0


def _session_json(header: SessionHeader, path: Path) -> JsonDict:
    return with_optional(
        {"type": "session", "sessionId": header.id, "createdAt": header.created_at, "path": str(path)},
        cwd=header.cwd,
        parentSession=header.parent_session,
    )


def _state(found: LoadedLog) -> str:
    """One word or two for where the session stands; an interrupted one reads as it would be resumed."""
    if found.live:
        return "in use by a program"
    reason = turn_end_reason(found.events, highest_turn(found.events))
    return "no turn yet" if reason is None else f"last turn {reason.kind}"


def _moment(created_at: int) -> str:
    """Milliseconds since the epoch as a date and a time of day, in UTC."""
    try:
        return datetime.fromtimestamp(created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # beyond the year 9999: shown as it stands in the file
        return f"{created_at} ms"


def _lines_of(message: Message) -> list[str]:
    """What a person is shown of a message: what was said, what was called, what came back."""
    lines: list[str] = []
    if text := one_line(text_of(message)):
        lines.append(f"{message.role}: {_short(text)}")
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            lines.append(_short(f"  {one_line(block.name)} {one_line(block.arguments)}"))
        elif isinstance(block, ToolResultBlock):
            said = one_line(" ".join(part.text for part in block.content if isinstance(part, TextBlock)))
            lines.append(_short(f"    {'failed: ' if block.is_error else ''}{said}"))
    return lines


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
