"""What one JSON-RPC frame is: a request, a response or a notification; and how each is written.

Room: pure; the transport and its tests come in. It knows frames only: which error answers what is the peer's business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.model.messages import Json, JsonObject

RpcId = str | int | float


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody asks and wants an answer under this id."""

    id: RpcId
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notification:
    """Somebody tells and wants no answer."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to an earlier request: error is None when it succeeded, and result is then what came."""

    id: RpcId
    result: Json
    error: JsonObject | None


def classify(frame: JsonObject) -> Request | Notification | Response | None:
    """What a frame is; None when it is nothing that can be acted on.

    Shape: params that are no object become an empty one; an id is a text or a finite number and nothing else, so a
    frame with a method and another id is a notification; an error that is false counts as none. The member `jsonrpc`
    is not looked at.
    Source: JSON-RPC 2.0 sections 4 and 5, read as tolerantly as the published peers do.
    """
    identity = frame.get("id")
    method = frame.get("method")
    has_id = _is_id(identity)
    if isinstance(method, str):
        params = frame.get("params")
        known = params if isinstance(params, Mapping) else {}
        return Request(identity, method, known) if has_id else Notification(method, known)  # type: ignore[arg-type] # has_id
    if not has_id:
        return None
    error = frame.get("error")
    if not error:
        return Response(identity, frame.get("result"), None)  # type: ignore[arg-type] # has_id
    return Response(identity, None, error if isinstance(error, Mapping) else {"message": error})  # type: ignore[arg-type] # has_id


def request_frame(identity: RpcId, method: str, params: JsonObject | None) -> JsonObject:
    """A request; params are left out where there are none."""
    frame: dict[str, Json] = {"jsonrpc": "2.0", "id": identity, "method": method}
    return frame if params is None else frame | {"params": params}


def notification_frame(method: str, params: JsonObject) -> JsonObject:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result_frame(identity: RpcId, result: JsonObject) -> JsonObject:
    """The answer of a request that succeeded."""
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def error_frame(identity: RpcId, code: int, message: str) -> JsonObject:
    """The answer of a request that failed."""
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}


def _is_id(value: Json) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
