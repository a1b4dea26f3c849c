"""Asking the client whether a tool call may run; whatever is not a plain yes is a no.

Room: pure but for the answer that is read; the bridge comes in.
Source: Agent Client Protocol, version 1, session/request_permission and $/cancel_request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from harness.errors import PeerError
from harness.loop.hooks import GateAnswer
from harness.model.messages import Json, JsonObject, SessionId, ToolCallBlock

ALLOW, REJECT = "allow-once", "reject-once"
WITHDRAWN = "$/cancel_request"  # of no capability: whoever cannot act on a method that begins with $/ ignores it


def permission_params(session_id: SessionId, call: ToolCallBlock) -> JsonObject:
    """The question: once, for this call only."""
    return {
        "sessionId": session_id,
        "toolCall": {"toolCallId": call.id, "title": call.name},
        "options": (
            {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
            {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
        ),
    }


def answer_of(asked: asyncio.Future[Json]) -> GateAnswer:
    """What the client's answer means: allowed only for the exact option; no answer fails closed."""
    try:
        result = asked.result()
    except PeerError:
        return GateAnswer("deny", "permission could not be asked for")
    outcome = result.get("outcome") if isinstance(result, Mapping) else None
    if not isinstance(outcome, Mapping):
        return GateAnswer("deny", "permission could not be asked for")
    if outcome.get("outcome") == "cancelled":
        return GateAnswer("deny", "the user cancelled")
    if outcome.get("outcome") == "selected" and outcome.get("optionId") == ALLOW:
        return GateAnswer("allow")
    return GateAnswer("deny", "the user did not allow it")
