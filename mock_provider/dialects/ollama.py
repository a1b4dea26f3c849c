"""Ollama: requests read, answers and lines written.

Room: pure; the dialect table comes in.
Source: the server's published API reference and its own source text (server/routes.go, api/types.go). It streams unless
told not to, and answers a request that says nothing by loading or unloading the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mock_provider.asked import Asked, AskedCall, AskedMessage, AskedResult, Refusal, Role
from mock_provider.dialects.codec import Address, Dialect, Received
from mock_provider.dialects.ollama_embeddings import embed, embed_prompt
from mock_provider.dialects.ollama_models import list_loaded, list_models, show_model, show_version
from mock_provider.dialects.ollama_output import GENERATE, moment, whole_answer, write_lines
from mock_provider.dialects.ollama_refusals import error, refuse, usual_error
from mock_provider.dialects.ollama_rules import (
    CHAT_FIELDS,
    GENERATE_FIELDS,
    calls_of,
    name_of,
    offered_names,
    refuse_fields,
    refuse_messages,
    refuse_model,
    refuse_options,
    refuse_tools,
)
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import Script

_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def check_access(headers: Mapping[str, str], query: str, script: Script) -> Refusal | None:
    """Let everybody in, as the server does; with a key in the script, only those who bring it as bearer token."""
    del query
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if script.api_key is None or (scheme.lower() == "bearer" and token.strip() == script.api_key):
        return None
    return refuse("wrong_key" if token else "missing_key", "unauthorized", 401)


def read(received: Received) -> Asked | Refusal | JsonObject:
    """Check a body like the server, then read it; a request that says nothing is answered at once."""
    is_chat = received.form != GENERATE
    struct, fields = ("ChatRequest", CHAT_FIELDS) if is_chat else ("GenerateRequest", GENERATE_FIELDS)
    extra = refuse_fields(received.body, struct, fields, received.script)
    body = received.body if isinstance(received.body, dict) else {}
    if isinstance(extra, Refusal):
        return extra
    refused = refuse_model(body, received.script) or refuse_options(body)
    if not refused and is_chat:
        refused = refuse_messages(body.get("messages")) or refuse_tools(body.get("tools"))
    if (
        not refused
        and not is_chat
        and body.get("raw") is True
        and any(map(body.get, ("template", "system", "context")))
    ):
        refused = refuse("bad_option", "raw mode does not support template, system, or context")
    if refused:
        return refused
    if not body.get("messages" if is_chat else "prompt"):
        return _loaded(received, body, is_chat=is_chat)
    return Asked(
        dialect="ollama",
        model=str(body["model"]),
        messages=_messages(body["messages"]) if is_chat else _prompt(body),
        tools=offered_names(body.get("tools")),
        is_stream=body.get("stream") is not False,
        body=body,
        headers=received.headers,
        extra_fields=extra,
        form=received.form,
    )


def _loaded(received: Received, body: JsonObject, *, is_chat: bool) -> JsonObject:
    """What the server says when it has loaded a model, or unloaded it because it shall be kept no longer."""
    said: JsonObject = {"message": {"role": "assistant", "content": ""}} if is_chat else {"response": ""}
    is_unload = body.get("keep_alive") in (0, "0", "0s") and not isinstance(body.get("keep_alive"), bool)
    return {
        "model": body.get("model"),
        "created_at": moment(received.script.created),
        **said,
        "done": True,
        "done_reason": "unload" if is_unload else "load",
    }


def _prompt(body: JsonObject) -> tuple[AskedMessage, ...]:
    system = body.get("system")
    images = body.get("images")
    texts = tuple(str(body[name]) for name in ("prompt", "suffix") if body.get(name))
    said = AskedMessage("user", texts, (), (), len(images) if isinstance(images, list) else 0)
    return (AskedMessage("system", (str(system),)), said) if system else (said,)


def _messages(messages: Json) -> tuple[AskedMessage, ...]:
    """Read the history; ids of calls are left out, because clients drop them."""
    found: list[AskedMessage] = []
    waiting: list[str] = []
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        role = _ROLES[str(message.get("role")).lower()]
        content = message.get("content")
        text = content if isinstance(content, str) else ""
        if role == "tool":
            name = str(message.get("tool_name") or (waiting[0] if waiting else ""))
            if name in waiting:
                waiting.remove(name)
            found.append(
                AskedMessage("tool", (), (), (AskedResult(str(message.get("tool_call_id") or ""), name, text),))
            )
            continue
        calls = tuple(_call(call) for call in calls_of(message) if isinstance(call, dict))
        waiting = [call.name for call in calls]
        images = message.get("images")
        count = len(images) if isinstance(images, list) else 0
        found.append(AskedMessage(role, (text,) if text else (), calls, (), count))
    return tuple(found)


def _call(call: JsonObject) -> AskedCall:
    function = call.get("function")
    arguments = function.get("arguments", {}) if isinstance(function, dict) else {}
    return AskedCall("", name_of(call), json.dumps(arguments))


DIALECT = Dialect(
    name="ollama",
    id_kind="chat",
    request_id_header="",
    content_type_stream="application/x-ndjson",
    addresses={
        "POST /api/generate": Address(form=GENERATE),
        "POST /api/embed": Address(embed),
        "POST /api/embeddings": Address(embed_prompt),
        "GET /api/tags": Address(list_models, takes_body=False),
        "GET /api/ps": Address(list_loaded, takes_body=False),
        "POST /api/show": Address(show_model),
        "GET /api/version": Address(show_version, takes_body=False),
    },
    check_access=check_access,
    read=read,
    whole=whole_answer,
    stream=write_lines,
    error=error,
    usual_error=usual_error,
    has_call_ids=False,
)
