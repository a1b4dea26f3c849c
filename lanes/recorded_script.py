"""Recorded answers as scripts of the mock provider: one script a session, one step a call, one part a piece.

Room: the player comes in. It knows the product's chunks and the words of scripts, and sends nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from harness.model.chunks import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta, Usage, UsageChunk
from lanes.interaction import canonical_json
from lanes.normalize import Json
from lanes.overrides import Override
from lanes.recorded_calls import FINISH_WORDS, RecordedCall

HANG_GATE = "hang"  # a gate that nobody opens: the answer goes on when the client gives up


def compose_script(calls: Sequence[RecordedCall], overrides: Sequence[Override | None], model: str) -> dict[str, Json]:
    """The script of one session's calls, each with its override or None."""
    steps: list[Json] = [_step(call, entry) for call, entry in zip(calls, overrides, strict=True)]
    return {"version": 1, "model": model, "steps": steps}


def _step(call: RecordedCall, entry: Override | None) -> dict[str, Json]:
    step: dict[str, Json] = {"reply": _parts(call.chunks)}
    for chunk in call.chunks:
        if isinstance(chunk, UsageChunk):
            step["usage"] = cast("Json", script_usage(chunk.usage))
        elif isinstance(chunk, Finish):
            step["finish"] = FINISH_WORDS[chunk.kind]
    step.setdefault("usage", "none")
    if entry is not None:
        step["reply"] = _overridden(step["reply"], entry)
    return step


def _overridden(reply: Json, entry: Override) -> Json:
    """What came before the end the log does not tell, and then that end; a patch stands in place of everything."""
    if entry.kind == "patch":
        return list(entry.parts)
    before = reply if isinstance(reply, list) else []
    return [*before, *([{"gate": HANG_GATE}] if entry.kind == "hang" else entry.parts)]


def _parts(chunks: Sequence[Chunk]) -> list[Json]:
    """The parts in order of arrival, each piece on its own."""
    parts: list[Json] = []
    called: set[str] = set()
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            parts.append({"text": _escaped(chunk.text)})
        elif isinstance(chunk, ReasoningDelta):
            parts.append({"reasoning": _escaped(chunk.text)})
        elif isinstance(chunk, ToolCallDelta) and chunk.id not in called:
            called.add(chunk.id)
            parts.extend(_call_parts([each for each in chunks if isinstance(each, ToolCallDelta)], chunk))
    return parts


def _call_parts(deltas: Sequence[ToolCallDelta], opening: ToolCallDelta) -> list[Json]:
    """One tool call: a part of the script when it came as the mock provider sends calls, else event by event.

    Limits: the fragments of calls that came interleaved are sent call by call.
    """
    own = [delta for delta in deltas if delta.id == opening.id]
    index = list(dict.fromkeys(delta.id for delta in deltas)).index(opening.id)
    fragments = [delta.arguments_delta for delta in own]
    if len(fragments) == 2 and not fragments[0] and opening.name is not None:
        return [{"tool_call": {"id": opening.id, "name": opening.name, "raw": _escaped(fragments[1])}}]
    return [{"hex": _event(delta, index).hex()} for delta in own]


def _event(delta: ToolCallDelta, index: int) -> bytes:
    """One fragment as an event of the chat dialect."""
    function: dict[str, Json] = {"arguments": delta.arguments_delta}
    call: dict[str, Json] = {"index": index, "id": delta.id, "type": "function", "function": function}
    if delta.name is not None:
        function["name"] = delta.name
    event: Json = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    return b"data: " + canonical_json(event) + b"\n\n"


def script_usage(usage: Usage) -> dict[str, int]:
    """Counts as a script gives them: cached input is part of the input there, and apart in the log."""
    cached = usage.cache_read_tokens or 0
    counts = {"input": usage.input_tokens + cached, "output": usage.output_tokens}
    if usage.cache_read_tokens is not None:
        counts["cached"] = cached
    if usage.reasoning_tokens is not None:
        counts["reasoning"] = usage.reasoning_tokens
    return counts


def _escaped(text: str) -> str:
    """A text as a script writes it: braces that would copy from the request are doubled."""
    return text.replace("{{", "{{{{").replace("}}", "}}}}")
