"""Ollama's published Python client.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

import json
from typing import Any

import ollama

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

FUNCTION = {"name": TOOL, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    headers = {"Authorization": f"Bearer {KEY}"}
    with ollama.Client(ask.url, headers=headers, timeout=ask.timeout_s) as client:
        if ask.embeds:
            said.vectors = [list(vector) for vector in client.embed("embedder", list(ask.embeds)).embeddings]
        else:
            _chat(client, ask, said)


def _chat(client: ollama.Client, ask: Ask, said: Said) -> None:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    given: dict[str, Any] = {"model": MODEL, "messages": messages}
    if ask.has_tool:
        given["tools"] = [{"type": "function", "function": FUNCTION}]
    if ask.thinks:
        given["think"] = True
    if ask.wants_data:
        given["format"] = DATA_SCHEMA
    for _ in range(MAX_ROUNDS):
        pieces = client.chat(**given, stream=True) if ask.is_stream else [client.chat(**given)]
        turn = ollama.Message(role="assistant", content="", tool_calls=[])
        for piece in pieces:
            said.take(piece.message.content)
            said.thought += piece.message.thinking or ""
            said.count(input=piece.prompt_eval_count, output=piece.eval_count)
            turn.content = (turn.content or "") + (piece.message.content or "")
            turn.tool_calls = [*(turn.tool_calls or []), *(piece.message.tool_calls or [])]
        if ask.wants_data:
            said.data = json.loads(said.text)
        calls = [call.function for call in turn.tool_calls or []]
        if not calls:
            return
        said.calls += [(call.name, dict(call.arguments)) for call in calls]
        messages.append(turn)
        messages += [{"role": "tool", "tool_name": call.name, "content": weather(**call.arguments)} for call in calls]
