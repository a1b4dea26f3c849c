"""What happens to a play, as one worker tells it to the others.

Room: pure; the link comes in.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TypeAlias

from mock_provider.journal import Entry
from mock_provider.play import Note
from mock_provider.values import value


@value
class Arrived:
    """A request, and what it changed. Shape: the entry has no number yet; its place among the events gives it one."""

    note: Note
    entry: Entry


@value
class Ended:
    """An answer is over. Shape: round counts the resets before, number is that of the request."""

    round: int
    number: int
    end: str
    pieces_sent: int
    digest: str
    gates_passed: tuple[str, ...]


@value
class AtGate:
    """Something was done at a gate: "open", "enter" or "leave"."""

    name: str
    what: str


@value
class Stuck:
    """A line for the verdict about a gate that stayed shut."""

    line: str


@value
class KeptChange:
    """An answer was kept under a name, or dropped when text is None."""

    name: str
    text: str | None


@value
class PortClosed:
    """A fault closes the port for a while."""

    duration_s: float


@value
class Restarted:
    """The play begins again."""


Event: TypeAlias = "Arrived | Ended | AtGate | Stuck | KeptChange | PortClosed | Restarted"
_KINDS: dict[str, type[Ended | AtGate | Stuck | KeptChange | PortClosed | Restarted]] = {
    kind.__name__: kind for kind in (Ended, AtGate, Stuck, KeptChange, PortClosed, Restarted)
}


def spell_event(event: Event) -> bytes:
    """An event as bytes."""
    if not isinstance(event, Arrived):
        return json.dumps([type(event).__name__, dataclasses.asdict(event)]).encode("ascii")
    entry = {name: getattr(event.entry, name) for name in _ENTRY_FIELDS}
    entry["kept_headers"] = dict(event.entry.kept_headers)
    body = event.entry.spelled_body()
    if body is not None:  # JSON in any spelling, not always UTF-8
        entry["kept_body"] = body.decode("utf-8", "surrogateescape")
    return json.dumps(["Arrived", dataclasses.asdict(event.note), entry]).encode("ascii")


def read_event(data: bytes) -> Event:
    """An event from its bytes, as spell_event made them."""
    kind, fields, *more = json.loads(data)
    if kind == "Ended":
        fields["gates_passed"] = tuple(fields["gates_passed"])
    if kind != "Arrived":
        return _KINDS[kind](**fields)
    told = more[0]
    told["extra_fields"] = tuple(told["extra_fields"])
    if "kept_body" in told:
        told["kept_body"] = told["kept_body"].encode("utf-8", "surrogateescape")
    return Arrived(Note(**fields), Entry(number=0, **told))


# What is known of a request when it arrives, and can be spelled as it is.
_ENTRY_FIELDS = (
    "method",
    "path",
    "dialect",
    "conversation",
    "client",
    "step",
    "matched",
    "rule",
    "problem",
    "status",
    "extra_fields",
    "length_bytes",
)
