"""Bedrock: Converse and InvokeModel, requests read, answers and binary streams written.

Room: pure; the dialect table comes in.
Source: the service model that AWS publishes with its clients (bedrock-runtime, 2023-09-30) and its API reference.
Requests are signed (Signature Version 4) or bring a Bedrock API key; that there is a signature is checked, what it says
is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from mock_provider.asked import Asked, AskedCall, AskedMessage, AskedResult, Refusal, Role
from mock_provider.dialects import anthropic_messages
from mock_provider.dialects.bedrock_fields import decode_blob, inside, objects
from mock_provider.dialects.bedrock_invoke import read_invoke, write_chunks
from mock_provider.dialects.bedrock_output import response_fields
from mock_provider.dialects.bedrock_refusals import error, error_headers, refuse, usual_error
from mock_provider.dialects.bedrock_rules import offered_names, refuse_conversation, refuse_members, refuse_model
from mock_provider.dialects.bedrock_stream import write_frames
from mock_provider.dialects.codec import Address, Dialect, Headers, Received, Reply, count_input
from mock_provider.faults import Item
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.steps import ErrorEvent, Malformed, RawBytes, Script

_CONVERSE, _CONVERSE_STREAM = "converse", "converse-stream"
_INVOKE, _INVOKE_STREAM = "invoke", "invoke-stream"
_STREAM_TYPE = "application/vnd.amazon.eventstream"
_SIGNATURE = re.compile(r"Credential=([^/,\s]+)/[^,]+,\s*SignedHeaders=[^,]+,\s*Signature=[0-9a-f]{64}")
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def check_access(headers: Mapping[str, str], query: str, script: Script) -> Refusal | None:
    """Refuse a request that is neither signed nor has a key, or with another key than the script's."""
    del query
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and rest.strip():
        if script.api_key is None or rest.strip() == script.api_key:
            return None
        text = "Authentication failed: Please make sure your API Key is valid."
        return refuse("wrong_key", text, status=403, kind="AccessDeniedException")
    if scheme != "AWS4-HMAC-SHA256":
        text = "Missing Authentication Token"
        return refuse("missing_key", text, status=403, kind="MissingAuthenticationTokenException")
    signed = _SIGNATURE.fullmatch(rest.strip())
    if signed is None or not {"x-amz-date", "date"} & headers.keys():
        text = (
            "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters, and existence of "
            "either a 'X-Amz-Date' or a 'Date' header."
        )
        return refuse("bad_signature", text, status=403, kind="IncompleteSignatureException")
    if script.api_key is not None and signed.group(1) != script.api_key:
        text = "The security token included in the request is invalid."
        return refuse("wrong_key", text, status=403, kind="UnrecognizedClientException")
    return None


def read(received: Received) -> Asked | Refusal | JsonObject:
    """Check a body like the service, then read it."""
    model = received.arguments["model"]
    refused = refuse_model(model, received.script)
    if refused:
        return refused
    if received.form in (_INVOKE, _INVOKE_STREAM):
        return read_invoke(received, model, is_stream=received.form == _INVOKE_STREAM)
    extra = refuse_members(received.body, "ConverseRequest", received.script)
    if isinstance(extra, Refusal):
        return extra
    return _converse(received, received.body if isinstance(received.body, dict) else {}, extra)


def _converse(received: Received, body: JsonObject, extra: tuple[str, ...]) -> Asked | Refusal:
    refused = refuse_conversation(body)
    if refused:
        return refused
    return Asked(
        dialect="bedrock",
        model=received.arguments["model"],
        messages=(*_system(body.get("system")), *_messages(body.get("messages"))),
        tools=tuple(offered_names(body)),
        is_stream=received.form == _CONVERSE_STREAM,
        body=body,
        headers=received.headers,
        extra_fields=extra,
        form=received.form,
    )


def count(received: Received) -> JsonObject | Refusal:
    """Count the tokens of a request by the local rule."""
    refused = refuse_model(received.arguments["model"], received.script)
    extra = refuse_members(received.body, "CountTokensRequest", received.script)
    if refused or isinstance(extra, Refusal) or not isinstance(received.body, dict):
        return refused or (
            extra if isinstance(extra, Refusal) else refuse("wrong_type", "The body must be a structure.")
        )
    given = inside(received.body, "input")
    if "converse" in given:
        asked: Asked | Refusal | JsonObject = _converse(received, inside(given, "converse"), extra)
    else:
        data = decode_blob(inside(given, "invokeModel").get("body")) or b""
        try:
            body: Json = json.loads(data)
        except (ValueError, RecursionError):
            return refuse("not_json", "The body of invokeModel is not valid JSON.")
        plain = Received(body, received.headers, "", received.script, received.kept, _INVOKE, received.arguments)
        asked = read_invoke(plain, received.arguments["model"], is_stream=False)
    if isinstance(asked, Refusal):
        return asked
    return {"inputTokens": count_input(asked)} if isinstance(asked, Asked) else asked


def _system(blocks: Json) -> tuple[AskedMessage, ...]:
    texts = tuple(str(block["text"]) for block in objects(blocks) if "text" in block)
    return (AskedMessage("system", texts),) if texts else ()


def _messages(messages: Json) -> tuple[AskedMessage, ...]:
    """Read the history; each tool result becomes a message of its own, as in the other dialects."""
    found: list[AskedMessage] = []
    names: dict[str, str] = {}
    for message in objects(messages):
        blocks = objects(message["content"])
        uses = [inside(block, "toolUse") for block in blocks if "toolUse" in block]
        calls = tuple(AskedCall(str(use["toolUseId"]), str(use["name"]), json.dumps(use["input"])) for use in uses)
        names.update({call.id: call.name for call in calls})
        texts = tuple(str(block["text"]) for block in blocks if "text" in block)
        results = [_result(inside(block, "toolResult"), names) for block in blocks if "toolResult" in block]
        images = sum(any(kind in block for kind in ("image", "document", "video", "audio")) for block in blocks)
        found.extend(AskedMessage("tool", (), (), (result,)) for result in results)
        if texts or calls or images or not results:
            found.append(AskedMessage(_ROLES[str(message["role"])], texts, calls, (), images))
    return tuple(found)


def _result(block: JsonObject, names: Mapping[str, str]) -> AskedResult:
    texts = [
        str(part["text"]) if "text" in part else json.dumps(part["json"], ensure_ascii=False)
        for part in objects(block["content"])
        if "text" in part or "json" in part
    ]
    call_id = str(block["toolUseId"])
    return AskedResult(call_id, names.get(call_id, ""), "\n".join(texts), block.get("status") == "error")


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    if asked.form == _INVOKE:
        return anthropic_messages.whole(asked, reply)
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_json({"message": part.message})
    return encode_json(response_fields(reply))


def write_stream(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as frames."""
    return write_chunks(asked, reply) if asked.form == _INVOKE_STREAM else write_frames(asked, reply)


def stream_head(asked: Asked) -> tuple[str, Headers]:
    """InvokeModel says in a header what the frames hold."""
    more = (("x-amzn-bedrock-content-type", "application/json"),) if asked.form == _INVOKE_STREAM else ()
    return _STREAM_TYPE, more


DIALECT = Dialect(
    name="bedrock",
    id_kind="msg",
    request_id_header="x-amzn-requestid",
    content_type_stream=_STREAM_TYPE,
    addresses={
        "POST /model/{model}/converse": Address(form=_CONVERSE),
        "POST /model/{model}/converse-stream": Address(form=_CONVERSE_STREAM),
        "POST /model/{model}/invoke": Address(form=_INVOKE),
        "POST /model/{model}/invoke-with-response-stream": Address(form=_INVOKE_STREAM),
        "POST /model/{model}/count-tokens": Address(count),
    },
    check_access=check_access,
    read=read,
    whole=whole,
    stream=write_stream,
    error=error,
    usual_error=usual_error,
    stream_head=stream_head,
    error_headers=error_headers,
)
