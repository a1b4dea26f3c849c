"""LiteLLM, which speaks to each provider in that provider's own format.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

import json
import os
from typing import Any

# Its prices would otherwise come from the network while it is loaded.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
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

PROVIDERS = {"chat": "openai", "messages": "anthropic"}


class Weather(BaseModel):
    """The data that is asked for."""

    city: str
    degrees: int


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    to: dict[str, Any] = {"api_base": ask.url, "api_key": KEY, "timeout": ask.timeout_s}
    if ask.embeds:
        made = litellm.embedding(model="openai/text-embedding-3-small", input=list(ask.embeds), **to)
        said.vectors = [one["embedding"] for one in made.data]
        return
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    to["model"] = f"{PROVIDERS[ask.way]}/{MODEL}"
    # Its own retries with waits between them are those of the router.
    router = litellm.Router(model_list=[{"model_name": MODEL, "litellm_params": to}], num_retries=ask.retries)
    given: dict[str, Any] = {"model": MODEL, "messages": messages}
    if ask.way == "messages":
        given["max_tokens"] = MAX_TOKENS
        if ask.thinks:
            given["thinking"] = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
            given["allowed_openai_params"] = ["thinking"]  # it knows of the models it has heard of, and of no other
    if ask.has_tool:
        function = {"name": TOOL, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}
        given["tools"] = [{"type": "function", "function": function}]
    if ask.wants_data:
        said.data = json.loads(router.completion(response_format=Weather, **given).choices[0].message.content)
        return
    for _ in range(MAX_ROUNDS):
        message = _streamed(router, given, said) if ask.is_stream else _whole(router, given, said)
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            said.calls.append((call.function.name, arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(**arguments)})


def _whole(router: litellm.Router, given: dict[str, Any], said: Said) -> Any:
    final = router.completion(**given)
    message = final.choices[0].message
    said.text += message.content or ""
    said.thought += getattr(message, "reasoning_content", None) or ""
    _count(said, final.usage)
    return message


def _streamed(router: litellm.Router, given: dict[str, Any], said: Said) -> Any:
    chunks = []
    for chunk in router.completion(stream=True, stream_options={"include_usage": True}, **given):
        chunks.append(chunk)
        if chunk.choices:
            said.take(chunk.choices[0].delta.content)
            said.thought += getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
    final = litellm.stream_chunk_builder(chunks, messages=given["messages"])
    _count(said, final.usage)
    return final.choices[0].message


def _count(said: Said, usage: Any) -> None:
    said.count(
        input=usage.prompt_tokens,
        output=usage.completion_tokens,
        cached=usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None,
        reasoning=usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else None,
    )
