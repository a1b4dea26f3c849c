"""What the chat completions endpoint refuses, in its own words.

Room: pure; only the chat dialect comes in.
Source: the error bodies of POST /v1/chat/completions as the provider sends them, and its published API schema.
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.dialects.openai_functions import refuse_functions, refuse_old_message
from mock_provider.dialects.openai_refusals import (
    empty,
    listed,
    missing,
    out_of_range,
    too_many,
    unknown_value,
    wrong_type,
)
from mock_provider.dialects.openai_tool_rules import (
    Offered,
    refuse_name,
    refuse_response_format,
    refuse_tool_choice,
    refuse_tools,
)
from mock_provider.json_values import Json, JsonObject

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
FIELDS = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0, 2),
    ("top_p", 0, 1),
    ("presence_penalty", -2, 2),
    ("frequency_penalty", -2, 2),
)
_COUNTS: tuple[tuple[str, int, int], ...] = (
    ("max_tokens", 1, 1 << 31),
    ("max_completion_tokens", 1, 1 << 31),
    ("n", 1, 128),
    ("top_logprobs", 0, 20),
)
_BOOLEANS = ("stream", "logprobs", "store", "parallel_tool_calls")


def refuse_body(body: JsonObject, offered: Offered, *, has_sound_messages: bool) -> Refusal | None:
    """Check a whole request body. Shape: the first rule that is broken, in the provider's order.

    offered are its tools; has_sound_messages says that the messages are known to break no rule.
    """
    return (
        _model(body)
        or (None if has_sound_messages else _messages(body))
        or refuse_tools(body, offered)
        or refuse_tool_choice(body, offered)
        or (refuse_functions(body) if "functions" in body or "function_call" in body else None)
        or _options(body)
        or refuse_response_format(body)
    )


def _model(body: JsonObject) -> Refusal | None:
    if "model" not in body or body["model"] == "":
        return Refusal(400, "missing_model", "you must provide a model parameter")
    return None if isinstance(body["model"], str) else wrong_type("model", "a string", body["model"])


def _messages(body: JsonObject) -> Refusal | None:
    if "messages" not in body:
        return missing("messages")
    messages = body["messages"]
    if not isinstance(messages, list):
        return wrong_type("messages", "an array of objects", messages)
    if not messages:
        return empty("messages")
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            return wrong_type(f"messages[{at}]", "an object", message)
        problem = refuse_message(message, at)
        if problem:
            return problem
    return _pairs([message for message in messages if isinstance(message, dict)])


def refuse_message(message: JsonObject, at: int) -> Refusal | None:
    """Check one message by itself."""
    here = f"messages[{at}]"
    if "role" not in message:
        return missing(f"{here}.role")
    role = message["role"]
    if not isinstance(role, str):
        return wrong_type(f"{here}.role", f"one of {listed(ROLES)}", role)
    if role not in ROLES:
        return unknown_value("unknown_role", f"{here}.role", role, ROLES)
    if role == "tool":
        if "tool_call_id" not in message:
            return missing(f"{here}.tool_call_id")
        if not isinstance(message["tool_call_id"], str):
            return wrong_type(f"{here}.tool_call_id", "a string", message["tool_call_id"])
    calls = message.get("tool_calls")
    problem = refuse_old_message(message, here)
    if problem is None and calls is not None:
        problem = _calls(calls, here, role)
    return problem or _content(message, role, at, has_calls=bool(calls))


def _content(message: JsonObject, role: str, at: int, *, has_calls: bool) -> Refusal | None:
    content = message.get("content")
    if content is None:
        if role == "assistant" and (has_calls or message.get("function_call") or message.get("refusal")):
            return None
        text = "Invalid value for 'content': expected a string, got null."
        return Refusal(400, "missing_content", text, param=f"messages.[{at}].content")
    if isinstance(content, str):
        return None
    here = f"messages[{at}].content"
    if not isinstance(content, list):
        return wrong_type(here, "one of a string or array of objects", content)
    if not content:
        return empty(here)
    for number, part in enumerate(content):
        if not isinstance(part, dict):
            return wrong_type(f"{here}[{number}]", "an object", part)
        problem = _content_part(part, role, f"{here}[{number}]")
        if problem:
            return problem
    return None


_PART_KINDS: Mapping[str, tuple[str, ...]] = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}


def _content_part(part: JsonObject, role: str, here: str) -> Refusal | None:
    if "type" not in part:
        return missing(f"{here}.type")
    kind = part["type"]
    known = _PART_KINDS.get(role, ("text",))
    if not isinstance(kind, str) or kind not in known:
        return unknown_value("unknown_content_part", f"{here}.type", kind, known)
    if kind not in part:
        return missing(f"{here}.{kind}")
    value = part[kind]
    if kind in ("text", "refusal"):
        return None if isinstance(value, str) else wrong_type(f"{here}.{kind}", "a string", value)
    if not isinstance(value, dict):
        return wrong_type(f"{here}.{kind}", "an object", value)
    if kind == "image_url" and not isinstance(value.get("url"), str):
        return missing(f"{here}.image_url.url")
    return None


def _calls(calls: Json, here: str, role: str) -> Refusal | None:
    if not isinstance(calls, list):
        return wrong_type(f"{here}.tool_calls", "an array of objects", calls)
    if role != "assistant":
        text = f"Unrecognized request argument supplied: '{here}.tool_calls' on a message with role '{role}'."
        return Refusal(400, "tool_calls_on_other_role", text, param=f"{here}.tool_calls")
    if not calls:
        return empty(f"{here}.tool_calls")
    for number, call in enumerate(calls):
        at = f"{here}.tool_calls[{number}]"
        if not isinstance(call, dict):
            return wrong_type(at, "an object", call)
        for name in ("id", "type"):
            if name not in call:
                return missing(f"{at}.{name}")
            if not isinstance(call[name], str):
                return wrong_type(f"{at}.{name}", "a string", call[name])
        if call["type"] not in ("function", "custom"):
            return unknown_value("unknown_call_type", f"{at}.type", call["type"], ("function", "custom"))
        if call["type"] == "function":
            problem = _called_function(call.get("function"), f"{at}.function")
            if problem:
                return problem
    return None


def _called_function(function: Json, here: str) -> Refusal | None:
    if function is None:
        return missing(here)
    if not isinstance(function, dict):
        return wrong_type(here, "an object", function)
    for name in ("name", "arguments"):
        if name not in function:
            return missing(f"{here}.{name}")
        if not isinstance(function[name], str):
            return wrong_type(f"{here}.{name}", "a string", function[name])
    return refuse_name(str(function["name"]), f"{here}.name")


def _pairs(messages: list[JsonObject]) -> Refusal | None:
    """Every call answered by tool messages right after it, every tool message an answer to such a call."""
    open_calls: list[str] = []
    answered: set[str] = set()
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = str(message["tool_call_id"])
            if call_id not in open_calls:
                if call_id in answered:
                    text = f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{at}]"
                    return Refusal(400, "duplicate_tool_result", text, param=f"messages.[{at}].tool_call_id")
                text = (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                    "with 'tool_calls'."
                )
                return Refusal(400, "orphan_tool_result", text, param=f"messages.[{at}].role")
            open_calls.remove(call_id)
            answered.add(call_id)
            continue
        if open_calls:
            return _unanswered(open_calls, at)
        answered = set()
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            open_calls = [str(call["id"]) for call in calls if isinstance(call, dict)]
            twice = next((one for one in open_calls if open_calls.count(one) > 1), None)
            if twice is not None:
                text = f"Duplicate value for 'tool_call_id' of '{twice}' in message[{at}]"
                return Refusal(400, "duplicate_call_id", text, param=f"messages.[{at}].tool_calls")
    return _unanswered(open_calls, len(messages)) if open_calls else None


def _unanswered(open_calls: list[str], at: int) -> Refusal:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
    )
    return Refusal(400, "unanswered_tool_call", text, param=f"messages.[{at}].role")


_OPTIONS = frozenset((*_BOOLEANS, *(one[0] for one in (*_RANGES, *_COUNTS)), "stream_options", "stop"))


def _options(body: JsonObject) -> Refusal | None:
    if _OPTIONS.isdisjoint(body):
        return None
    for name in _BOOLEANS:
        value = body.get(name)
        if value is not None and not isinstance(value, bool):
            return wrong_type(name, "a boolean", value)
    for name, least, most in _RANGES:
        problem = out_of_range(body.get(name), name, least, most, "decimal")
        if problem:
            return problem
    for count, low, high in _COUNTS:
        problem = out_of_range(body.get(count), count, low, high, "integer")
        if problem:
            return problem
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        text = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        return Refusal(400, "top_logprobs_without_logprobs", text, param="top_logprobs")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        return Refusal(400, "two_token_limits", text, code="invalid_parameter_combination", param="max_tokens")
    options = body.get("stream_options")
    if options is not None:
        if not body.get("stream"):
            text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
            return Refusal(400, "stream_options_without_stream", text, param="stream_options")
        if not isinstance(options, dict):
            return wrong_type("stream_options", "an object", options)
    return _stop(body.get("stop"))


def _stop(stop: Json) -> Refusal | None:
    if stop is None or isinstance(stop, str):
        return None
    if not isinstance(stop, list):
        return wrong_type("stop", "one of a string or array of strings", stop)
    if any(not isinstance(word, str) for word in stop):
        return wrong_type("stop[0]", "a string", next(word for word in stop if not isinstance(word, str)))
    if len(stop) > 4:
        return too_many("too_many_stops", "stop", len(stop), 4)
    return None
