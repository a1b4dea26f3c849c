"""A reply as a response object: its output items, how it ended, and what it repeats of the request.

Room: pure; the Responses dialect and its event stream come in.
Source: the provider's published API reference, "The response object"; the fields are those of the published SDK's
types, which its strict response validation asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Counts, Reply, SaidCall
from mock_provider.dialects.openai_logprobs import logprobs_of
from mock_provider.dialects.openai_responses_input import custom_names
from mock_provider.dialects.openai_sealed import seal
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import ErrorEvent, Part, Reasoning, RefusalText, Text, ToolCall
from mock_provider.values import value

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_FINISHES: dict[str, tuple[str, str | None]] = {
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
}
_STATUSES = ("completed", "failed", "in_progress", "cancelled", "queued", "incomplete")
_LOGPROBS = "message.output_text.logprobs"


@dataclass(slots=True)
class Group:
    """The parts that make one output item, and what the script puts between them.

    Shape: kind is the item's type, "" for what stands before the first item; item is the finished one.
    """

    kind: str
    parts: list[Part] = field(default_factory=list)
    call: SaidCall | None = None
    item: JsonObject = field(default_factory=dict)


@value
class Ending:
    """How a response ended. Shape: status None means that the script leaves the end out."""

    status: str | None
    reason: str | None = None
    error: JsonObject | None = None


def response_id(reply: Reply) -> str:
    """The id of a response; clients look at its beginning, which is the provider's."""
    return f"resp_mock_{_digits(reply)}"


def item_id(kind: str, reply: Reply, number: int | str) -> str:
    """The id of an output item, from which the response it belongs to can be told."""
    return f"{_PREFIXES.get(kind, 'msg')}_mock_{_digits(reply)}_{number}"


def _digits(reply: Reply) -> str:
    return reply.id.rpartition("-")[2]


def ending_of(reply: Reply) -> Ending:
    """Spell the finish; an unknown word is an unknown status or an unknown reason of incompleteness."""
    broken = next((part for part in reply.parts if isinstance(part, ErrorEvent)), None)
    if broken is not None:
        return Ending("failed", None, {"code": broken.code or "server_error", "message": broken.message})
    if reply.finish is None:
        return Ending(None)
    if reply.finish in _STATUSES:
        return Ending(reply.finish)
    status, reason = _FINISHES.get(reply.finish, ("incomplete", reply.finish))
    return Ending(status, reason)


def wants_logprobs(asked: Asked) -> bool:
    """Whether the request asks for the probabilities of tokens."""
    include = asked.body.get("include")
    return isinstance(include, list) and _LOGPROBS in include


def text_logprobs(asked: Asked, text: str) -> list[Json]:
    """The probabilities of a text; none when they are not asked for."""
    top = asked.body.get("top_logprobs")
    return logprobs_of(text, top if isinstance(top, int) else 0) if wants_logprobs(asked) else []


def arrange(asked: Asked, reply: Reply) -> list[Group]:
    """Group the parts into output items. Shape: the first group is without an item."""
    custom = custom_names(asked.body.get("tools"))
    calls = iter(reply.calls)
    groups = [Group("")]
    for part in reply.parts:
        if isinstance(part, ToolCall):
            call = next(calls)
            groups.append(Group("custom_tool_call" if call.name in custom else "function_call", [part], call))
            continue
        if isinstance(part, Text | RefusalText | Reasoning):
            kind = "reasoning" if isinstance(part, Reasoning) else "message"
            if groups[-1].kind != kind:
                groups.append(Group(kind))
        groups[-1].parts.append(part)
    is_cut = ending_of(reply).status == "incomplete"
    for number, group in enumerate(groups[1:]):
        status = "incomplete" if is_cut and number == len(groups) - 2 else "completed"
        group.item = _item(asked, reply, group, item_id(group.kind, reply, number), status)
    return groups


def _item(asked: Asked, reply: Reply, group: Group, name: str, status: str) -> JsonObject:
    if group.call is not None:
        return call_item(group.kind, name, group.call, group.call.arguments, status)
    if group.kind == "message":
        content: list[Json] = [text_part(asked, kind, text) for kind, text in runs(group.parts)]
        return {"id": name, "type": "message", "status": status, "content": content, "role": "assistant"}
    thought = "".join(part.text for part in group.parts if isinstance(part, Reasoning))
    if is_open(reply):
        plain: list[Json] = [{"type": "reasoning_text", "text": thought}]
        return {"id": name, "type": "reasoning", "summary": [], "content": plain, "encrypted_content": None}
    summary: list[Json] = [{"type": "summary_text", "text": thought}]
    return {"id": name, "type": "reasoning", "encrypted_content": seal(thought), "summary": summary}


def is_open(reply: Reply) -> bool:
    """Whether reasoning is shown in plain text and not sealed, as the open servers do."""
    return reply.flavour == "vllm"


def call_item(kind: str, name: str, call: SaidCall, arguments: str, status: str) -> JsonObject:
    """A call with these arguments; one whose id the script leaves out has none."""
    item: JsonObject = {"id": name, "type": kind, "status": status}
    item["arguments" if kind == "function_call" else "input"] = arguments
    if call.id is not None:
        item["call_id"] = call.id
    return {**item, "name": call.name}


def runs(parts: Sequence[Part]) -> list[tuple[str, str]]:
    """The content parts of a message: neighbouring texts are one part, neighbouring refusals another."""
    found: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, Text | RefusalText):
            kind = "output_text" if isinstance(part, Text) else "refusal"
            if found and found[-1][0] == kind:
                found[-1] = (kind, found[-1][1] + part.text)
            else:
                found.append((kind, part.text))
    return found


def text_part(asked: Asked, kind: str, text: str) -> JsonObject:
    """One content part of a message."""
    if kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": text_logprobs(asked, text), "text": text}


def usage_of(counts: Counts) -> JsonObject:
    """Spell the counts."""
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": 0},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    }


def response_object(
    asked: Asked, reply: Reply, ending: Ending, output: list[Json], counts: Counts | None
) -> JsonObject:
    """A response, with what it repeats of its request and the provider's defaults for the rest."""
    body = asked.body
    response: JsonObject = {"id": response_id(reply), "object": "response", "created_at": reply.created}
    if ending.status is not None:
        response["status"] = ending.status
    response |= {
        "background": body.get("background") is True,
        "completed_at": reply.created if ending.status == "completed" else None,
        "error": ending.error,
        "incomplete_details": {"reason": ending.reason} if ending.status == "incomplete" else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None, **_mapping(body.get("reasoning"))},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": _tier(body.get("service_tier")),
        "store": body.get("store") is not False,
        "temperature": _or(body.get("temperature"), 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium", **_mapping(body.get("text"))},
        "tool_choice": _or(body.get("tool_choice"), "auto"),
        "tools": _tools(body.get("tools")),
        "top_logprobs": _or(body.get("top_logprobs"), 0),
        "top_p": _or(body.get("top_p"), 1.0),
        "truncation": _or(body.get("truncation"), "disabled"),
        "usage": usage_of(counts) if counts else None,
        "user": body.get("user"),
        "metadata": _mapping(body.get("metadata")),
    }
    return response


def _or(value: Json, usual: Json) -> Json:
    return usual if value is None else value


def _mapping(value: Json) -> JsonObject:
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else {}


def _tier(tier: Json) -> Json:
    return "default" if tier in (None, "auto") else tier


def _tools(tools: Json) -> list[Json]:
    """The tools as the provider repeats them: functions are strict unless they say no."""
    found: list[Json] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict) and tool.get("type") == "function":
            found.append({"description": None, "parameters": None, "strict": True, **tool})
        else:
            found.append(tool)
    return found
