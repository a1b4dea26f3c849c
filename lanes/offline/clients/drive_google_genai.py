"""Google's published Python client.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

from typing import Any

from google import genai
from google.genai import types

from lanes.offline.clients.asking import (
    DATA_SCHEMA,
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

VECTOR_SIZE = 1536


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    options = types.HttpOptions(
        base_url=ask.url,
        timeout=int(ask.timeout_s * 1000),
        retry_options=types.HttpRetryOptions(attempts=ask.retries + 1, initial_delay=1, max_delay=1, jitter=0),
    )
    with genai.Client(api_key=KEY, http_options=options) as client:
        if ask.embeds:
            size = types.EmbedContentConfig(output_dimensionality=VECTOR_SIZE)
            made = client.models.embed_content(model="gemini-embedding-001", contents=list(ask.embeds), config=size)
            said.vectors = [one.values or [] for one in made.embeddings or []]
        else:
            _converse(client, ask, said)


def _converse(client: genai.Client, ask: Ask, said: Said) -> None:
    config: dict[str, Any] = {"system_instruction": SYSTEM}
    if ask.has_tool:
        declared = {"name": TOOL, "description": TOOL_TEXT, "parameters_json_schema": TOOL_SCHEMA}
        config |= {"tools": [{"function_declarations": [declared]}], "automatic_function_calling": {"disable": True}}
    if ask.thinks:
        config["thinking_config"] = {"include_thoughts": True}
    if ask.wants_data:
        config |= {"response_mime_type": "application/json", "response_json_schema": DATA_SCHEMA}
    contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    for _ in range(MAX_ROUNDS):
        given: dict[str, Any] = {"model": MODEL, "contents": contents, "config": config}
        pieces = client.models.generate_content_stream(**given) if ask.is_stream else [_whole(client, given)]
        calls: list[types.FunctionCall] = []
        for piece in pieces:
            _take(piece, said)
            calls += piece.function_calls or []
            contents.append((piece.candidates or [types.Candidate()])[0].content)
            if ask.wants_data:
                said.data = piece.parsed if isinstance(piece.parsed, dict) else None
        if not calls:
            return
        said.calls += [(call.name or "", call.args or {}) for call in calls]
        results = [{"name": call.name, "response": {"result": weather(**(call.args or {}))}} for call in calls]
        contents.append({"role": "user", "parts": [{"function_response": result} for result in results]})


def _whole(client: genai.Client, given: dict[str, Any]) -> types.GenerateContentResponse:
    return client.models.generate_content(**given)


def _take(piece: types.GenerateContentResponse, said: Said) -> None:
    for candidate in piece.candidates or []:
        for part in (candidate.content or types.Content()).parts or []:
            if part.thought:
                said.thought += part.text or ""
            else:
                said.take(part.text)
    usage = piece.usage_metadata
    if usage and usage.candidates_token_count is not None:
        thoughts = usage.thoughts_token_count or 0
        said.count(
            input=usage.prompt_token_count,
            output=usage.candidates_token_count + thoughts,  # this provider counts the thoughts apart
            cached=usage.cached_content_token_count,
            reasoning=thoughts,
        )
