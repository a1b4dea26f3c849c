"""Answers of the OpenAI formats read back: chat completions and Responses, whole and streamed.

Room: pure; decoding comes in.
Source: as dialects.openai_chat and dialects.openai_responses.
"""

from __future__ import annotations

from collections.abc import Iterable

from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.said import (
    Said,
    SaidCounts,
    SaidPart,
    a_count,
    a_text,
    a_text_or_none,
    an_object,
    events_of,
    failure_of,
    merged,
    objects,
    read_json,
)

REASONING_FIELDS = ("reasoning_content", "reasoning")


def read_chat(body: str, *, is_stream: bool) -> Said | None:
    """An answer of chat completions; None for one that cannot be told in parts, such as several choices."""
    if is_stream:
        return _chat_stream(events_of(body))
    answer = an_object(read_json(body))
    if "error" in answer and "choices" not in answer:
        return Said((), None, None, None, failure_of(answer["error"]))
    choices = objects(answer.get("choices"))
    if len(choices) != 1:
        return None
    message = an_object(choices[0].get("message"))
    parts = [*_chat_texts(message), *map(_chat_call, objects(message.get("tool_calls")))]
    finish = a_text_or_none(choices[0].get("finish_reason"))
    return Said(merged(parts), finish, _chat_counts(answer.get("usage")), a_text_or_none(answer.get("model")))


def _chat_texts(message: JsonObject) -> list[SaidPart]:
    parts = [SaidPart("reasoning", a_text(message.get(name))) for name in REASONING_FIELDS if a_text(message.get(name))]
    return [
        *parts[:1],  # some services say it twice, under both names
        SaidPart("text", a_text(message.get("content"))),
        SaidPart("refusal", a_text(message.get("refusal"))),
    ]


def _chat_call(call: JsonObject) -> SaidPart:
    inner = an_object(call.get("function", call.get("custom")))
    arguments = a_text(inner.get("arguments", inner.get("input")))
    return SaidPart("call", arguments, a_text(inner.get("name")), a_text_or_none(call.get("id")))


def _chat_stream(events: Iterable[JsonObject]) -> Said | None:
    parts: list[SaidPart] = []
    calls: dict[int, int] = {}
    finish: str | None = None
    counts: SaidCounts | None = None
    model: str | None = None
    failure = None
    for event in events:
        if "error" in event:
            failure = failure_of(event["error"])
            continue
        model = model or a_text_or_none(event.get("model")) or None
        counts = _chat_counts(event.get("usage")) or counts
        for choice in objects(event.get("choices")):
            if a_count(choice.get("index")):
                return None
            delta = an_object(choice.get("delta"))
            parts += _chat_texts(delta)
            for call in objects(delta.get("tool_calls")):
                _grow(parts, calls, call)
            finish = a_text_or_none(choice.get("finish_reason")) or finish
    return Said(merged(parts), finish, counts, model, failure)


def _grow(parts: list[SaidPart], calls: dict[int, int], call: JsonObject) -> None:
    """Add a fragment of a call to the call it belongs to."""
    index = a_count(call.get("index"))
    fragment = _chat_call(call)
    at = calls.get(index)
    if at is None or (fragment.id and fragment.id != parts[at].id):
        calls[index] = len(parts)
        parts.append(fragment)
    else:
        old = parts[at]
        parts[at] = SaidPart("call", old.text + fragment.text, old.name or fragment.name, old.id)


def _chat_counts(usage: Json) -> SaidCounts | None:
    if not isinstance(usage, dict):
        return None
    given, said = a_count(usage.get("prompt_tokens")), a_count(usage.get("completion_tokens"))
    details = an_object(usage.get("prompt_tokens_details"))
    cached = a_count(details.get("cached_tokens", usage.get("prompt_cache_hit_tokens")))
    reasoning = a_count(an_object(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return SaidCounts(given, said, min(cached, given), min(reasoning, said))


def read_response(body: str, *, is_stream: bool) -> Said | None:
    """An answer of Responses; a stream's last event holds the whole of it."""
    answer = an_object(read_json(body))
    if is_stream:
        events = events_of(body)
        ends = [event for event in events if isinstance(event.get("response"), dict)]
        broken = next((event for event in events if event.get("type") == "error"), None)
        if broken is not None or not ends:
            failure = failure_of(an_object(broken).get("error", broken)) if broken else ("", None, None)
            return Said((), None, None, None, failure) if broken else None
        answer = an_object(ends[-1]["response"])
    if answer.get("status") not in ("completed", "incomplete"):
        return None
    parts: list[SaidPart] = []
    for item in objects(answer.get("output")):
        found = _response_item(item)
        if found is None:
            return None
        parts += found
    return Said(merged(parts), _response_finish(answer, parts), _response_counts(answer), _model(answer))


def _model(answer: JsonObject) -> str | None:
    return a_text_or_none(answer.get("model"))


def _response_item(item: JsonObject) -> list[SaidPart] | None:
    """The parts of an output item; None for a kind that a script cannot say."""
    kind = item.get("type")
    if kind == "message":
        return [
            SaidPart("refusal", a_text(part.get("refusal")))
            if part.get("type") == "refusal"
            else SaidPart("text", a_text(part.get("text")))
            for part in objects(item.get("content"))
        ]
    if kind == "reasoning":
        listed = objects(item.get("content")) or objects(item.get("summary"))
        return [SaidPart("reasoning", a_text(part.get("text"))) for part in listed]
    if kind in ("function_call", "custom_tool_call"):
        arguments = a_text(item.get("arguments", item.get("input")))
        return [SaidPart("call", arguments, a_text(item.get("name")), a_text_or_none(item.get("call_id")))]
    return None


def _response_finish(answer: JsonObject, parts: list[SaidPart]) -> str:
    if answer.get("status") == "completed":
        return "tool_calls" if any(part.kind == "call" for part in parts) else "stop"
    reason = a_text(an_object(answer.get("incomplete_details")).get("reason"))
    return {"max_output_tokens": "length"}.get(reason, reason)


def _response_counts(answer: JsonObject) -> SaidCounts | None:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    given, said = a_count(usage.get("input_tokens")), a_count(usage.get("output_tokens"))
    cached = a_count(an_object(usage.get("input_tokens_details")).get("cached_tokens"))
    reasoning = a_count(an_object(usage.get("output_tokens_details")).get("reasoning_tokens"))
    return SaidCounts(given, said, min(cached, given), min(reasoning, said))
