"""The published OpenAI client for Python, on both of its addresses.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

import json
from typing import Any

import openai
from pydantic import BaseModel

from lanes.offline.clients.asking import (
    KEY,
    MAX_ROUNDS,
    MODEL,
    QUESTION,
    SYSTEM,
    TOOL,
    TOOL_SCHEMA,
    TOOL_TEXT,
    Ask,
    Said,
    weather,
)

FUNCTION = {"name": TOOL, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA, "strict": True}


class Weather(BaseModel):
    """The data that is asked for."""

    city: str
    degrees: int


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    with openai.OpenAI(
        api_key=KEY,
        base_url=ask.url,
        max_retries=ask.retries,
        timeout=ask.timeout_s,
        # So that a field which is missing or of another type is an error. Vectors come in base64: this client asks
        # for that by itself, and its own types refuse it.
        _strict_response_validation=not ask.embeds,
    ) as client:
        if ask.embeds:
            made = client.embeddings.create(model="text-embedding-3-small", input=list(ask.embeds))
            said.vectors = [one.embedding for one in made.data]
            said.count(input=made.usage.prompt_tokens)
        elif ask.way == "responses":
            _responses(client, ask, said)
        else:
            _chat(client, ask, said)


def _chat(client: openai.OpenAI, ask: Ask, said: Said) -> None:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    more: dict[str, Any] = {"tools": [{"type": "function", "function": FUNCTION}]} if ask.has_tool else {}
    if ask.wants_data:
        parsed = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Weather)
        found = parsed.choices[0].message.parsed
        said.data = found.model_dump() if found else None
        return
    for _ in range(MAX_ROUNDS):
        if ask.is_stream:
            more["stream_options"] = {"include_usage": True}
            with client.chat.completions.stream(model=MODEL, messages=messages, **more) as stream:
                for event in stream:
                    if event.type == "content.delta":
                        said.take(event.delta)
                    elif event.type == "chunk" and event.chunk.choices:
                        said.thought += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
                final = stream.get_final_completion()
            message: Any = final.choices[0].message
        else:
            final = client.chat.completions.create(model=MODEL, messages=messages, **more)
            message = final.choices[0].message
            said.text += message.content or ""
            said.thought += getattr(message, "reasoning_content", None) or ""
        _count_chat(said, final.usage)
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            said.calls.append((call.function.name, arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(**arguments)})


def _count_chat(said: Said, usage: Any) -> None:
    said.count(
        input=usage.prompt_tokens,
        output=usage.completion_tokens,
        cached=usage.prompt_tokens_details.cached_tokens,
        reasoning=usage.completion_tokens_details.reasoning_tokens,
    )


def _responses(client: openai.OpenAI, ask: Ask, said: Said) -> None:
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    more: dict[str, Any] = {"tools": [{"type": "function", **FUNCTION}]} if ask.has_tool else {}
    if ask.thinks:
        more["reasoning"] = {"summary": "auto"}
    if ask.wants_data:
        parsed = client.responses.parse(model=MODEL, instructions=SYSTEM, input=items, text_format=Weather)
        said.data = parsed.output_parsed.model_dump() if parsed.output_parsed else None
        return
    for _ in range(MAX_ROUNDS):
        if ask.is_stream:
            with client.responses.stream(model=MODEL, instructions=SYSTEM, input=items, **more) as stream:
                for event in stream:
                    if event.type == "response.output_text.delta":
                        said.take(event.delta)
                    elif event.type == "response.reasoning_summary_text.delta":
                        said.thought += event.delta
                    elif event.type == "error":
                        raise openai.APIError(event.message, stream._response.request, body=None)
                final: Any = stream.get_final_response()
        else:
            final = client.responses.create(model=MODEL, instructions=SYSTEM, input=items, **more)
            said.text += final.output_text
            said.thought += "".join(
                part.text for item in final.output if item.type == "reasoning" for part in item.summary
            )
        said.count(
            input=final.usage.input_tokens,
            output=final.usage.output_tokens,
            cached=final.usage.input_tokens_details.cached_tokens,
            reasoning=final.usage.output_tokens_details.reasoning_tokens,
        )
        calls = [item for item in final.output if item.type == "function_call"]
        if not calls:
            return
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in final.output]
        for call in calls:
            arguments = json.loads(call.arguments)
            said.calls.append((call.name, arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": weather(**arguments)})
