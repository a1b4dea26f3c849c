"""One run of a prompt as its notifications tell it: from its receipt to the agent's rest.

Room: pure; the client comes in. What a run amounts to is the same fold over events that every surface uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.client.tree import inserted_ids
from harness.errors import HarnessError, PeerError
from harness.log.events import Event
from harness.log.interval import final_text
from harness.log.json_form import event_from_json
from harness.model.messages import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Told:
    """One notification as it stood on the wire."""

    method: str
    params: JsonObject


Observer = Callable[[Told], None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Shape: events are those of the session itself, notifications those of its children too, both in wire order;
    final_response is the last text that is not empty; finish_reason is how its last turn ended, None when none did.
    Others may have had a part in it: this is what happened from the receipt on until nothing was left to do.
    """

    session_id: str
    message_id: str
    final_response: str
    finish_reason: str | None
    events: tuple[JsonObject, ...]
    notifications: tuple[Told, ...]


class RunCollector:
    """Takes what is told of a session and its children until the run is over.

    Shape: take gives True once it is over: the session came to rest after the receipt. The observer is called for each
    notification as it is taken.
    Raises: PeerError from take for an event that is none, and whatever the observer raises.
    """

    def __init__(self, session_id: str, message_id: str, observer: Observer | None) -> None:
        self._session_id = session_id
        self._message_id = message_id
        self._observer = observer
        self._events: list[JsonObject] = []
        self._notifications: list[Told] = []
        self._finish_reason: str | None = None

    def take(self, told: Told) -> bool:
        """Take the next notification."""
        is_own = told.params.get("sessionId") == self._session_id
        event = told.params.get("event") if told.method == "session.event" and is_own else None
        if event is not None and not _is_event(event):
            raise PeerError("an event without a type")
        if not self._notifications and (not isinstance(event, Mapping) or self._message_id not in inserted_ids(event)):
            return False
        if isinstance(event, Mapping) and event.get("type") == "turn/end":
            self._finish_reason = _reason_kind(event)
        self._notifications.append(told)
        if self._observer is not None:
            self._observer(told)
        if isinstance(event, Mapping):
            self._events.append(event)
        return is_own and told.method == "session.status" and told.params.get("status") == "idle"

    def result(self) -> RunResult:
        """What was taken so far."""
        return RunResult(
            session_id=self._session_id,
            message_id=self._message_id,
            final_response=final_text(_known(self._events)),
            finish_reason=self._finish_reason,
            events=tuple(self._events),
            notifications=tuple(self._notifications),
        )


def _known(events: list[JsonObject]) -> list[Event]:
    """The events this version knows; a newer server may send others, which say nothing of the text."""
    found: list[Event] = []
    for event in events:
        try:
            found.append(event_from_json({name: _plain(value) for name, value in event.items()}))
        except HarnessError:
            continue
    return found


def _plain(value: Json) -> object:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _is_event(event: Json) -> bool:
    return isinstance(event, Mapping) and isinstance(event.get("type"), str)


def _reason_kind(event: Mapping[str, Json]) -> str:
    data = event.get("data")
    reason = data.get("reason") if isinstance(data, Mapping) else None
    kind = reason.get("kind") if isinstance(reason, Mapping) else None
    if not isinstance(kind, str):
        raise PeerError("the end of a turn without a reason")
    return kind
