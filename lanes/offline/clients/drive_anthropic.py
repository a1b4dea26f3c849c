"""The published Anthropic client for Python.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

from typing import Any

import anthropic
from pydantic import BaseModel

from lanes.offline.clients.asking import (
    KEY,
    MAX_ROUNDS,
    MAX_TOKENS,
    MODEL,
    QUESTION,
    SYSTEM,
    THINKING_TOKENS,
    TOOL,
    TOOL_SCHEMA,
    TOOL_TEXT,
    Ask,
    Said,
    weather,
)


class Weather(BaseModel):
    """The data that is asked for."""

    city: str
    degrees: int


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    given: dict[str, Any] = {"model": MODEL, "max_tokens": MAX_TOKENS, "system": SYSTEM, "messages": messages}
    if ask.has_tool:
        given["tools"] = [{"name": TOOL, "description": TOOL_TEXT, "input_schema": TOOL_SCHEMA}]
    if ask.thinks:
        given["thinking"] = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
    with anthropic.Anthropic(
        api_key=KEY,
        base_url=ask.url,
        max_retries=ask.retries,
        timeout=ask.timeout_s,
        _strict_response_validation=True,  # so that a field which is missing or of another type is an error
    ) as client:
        if ask.wants_data:
            parsed = client.messages.parse(output_format=Weather, **given).parsed_output
            said.data = parsed.model_dump() if parsed else None
            return
        for _ in range(MAX_ROUNDS):
            final = _streamed(client, given, said) if ask.is_stream else _whole(client, given, said)
            _count(said, final.usage)
            messages.append({"role": "assistant", "content": final.content})
            calls = [block for block in final.content if block.type == "tool_use"]
            if not calls:
                return
            said.calls += [(call.name, call.input) for call in calls]
            results = [{"type": "tool_result", "tool_use_id": c.id, "content": weather(**c.input)} for c in calls]
            messages.append({"role": "user", "content": results})


def _whole(client: anthropic.Anthropic, given: dict[str, Any], said: Said) -> Any:
    final = client.messages.create(**given)
    said.text += "".join(block.text for block in final.content if block.type == "text")
    said.thought += "".join(block.thinking for block in final.content if block.type == "thinking")
    return final


def _streamed(client: anthropic.Anthropic, given: dict[str, Any], said: Said) -> Any:
    with client.messages.stream(**given) as stream:
        for event in stream:
            if event.type == "text":
                said.take(event.text)
            elif event.type == "thinking":
                said.thought += event.thinking
        return stream.get_final_message()


def _count(said: Said, usage: Any) -> None:
    cached = usage.cache_read_input_tokens or 0
    details = usage.output_tokens_details
    said.count(
        input=usage.input_tokens + cached,  # this provider counts what came from its cache apart
        output=usage.output_tokens,
        cached=cached,
        reasoning=details.thinking_tokens if details else None,
    )
