"""What a session promised before it was killed, and which of it its log and its ledger do not keep.

Room: `lanes.crash` asks after every kill. It reads files and starts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import InvalidEventError, LogError, SessionNotFoundError
from harness.log.events import Event, InboxSpliced, ToolCall, ToolResult, TurnEnd, UserMessage
from harness.log.invariants import Invariants
from harness.log.session_log import SessionLog
from harness.log.store import LoadedLog, SessionStore
from harness.model.messages import TextBlock, ToolResultBlock
from lanes.crash_child import LEDGER, SESSION, result_text, sessions_of, workspace_of

KINDS = ("receipt", "asked", "call", "result", "idle")


@dataclass(slots=True)
class Promises:
    """Everything the lives of one session said so far, by kind."""

    made: dict[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in KINDS})
    closed: bool = False

    def hear(self, line: str) -> None:
        """Take one line of a child."""
        kind, _, value = line.partition(" ")
        if kind in self.made:
            self.made[kind].add(value)
        self.closed = kind == "closed"

    def count(self) -> Counter[str]:
        """How many promises of each kind."""
        return Counter({kind: len(values) for kind, values in self.made.items()})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a look at the files found.

    Shape: events are those of the log with its closers, empty when there is no file; lost are broken promises, twice
    the call ids whose body ran more than once, stuck the reasons why the session did not go on.
    """

    events: Sequence[Event] = ()
    lost: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()


def judge(folder: Path, promises: Promises, before: Sequence[Event], *, is_last: bool) -> Judgement:
    """Compare the files with what was promised, and with what the log held after the life before.

    Shape: is_last says that this life was let live to its end; then the session has to be whole and nothing may wait.
    """
    ran = Counter(_ledger(folder))
    twice = tuple(sorted(call for call, count in ran.items() if count > 1))
    try:
        loaded = _load(folder)
    except LogError as error:
        return Judgement(before, (f"the log does not load: {error}",), twice, ("the log does not load",))
    events = () if loaded is None else tuple(loaded.log)
    kept = _kept(events)
    lost = [
        f"{kind} {value} is not in the log" for kind in KINDS for value in sorted(promises.made[kind] - kept.made[kind])
    ]
    lost += [f"call {call} ran and is not in the log" for call in sorted(set(ran) - kept.made["call"])]
    if events[: len(before)] != tuple(before):
        lost.append("the log does not begin with what it held before this life")
    stuck = _stuck(loaded, events, promises, kept) if is_last else ()
    return Judgement(events, tuple(lost), twice, stuck)


def _load(folder: Path) -> LoadedLog | None:
    try:
        return SessionStore(sessions_of(folder), clock=lambda: 0).inspect(SESSION)
    except SessionNotFoundError:
        return None


def _ledger(folder: Path) -> list[str]:
    try:
        return (workspace_of(folder) / LEDGER).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []


def _kept(events: Sequence[Event]) -> Promises:
    """The promises these events bear out."""
    kept = Promises()
    for event in events:
        payload = event.payload
        if isinstance(payload, InboxSpliced):
            kept.made["receipt"].update(message.id for message in payload.inserted)
        elif isinstance(payload, UserMessage):
            kept.made["asked"].add(payload.message.id)
        elif isinstance(payload, ToolCall):
            kept.made["call"].add(payload.call_id)
        elif isinstance(payload, ToolResult):
            block = payload.message.content[0]
            assert isinstance(block, ToolResultBlock)  # noqa: S101 - the log holds no other results
            if payload.error is None and block.content == (TextBlock(result_text(block.tool_call_id)),):
                kept.made["result"].add(block.tool_call_id)
        elif isinstance(payload, TurnEnd) and payload.reason.kind != "interrupted":
            kept.made["idle"].add(str(payload.turn))
    return kept


def _stuck(loaded: LoadedLog | None, events: Sequence[Event], promises: Promises, kept: Promises) -> tuple[str, ...]:
    """Why a session that was let live did not come to a good end; empty when it did."""
    if loaded is None:
        return ("no session file",)
    found = [] if promises.closed else ["the child did not come to its end"]
    if loaded.damage is not None:
        found.append(f"damage after a clean end: {loaded.damage}")
    found += [
        f"receipt {name} never reached the model" for name in sorted(promises.made["receipt"] - kept.made["asked"])
    ]
    try:
        _check_order(loaded.log, events)
    except InvalidEventError as error:
        found.append(f"the order of the log is broken: {error}")
    last = loaded.log.last(TurnEnd)
    if last is None or not isinstance(last.payload, TurnEnd) or last.payload.reason.kind != "completed":
        found.append("the last turn is not completed")
    return tuple(found)


def _check_order(log: SessionLog, events: Sequence[Event]) -> None:
    check = Invariants()
    for event in events:
        check.take(log, event)
