"""The control routes under /__mock__/: the control object for a test in another process.

Room: the engine comes in; this room sees of it what ControlObject names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol
from urllib.parse import parse_qsl

from mock_provider.actions import Action, Head, Hold, Send
from mock_provider.errors import UsageError
from mock_provider.faults import Plan, plan_whole
from mock_provider.gates import Gate
from mock_provider.journal import Entry, Journal
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.metrics import CONTENT_TYPE, Metrics
from mock_provider.steps import Script
from mock_provider.verdict import Verdict

JSON_TYPE = "application/json"
SCRIPTED = ("x-mock-provider", "scripted")
MAX_WAIT_S = 60.0  # of one long poll; who wants more asks again


class ControlObject(Protocol):
    """What the routes need of the engine; a protocol because the engine imports this room."""

    script: Script
    journal: Journal
    metrics: Metrics

    @property
    def arrived(self) -> int: ...
    def gate(self, name: str) -> Gate: ...
    def gates(self) -> Sequence[Gate]: ...
    def verify(self) -> Verdict: ...
    def reset(self) -> None: ...


ROUTES = (
    "GET health",
    "GET journal[?after=N&wait_s=S]",
    "GET verify",
    "GET metrics",
    "POST reset",
    "GET gates/NAME",
    "POST gates/NAME",
)


def answer_control(mock: ControlObject, method: str, name: str, query: str = "") -> Plan:
    """Answer one control request."""
    if method in {"GET", "HEAD"} and name in {"health", "journal", "verify", "metrics"}:
        return _read(mock, name, dict(parse_qsl(query)))
    if name == "reset" and method == "POST":
        mock.reset()
        return _json(200, {"ok": True})
    if name.startswith("gates/") and method in {"GET", "POST"}:
        return _gate(mock, method, name.removeprefix("gates/"))
    known: list[Json] = list(ROUTES)
    return _json(404, {"error": f"no control route '{method} {name}'", "routes": known})


def _head(status: int, content_type: str) -> Head:
    return Head(status, (("content-type", content_type), SCRIPTED))


def _json(status: int, content: JsonObject) -> Plan:
    return plan_whole(_head(status, JSON_TYPE), encode_json(content))


def _gate(mock: ControlObject, method: str, name: str) -> Plan:
    try:
        gate = mock.gate(name)
    except UsageError as error:
        return _json(404, {"error": str(error)})
    if method == "POST":
        gate.open()
    content: JsonObject = {
        "name": gate.name,
        "open": gate.is_open,
        "reached": gate.arrival.is_open,
        "waiting": gate.waiting,
    }
    return _json(200, content)


def _read(mock: ControlObject, name: str, asked: dict[str, str]) -> Plan:
    if name == "health":
        return _json(200, {"ok": True, "script": mock.script.name})
    if name == "journal":
        return _journal(mock.journal, asked)
    verdict = mock.verify()
    if name == "metrics":
        text = mock.metrics.text(verdict, mock.gates(), arrived=mock.arrived, dropped=mock.journal.dropped)
        return plan_whole(_head(200, CONTENT_TYPE), text.encode())
    problems: list[Json] = list(verdict.problems)
    apart: JsonObject = {
        "left": [*verdict.left],
        "unmatched": [*verdict.unmatched],
        "invalid": [*verdict.invalid],
        "gates": [*verdict.gates],
    }
    content: JsonObject = {"ok": verdict.ok, "used": verdict.used, "problems": problems, **apart, "text": str(verdict)}
    return _json(200, content)


def _journal(journal: Journal, asked: dict[str, str]) -> Plan:
    try:
        after, wait_s = int(asked.get("after", "0")), min(float(asked.get("wait_s", "0")), MAX_WAIT_S)
    except ValueError:
        return _json(400, {"error": "after is the number of the last entry seen, wait_s how long to wait for more"})
    if wait_s > 0 and not _later(journal, after):
        return LongPoll(journal, after, wait_s)
    return _json(200, _entries(journal, after))


def _later(journal: Journal, after: int) -> list[Entry]:
    return [entry for entry in journal.entries if entry.number > after]


def _entries(journal: Journal, after: int) -> JsonObject:
    found = _later(journal, after)
    listed: list[Json] = [entry.to_json() for entry in found]
    last = max((entry.number for entry in found), default=after)
    return {"entries": listed, "dropped": journal.dropped, "next": last}


class LongPoll(Plan):
    """The journal once there is more of it, or as it is when the time is up."""

    __slots__ = ("_after", "_journal", "_wait_s")

    def __init__(self, journal: Journal, after: int, wait_s: float) -> None:
        super().__init__((), None, is_waiting=True)
        self._journal = journal
        self._after = after
        self._wait_s = wait_s

    def __iter__(self) -> Iterator[tuple[Action, bool]]:
        """First the wait, and only then what is to be said."""
        news = self._journal.news()
        if not _later(self._journal, self._after):  # one may have come since it was asked
            yield Hold(news, self._wait_s), False
        data = encode_json(_entries(self._journal, self._after))
        head = _head(200, JSON_TYPE)
        yield Head(head.status, head.headers, len(data)), False
        yield Send(data, True), True
