"""What the Ollama endpoints refuse.

Room: pure; only the Ollama dialect comes in.
Source: the server's own source text (api/types.go for fields and types, server/routes.go for the checks). The server
itself renders any history into its template; that calls and results belong together is this provider's own rule.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.dialects.ollama_refusals import refuse, unknown_model, wrong_type
from mock_provider.json_values import Json, JsonObject, canonical_json
from mock_provider.steps import Script

_TEXT, _FLAG, _COUNT, _MAPPING = "string", "bool", "int", "map[string]interface {}"
_IMAGES = "[]api.ImageData"
_SHARED = {
    "model": _TEXT,
    "stream": _FLAG,
    "format": "",
    "keep_alive": "",
    "options": _MAPPING,
    "think": "",
    "truncate": _FLAG,
    "shift": _FLAG,
    "logprobs": _FLAG,
    "top_logprobs": _COUNT,
}
CHAT_FIELDS: Mapping[str, str] = {**_SHARED, "messages": "[]api.Message", "tools": "api.Tools"}
GENERATE_FIELDS: Mapping[str, str] = {
    **_SHARED,
    "prompt": _TEXT,
    "suffix": _TEXT,
    "system": _TEXT,
    "template": _TEXT,
    "context": "[]int",
    "raw": _FLAG,
    "images": _IMAGES,
    "width": _COUNT,
    "height": _COUNT,
    "steps": _COUNT,
}
_MESSAGE_FIELDS: Mapping[str, str] = {
    "role": _TEXT,
    "content": _TEXT,
    "thinking": _TEXT,
    "images": _IMAGES,
    "tool_calls": "[]api.ToolCall",
    "tool_name": _TEXT,
    "tool_call_id": _TEXT,
}
_PYTHON: Mapping[str, tuple[type, ...]] = {_TEXT: (str,), _FLAG: (bool,), _COUNT: (int,), _MAPPING: (dict,)}
ROLES = ("system", "user", "assistant", "tool")
_THINK_LEVELS = ("high", "medium", "low", "max")
_DURATION = re.compile(r"-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+|0")
_FLOATS = (
    "temperature",
    "top_p",
    "min_p",
    "typical_p",
    "tfs_z",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "mirostat_tau",
    "mirostat_eta",
)
_INTEGERS = (
    "num_ctx",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
    "num_keep",
    "seed",
    "num_predict",
    "top_k",
    "repeat_last_n",
    "mirostat",
)
MAX_TOP_LOGPROBS = 20


def refuse_fields(body: Json, struct: str, fields: Mapping[str, str], script: Script) -> tuple[str, ...] | Refusal:
    """Check the types of a body's fields. Shape: struct is the request's type; the names of unknown fields."""
    if not isinstance(body, dict):
        return wrong_type("body", body, f"api.{struct}")
    for name, kind in fields.items():
        refused = _typed(body.get(name), f"{struct}.{name}", kind)
        if refused:
            return refused
    extra = tuple(name for name in body if name not in fields)
    if extra and script.refuses_extra_fields:
        return refuse("extra_field", f'json: unknown field "{extra[0]}"')
    return extra


def _typed(value: Json, field: str, kind: str) -> Refusal | None:
    if value is None or not kind:
        return None
    wanted = _PYTHON.get(kind, (list,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != _FLAG):
        return wrong_type(field, value, kind)
    return _images(value, field) if kind == _IMAGES else None


def _images(images: Json, field: str) -> Refusal | None:
    for image in images if isinstance(images, list) else []:
        if not isinstance(image, str):
            return wrong_type(field, image, "api.ImageData")
        try:
            base64.b64decode(image, validate=True)
        except (binascii.Error, ValueError):
            at = next(
                (at for at, one in enumerate(image) if not (one.isascii() and (one.isalnum() or one in "+/="))), 0
            )
            return refuse("bad_base64", f"illegal base64 data at input byte {at}")
    return None


def refuse_model(body: JsonObject, script: Script) -> Refusal | None:
    """Refuse a request without a model, or for one that the script does not list; `:latest` may be left out."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        return refuse("missing_model", "model is required")
    known = {name.removesuffix(":latest") for name in script.models}
    return unknown_model(model) if known and model.removesuffix(":latest") not in known else None


def refuse_options(body: JsonObject) -> Refusal | None:
    """Check what chat and generate have in common. Shape: the first rule that is broken."""
    top = body.get("top_logprobs")
    if isinstance(top, int) and not 0 <= top <= MAX_TOP_LOGPROBS:
        return refuse("out_of_range", f"top_logprobs must be between 0 and {MAX_TOP_LOGPROBS}")
    keep = body.get("keep_alive")
    if isinstance(keep, str) and not _DURATION.fullmatch(keep):
        return refuse("bad_option", f'time: invalid duration "{keep}"')
    if isinstance(keep, bool | list | dict):
        return refuse("wrong_type", "unsupported type of keep_alive: expected a number of seconds or a duration")
    return _think(body.get("think")) or _format(body.get("format")) or _model_options(body.get("options"))


def _think(think: Json) -> Refusal | None:
    words = ", ".join(f'"{level}"' for level in _THINK_LEVELS)
    if think is None or isinstance(think, bool) or think in _THINK_LEVELS:
        return None
    if isinstance(think, str):
        return refuse("bad_option", f'invalid think value: "{think}" (must be {words}, true, or false)')
    return refuse("wrong_type", f"think must be a boolean or string ({words}, true, or false)")


def _format(form: Json) -> Refusal | None:
    if form in (None, "", "json"):
        return None
    if not isinstance(form, dict):
        shown = canonical_json(form).replace('"', '\\"')
        return refuse("bad_option", f'invalid format: "{shown}"; expected "json" or a valid JSON Schema object')
    return refuse("bad_schema", "invalid JSON schema in format") if schema_problem(form) else None


def _model_options(options: Json) -> Refusal | None:
    for name, value in options.items() if isinstance(options, dict) else ():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or (name in (*_FLOATS, *_INTEGERS) and is_number):
            continue
        if name in _FLOATS:
            return refuse("wrong_type", f'option "{name}" must be of type float32')
        if name in _INTEGERS:
            return refuse("wrong_type", f'option "{name}" must be of type integer')
        if name == "stop" and (not isinstance(value, list) or any(not isinstance(one, str) for one in value)):
            what = "of type array" if not isinstance(value, list) else "of an array of strings"
            return refuse("wrong_type", f'option "stop" must be {what}')
    return None


def refuse_messages(messages: Json) -> Refusal | None:
    """Check a history. Shape: the first rule that is broken."""
    checked: list[JsonObject] = []
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            return wrong_type("ChatRequest.messages", message, "api.Message")
        for name, kind in _MESSAGE_FIELDS.items():
            refused = _typed(message.get(name), f"ChatRequest.messages.{name}", kind)
            if refused:
                return refused
        role = str(message.get("role") or "")
        if role.lower() not in ROLES:
            text = f"invalid role: {role}, role must be one of [{', '.join(ROLES)}]"
            return refuse("unknown_role", text)
        refused = _calls(message)
        if refused:
            return refused
        checked.append(message)
    return _pairs(checked)


def _calls(message: JsonObject) -> Refusal | None:
    field = "ChatRequest.messages.tool_calls"
    for call in calls_of(message):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict):
            return wrong_type(field, call, "api.ToolCall")
        if not isinstance(function, dict):
            return wrong_type(f"{field}.function", function, "api.ToolCallFunction")
        if not isinstance(function.get("name"), str) or not function["name"]:
            return wrong_type(f"{field}.function.name", function.get("name"), _TEXT)
        if not isinstance(function.get("arguments", {}), dict):
            given = function["arguments"]
            return wrong_type(f"{field}.function.arguments", given, "api.ToolCallFunctionArguments")
    return None


def calls_of(message: JsonObject) -> list[Json]:
    """The tool calls of a message, checked or not."""
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _pairs(messages: list[JsonObject]) -> Refusal | None:
    """Every call answered by a tool message right behind it, every tool message an answer."""
    waiting: list[JsonObject] = []
    for at, message in enumerate(messages):
        if str(message.get("role")).lower() == "tool":
            answered = _answered(message, waiting)
            if answered is None:
                name = message.get("tool_name") or message.get("tool_call_id")
                what = f" for '{name}'" if name else ""
                text = (
                    f"messages[{at}]: a tool message{what} must follow the assistant message whose tool call it answers"
                )
                return refuse("orphan_tool_result", text)
            waiting.remove(answered)
            continue
        if waiting:
            return _unanswered(waiting, at)
        waiting = [call for call in calls_of(message) if isinstance(call, dict)]
    return _unanswered(waiting, len(messages)) if waiting else None


def _unanswered(waiting: list[JsonObject], at: int) -> Refusal:
    names = ", ".join(name_of(call) for call in waiting)
    text = f"messages[{at}]: expected tool messages that answer the tool calls before: {names}"
    return refuse("unanswered_tool_call", text)


def _answered(message: JsonObject, waiting: list[JsonObject]) -> JsonObject | None:
    """The call that a tool message answers: by its id or its name if it has one, else the first."""
    name, call_id = message.get("tool_name"), message.get("tool_call_id")
    for call in waiting:
        if call_id and call.get("id") and call["id"] != call_id:
            continue
        if not name or name_of(call) == name:
            return call
    return None


def name_of(call: JsonObject) -> str:
    """The name of the function that is called."""
    function = call.get("function")
    return str(function.get("name")) if isinstance(function, dict) else ""


def refuse_tools(tools: Json) -> Refusal | None:
    """Check the tools. Shape: the first rule that is broken."""
    names: list[str] = []
    for at, tool in enumerate(tools if isinstance(tools, list) else []):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(tool, dict) or not isinstance(function, dict):
            return wrong_type("ChatRequest.tools" + (".function" if isinstance(tool, dict) else ""), tool, "api.Tool")
        name, parameters = function.get("name"), function.get("parameters")
        if not isinstance(name, str) or not name:
            return refuse("missing_field", f"tools[{at}]: a function needs a name")
        if name in names:
            return refuse("duplicate_tool_name", f"tools[{at}]: there is a function '{name}' already")
        names.append(name)
        if parameters is not None and not isinstance(parameters, dict):
            return wrong_type("ChatRequest.tools.function.parameters", parameters, "api.ToolFunctionParameters")
        problem = schema_problem(parameters) if isinstance(parameters, dict) else None
        if problem:
            return refuse("bad_tool_schema", f"tools[{at}]: parameters of '{name}' are no JSON schema: {problem}")
    return None


def offered_names(tools: Json) -> tuple[str, ...]:
    """The names of the tools, once they are checked."""
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return tuple(str(function["name"]) for function in functions if isinstance(function, dict))
