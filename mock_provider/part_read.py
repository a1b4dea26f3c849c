"""Reading the parts of a reply from a script.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from mock_provider.causes import CAUSES, GATEWAY, GATEWAY_PAGE, GATEWAY_STATUS
from mock_provider.copying import FromMatch, TemplateError, split_template
from mock_provider.json_values import Json, JsonObject
from mock_provider.script_fields import Fields, Findings, is_header_value, near_miss
from mock_provider.script_source import Entries, Items, Node, Scalar, plain
from mock_provider.steps import (
    FAULT_KINDS,
    AtGate,
    Break,
    Comment,
    ErrorEvent,
    FaultKind,
    HttpError,
    Malformed,
    Part,
    RawBytes,
    Reasoning,
    RefusalText,
    Text,
    ToolCall,
)

PART_KEYS = (
    "text",
    "reasoning",
    "refusal",
    "tool_call",
    "gate",
    "fault",
    "malformed",
    "hex",
    "comment",
    "error_event",
    "http_error",
)
CALL_KEYS = ("name", "arguments", "raw", "id", "index")
ERROR_KEYS = (
    "status",
    "cause",
    "code",
    "message",
    "type",
    "retry_after",
    "retry_after_ms",
    "headers",
    "body",
    "content_type",
)
EVENT_KEYS = ("message", "code", "type", "cause")
EVENT_CAUSES = tuple(cause for cause in CAUSES if cause != GATEWAY)
PART_FAULTS: tuple[FaultKind, ...] = tuple(kind for kind in FAULT_KINDS if kind != "refuse")
MAX_INDEX = 1000
_LINE_ENDS = ("\n", "\r")  # behind one, a comment would go on as an event
MAX_RETRY_S = 86_400  # a day
MAX_NAME = 200  # longer gate or tool names are a mistake in the file; providers stop at 64 or 128


def read_parts(node: Node, field: str, findings: Findings, groups: frozenset[str]) -> tuple[Part | HttpError, ...]:
    """Read a reply: a text, one part, or a list of parts."""
    if isinstance(node, Items):
        parts = [read_part(item, f"{field}[{at}]", findings, groups) for at, item in enumerate(node.items)]
    else:
        parts = [read_part(node, field, findings, groups)]
    kept = tuple(part for part in parts if part is not None)
    if len(kept) > 1 and any(isinstance(part, HttpError) for part in kept):
        findings.add(node.mark, field, "http_error beside other parts", "SCRIPT_VALUE", expected="http_error alone")
    return kept


def read_part(node: Node, field: str, findings: Findings, groups: frozenset[str]) -> Part | HttpError | None:
    """Read one part; a bare text is answer text."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        check_template(node.value, node, field, findings, groups)
        return Text(node.value)
    fields = Fields(node, field, findings, PART_KEYS)
    given = fields.given()
    if len(given) != 1:
        if isinstance(node, Entries) and (len(given) > 1 or not node.entries):
            what = f"{len(given)} kinds in one part: {', '.join(given)}" if given else "an empty part"
            findings.add(node.mark, field, what, "SCRIPT_VALUE", expected="one kind for each item of the list")
        return None
    return _part(given[0], fields, groups)


def _part(kind: str, fields: Fields, groups: frozenset[str]) -> Part | HttpError | None:
    node = fields.node(kind)
    if node is None:
        return None
    field = fields.path(kind)
    if kind == "tool_call":
        return _tool_call(node, field, fields.findings, groups)
    if kind == "http_error":
        return read_http_error(node, field, fields.findings, groups)
    if kind == "error_event":
        return _error_event(node, field, fields.findings)
    if kind == "fault":
        word = fields.choice("fault", PART_FAULTS)
        return Break(cast("FaultKind", word)) if word else None
    text = fields.text(kind)
    if text is None:
        return None
    if kind in {"text", "reasoning", "refusal"}:
        check_template(text, node, field, fields.findings, groups)
        if kind == "text":
            return Text(text)
        return Reasoning(text) if kind == "reasoning" else RefusalText(text)
    if kind == "gate":
        return AtGate(text) if check_gate_name(text, node, field, fields.findings) else None
    if kind == "malformed":
        return Malformed(text)
    if kind == "comment":
        if any(end in text for end in _LINE_ENDS):
            fields.add("comment", "a comment of several lines", "SCRIPT_VALUE", expected="one line")
        return Comment(text)
    try:
        return RawBytes(bytes.fromhex(text))
    except ValueError:
        fields.add("hex", "not pairs of hexadecimal digits", "SCRIPT_VALUE", expected='such as "ff fe 0a"')
        return None


def check_gate_name(name: str, node: Node, field: str, findings: Findings) -> bool:
    """Note a gate name that cannot stand in a control route."""
    if name and len(name) <= MAX_NAME and all(character.isalnum() or character in "-_." for character in name):
        return True
    findings.add(node.mark, field, f"'{name}' is no gate name", "SCRIPT_VALUE", expected="letters, digits, - _ .")
    return False


def check_template(text: str, node: Node, field: str, findings: Findings, groups: frozenset[str]) -> None:
    """Note placeholders that cannot be read or copy an unknown group."""
    try:
        pieces = split_template(text)
    except TemplateError as error:
        findings.add(node.mark, field, str(error), "SCRIPT_TEMPLATE")
        return
    for piece in pieces:
        if isinstance(piece, FromMatch) and piece.group not in groups:
            what = f"copies {{{{match.{piece.group}}}}}, which no condition of this step captures"
            known = f"one of {', '.join(sorted(groups))}" if groups else "a regex with (?P<name>…) in expect"
            findings.add(node.mark, field, what, "SCRIPT_TEMPLATE", expected=known)


def _check_deep(node: Node, field: str, findings: Findings, groups: frozenset[str]) -> None:
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            check_template(node.value, node, field, findings, groups)
    elif isinstance(node, Items):
        for at, item in enumerate(node.items):
            _check_deep(item, f"{field}[{at}]", findings, groups)
    else:
        for entry in node.entries:
            _check_deep(entry.value, f"{field}.{entry.key}", findings, groups)


def _tool_call(node: Node, field: str, findings: Findings, groups: frozenset[str]) -> ToolCall | None:
    fields = Fields(node, field, findings, CALL_KEYS)
    if not isinstance(node, Entries):
        return None
    fields.require("name", "the tool's name")
    name = fields.named("name")
    raw = fields.text("raw")
    arguments = _arguments(fields, groups)
    raw_node = fields.node("raw")
    if raw is not None and raw_node is not None:
        check_template(raw, raw_node, fields.path("raw"), findings, groups)
        if fields.has("arguments"):
            fields.add("raw", "both arguments and raw", "SCRIPT_VALUE", expected="one of them")
    id_node = fields.node("id")
    has_no_id = isinstance(id_node, Scalar) and id_node.value is None
    call_id = None if has_no_id else fields.text("id")
    index = fields.integer("index", 0, MAX_INDEX)
    if name is None:
        return None
    own_id = fields.has("id")
    return ToolCall(name, None if raw is not None else arguments, raw, call_id, own_id, index)


def _arguments(fields: Fields, groups: frozenset[str]) -> JsonObject:
    node = fields.node("arguments")
    if node is None:
        return {}
    value: Json
    if isinstance(node, Scalar) and isinstance(node.value, str):
        try:
            value = json.loads(node.value)
        except ValueError as error:
            what = f"the text is not JSON: {error}"
            fields.add("arguments", what, "SCRIPT_VALUE", expected="a mapping", fix="write raw: to send it anyway")
            return {}
    else:
        value = plain(node)
    if not isinstance(value, dict):
        fields.findings.wrong_type(node, fields.path("arguments"), "a mapping, or raw: with any text")
        return {}
    _check_deep(node, fields.path("arguments"), fields.findings, groups)
    return value


def _error_event(node: Node, field: str, findings: Findings) -> ErrorEvent:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return ErrorEvent(node.value)
    fields = Fields(node, field, findings, EVENT_KEYS)
    return ErrorEvent(
        fields.text("message") or "",
        fields.text("code"),
        fields.text("type") or "server_error",
        fields.choice("cause", EVENT_CAUSES),
    )


def read_http_error(node: Node, field: str, findings: Findings, groups: frozenset[str]) -> HttpError:
    """Read an error answer; a bare number is its status, a bare word its cause."""
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        if 400 <= node.value <= 599:
            return HttpError(node.value)
        findings.add(node.mark, field, f"{node.value} is no error status", "SCRIPT_VALUE", expected="400 to 599")
        return HttpError(500)
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _by_cause(node.value, node, field, findings)
    fields = Fields(node, field, findings, ERROR_KEYS)
    cause = fields.choice("cause", CAUSES)
    if isinstance(node, Entries) and not fields.has("cause"):
        fields.require("status", "400 to 599 (or cause: what went wrong)")
    message = fields.text("message")
    message_node = fields.node("message")
    if message is not None and message_node is not None:
        check_template(message, message_node, fields.path("message"), findings, groups)
    body = fields.text("body")
    least = 400 if body is None else 200
    usual = HttpError(0, cause=cause) if cause else HttpError(500)
    if cause == GATEWAY:
        usual = HttpError(GATEWAY_STATUS, body=GATEWAY_PAGE, content_type="text/html")
    return HttpError(
        status=fields.integer("status", least, 599) or usual.status,
        message=message or "",
        code=fields.text("code"),
        kind=fields.text("type"),
        headers=read_headers(fields),
        retry_after_s=fields.number("retry_after", 0, MAX_RETRY_S),
        retry_after_ms=fields.integer("retry_after_ms", 0, MAX_RETRY_S * 1000),
        body=usual.body if body is None else body,
        content_type=fields.header("content_type") or usual.content_type,
        cause=usual.cause,
    )


def _by_cause(word: str, node: Node, field: str, findings: Findings) -> HttpError:
    if word == GATEWAY:
        return HttpError(GATEWAY_STATUS, body=GATEWAY_PAGE, content_type="text/html")
    if word in CAUSES:
        return HttpError(0, cause=word)
    what = f"'{word}' is unknown{near_miss(word, CAUSES)}"
    findings.add(node.mark, field, what, "SCRIPT_VALUE", expected=f"a status, or one of {', '.join(CAUSES)}")
    return HttpError(500)


OWN_HEADERS: Sequence[str] = ("content-length", "transfer-encoding", "connection", "x-mock-provider")


def read_headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    """Read the key `headers`: names and values that may stand in an answer."""
    headers: list[tuple[str, str]] = []
    for entry in fields.entries("headers") or ():
        field = f"{fields.path('headers')}.{entry.key}"
        value = entry.value
        name = entry.key.lower()
        if not name or not all(character.isalnum() or character in "-_" for character in name) or not name.isascii():
            fields.findings.add(entry.mark, field, f"'{entry.key}' is no header name", "SCRIPT_VALUE")
        elif name in OWN_HEADERS:
            fields.findings.add(entry.mark, field, f"'{name}' is set by the provider itself", "SCRIPT_VALUE")
        elif isinstance(value, Scalar) and isinstance(value.value, str | int) and not isinstance(value.value, bool):
            text = str(value.value)
            if is_header_value(text):
                headers.append((name, text))
            else:
                fields.findings.add(value.mark, field, "a header value is printable ASCII", "SCRIPT_VALUE")
        else:
            fields.findings.wrong_type(value, field, "text")
    return tuple(headers)
