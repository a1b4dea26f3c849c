"""A reply as Gemini candidates: parts, finish reason, safety ratings, counts.

Room: pure; the Gemini dialect and its streams come in.
Source: the provider's published API reference (GenerateContentResponse). A function call ends with STOP; a call whose
arguments are no object never becomes a part, the candidate then ends with MALFORMED_FUNCTION_CALL.
"""

from __future__ import annotations

import json

from mock_provider.dialects.codec import Counts, Reply, SaidCall
from mock_provider.dialects.gemini_signatures import signature_of
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import Reasoning, RefusalText, Text, ToolCall
from mock_provider.values import value

FINISH_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_SAYS = (Text, Reasoning, RefusalText, ToolCall)


@value
class Ending:
    """How a candidate ends. Shape: reason None leaves it out; message explains a reason that is no success."""

    reason: str | None
    message: str | None = None
    is_blocked: bool = False


def ending_of(reply: Reply) -> Ending:
    """The finish of a reply in the words of this dialect."""
    broken = next((call for call in reply.calls if arguments_of(call) is None), None)
    if broken is not None and reply.finish == "tool_calls":
        return Ending("MALFORMED_FUNCTION_CALL", f"Malformed function call: {broken.name}({broken.arguments})")
    if reply.finish is None:
        return Ending(None)
    return Ending(FINISH_REASONS.get(reply.finish, reply.finish), None, reply.finish == "content_filter")


def is_prompt_blocked(reply: Reply) -> bool:
    """Whether the provider refuses the prompt: it is filtered, and nothing is said."""
    return reply.finish == "content_filter" and not any(isinstance(part, _SAYS) for part in reply.parts)


def arguments_of(call: SaidCall) -> JsonObject | None:
    """The arguments as an object; None when they are none."""
    try:
        value: Json = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def signed_at(reply: Reply) -> str:
    """Which part carries the signature of the thinking: the first call, else the last text.

    Shape: "call", "text", or "" for a model that has not thought. Gemini 3 always has.
    """
    has_calls = any(arguments_of(call) is not None for call in reply.calls)
    if not reply.reasoning and not (has_calls and reply.model.startswith("gemini-3")):
        return ""
    return "call" if has_calls else "text"


def signature(reply: Reply) -> str:
    """The signature of a reply."""
    return signature_of(reply.reasoning or reply.id)


def call_part(call: SaidCall, reply: Reply, *, is_signed: bool) -> JsonObject | None:
    """A function call as a part; None when it never became one."""
    arguments = arguments_of(call)
    if arguments is None:
        return None
    spelled: JsonObject = {} if call.id is None else {"id": call.id}
    part: JsonObject = {"functionCall": {**spelled, "name": call.name, "args": arguments}}
    return {**part, "thoughtSignature": signature(reply)} if is_signed else part


def whole_parts(reply: Reply) -> list[Json]:
    """The parts of a whole answer: neighbouring texts are one part."""
    parts: list[JsonObject] = []
    calls = iter(reply.calls)
    where = signed_at(reply)
    has_signed = False
    for part in reply.parts:
        if isinstance(part, Text | RefusalText | Reasoning):
            is_thought = isinstance(part, Reasoning)
            last = parts[-1] if parts else {}
            if "text" in last and last.get("thought", False) is is_thought:
                last["text"] = f"{last['text']}{part.text}"
            else:
                parts.append({"text": part.text, "thought": True} if is_thought else {"text": part.text})
        elif isinstance(part, ToolCall):
            spelled = call_part(next(calls), reply, is_signed=where == "call" and not has_signed)
            if spelled is not None:
                has_signed = True
                parts.append(spelled)
    if where == "text":
        texts = [part for part in parts if "text" in part and "thought" not in part]
        if not texts:
            parts.append({"text": ""})
        (texts or parts)[-1]["thoughtSignature"] = signature(reply)
    return list(parts)


def candidate_fields(index: int, parts: list[Json], ending: Ending | None) -> JsonObject:
    """A candidate as far as it has come. Shape: ending None while it goes on."""
    content: JsonObject = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    candidate: JsonObject = {"content": content}
    if ending is not None and ending.reason is not None:
        candidate["finishReason"] = ending.reason
    candidate["index"] = index
    if ending is not None and ending.message is not None:
        candidate["finishMessage"] = ending.message
    if ending is not None and ending.is_blocked:
        candidate["safetyRatings"] = [blocked_rating()]
    return candidate


def blocked_rating() -> JsonObject:
    """What a filter says about what it stopped."""
    return {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}


def usage_fields(counts: Counts, *, is_over: bool) -> JsonObject:
    """Spell the counts; here the thoughts are not part of what the candidates have."""
    said = counts.output - counts.reasoning if is_over else 0
    thought = counts.reasoning if is_over else 0
    usage: JsonObject = {"promptTokenCount": counts.input}
    if is_over:
        usage["candidatesTokenCount"] = said
    usage["totalTokenCount"] = counts.input + said + thought
    if counts.cached:
        usage["cachedContentTokenCount"] = counts.cached
    usage["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": counts.input}]
    if counts.cached:
        usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": counts.cached}]
    if thought:
        usage["thoughtsTokenCount"] = thought
    return usage


def response_fields(reply: Reply, candidates: list[Json], *, is_over: bool) -> JsonObject:
    """A response as far as it has come."""
    response: JsonObject = {"candidates": candidates}
    if is_prompt_blocked(reply):
        response = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [blocked_rating()]}}
    if reply.counts is not None:
        response["usageMetadata"] = usage_fields(reply.counts, is_over=is_over and not is_prompt_blocked(reply))
    return {**response, "modelVersion": reply.model, "responseId": reply.id}
