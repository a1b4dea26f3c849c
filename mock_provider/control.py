"""The control routes under /__mock__/: the control object for a test in another process.

Room: the engine comes in; this room sees of it what ControlObject names.
"""

from __future__ import annotations

from typing import Protocol

from mock_provider.errors import UsageError
from mock_provider.gates import Gate
from mock_provider.journal import Journal
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import Script
from mock_provider.verdict import Verdict


class ControlObject(Protocol):
    """What the routes need of the engine; a protocol because the engine imports this room."""

    script: Script
    journal: Journal

    def gate(self, name: str) -> Gate: ...
    def verify(self) -> Verdict: ...
    def reset(self) -> None: ...


ROUTES = ("GET health", "GET journal", "GET verify", "POST reset", "GET gates/NAME", "POST gates/NAME")


def answer_control(mock: ControlObject, method: str, name: str) -> tuple[int, JsonObject]:
    """Answer one control request. Shape: status and JSON content."""
    if method in {"GET", "HEAD"} and name in {"health", "journal", "verify"}:
        return 200, _read(mock, name)
    if name == "reset" and method == "POST":
        mock.reset()
        return 200, {"ok": True}
    if name.startswith("gates/") and method in {"GET", "POST"}:
        try:
            gate = mock.gate(name.removeprefix("gates/"))
        except UsageError as error:
            return 404, {"error": str(error)}
        if method == "POST":
            gate.open()
        return 200, {
            "name": gate.name,
            "open": gate.is_open,
            "reached": gate.arrival.is_open,
            "waiting": gate.waiting,
        }
    known: list[Json] = list(ROUTES)
    return 404, {"error": f"no control route '{method} {name}'", "routes": known}


def _read(mock: ControlObject, name: str) -> JsonObject:
    if name == "health":
        return {"ok": True, "script": mock.script.name}
    if name == "journal":
        listed: list[Json] = [entry.to_json() for entry in mock.journal.entries]
        return {"entries": listed, "dropped": mock.journal.dropped}
    verdict = mock.verify()
    problems: list[Json] = list(verdict.problems)
    return {"ok": verdict.ok, "used": verdict.used, "problems": problems, "text": str(verdict)}
