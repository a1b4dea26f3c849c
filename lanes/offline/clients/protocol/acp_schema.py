"""Every frame of an ACP server against the published schema: types exactly, and no member it does not know.

Room: the tests of the published clients come in. The models are imported when asked for; they come with the package.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

RESULTS = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "session/new": "NewSessionResponse",
    "session/prompt": "PromptResponse",
    "session/list": "ListSessionsResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/close": "CloseSessionResponse",
}
REQUESTS = {"session/request_permission": "RequestPermissionRequest"}
NOTIFICATIONS = {"session/update": "SessionNotification", "$/cancel_request": "CancelRequestNotification"}


def deviations(sent: Sequence[Any], received: Sequence[Any]) -> list[str]:
    """What the server wrote that is not of the schema, one line each. sent holds the client's frames."""
    methods = {frame["id"]: frame["method"] for frame in sent if "method" in frame and "id" in frame}
    return [line for frame in received for line in _deviations_of(frame, methods)]


def _deviations_of(frame: Any, methods: dict[Any, str]) -> list[str]:
    method, outer = frame.get("method"), {"jsonrpc", "id", "method", "params", "result", "error"}
    if set(frame) - outer:
        return [f"{sorted(set(frame) - outer)} in {frame}"]
    if method is not None:
        models = REQUESTS if "id" in frame else NOTIFICATIONS
        return _check(models.get(method), frame.get("params"), method)
    if "error" in frame:
        error = frame["error"]
        is_one = set(error) <= {"code", "message"} and type(error["code"]) is int and type(error["message"]) is str
        return [] if is_one and "result" not in frame else [f"error {error}"]
    asked = methods.get(frame.get("id"), "")
    return _check(RESULTS.get(asked), frame.get("result"), f"answer to {asked!r}")


def _check(model: str | None, value: Any, where: str) -> list[str]:
    import acp.schema
    from pydantic import ValidationError

    if model is None:
        return [f"{where}: nothing the schema has"]
    try:
        read = getattr(acp.schema, model).model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        return [f"{where}: {one['loc']} {one['msg']}" for one in error.errors()]
    known = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [] if known == value else [f"{where}: read as {known}, is {value}"]
