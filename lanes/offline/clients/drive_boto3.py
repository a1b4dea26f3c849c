"""The published AWS client for Python, on the Converse operations of Bedrock.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import boto3
from botocore.config import Config

from lanes.offline.clients.asking import (
    DATA_SCHEMA,
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

SPEC = {"name": TOOL, "description": TOOL_TEXT, "inputSchema": {"json": TOOL_SCHEMA}}
VECTOR_SIZE = 1024


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    config = Config(read_timeout=ask.timeout_s, retries={"mode": "standard", "total_max_attempts": ask.retries + 1})
    client = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key="none", region_name="us-east-1").client(
        "bedrock-runtime", endpoint_url=ask.url, config=config
    )
    with contextlib.closing(client):
        for words in ask.embeds:
            body = json.dumps({"inputText": words, "dimensions": VECTOR_SIZE})
            made = client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=body)
            said.vectors.append(json.loads(made["body"].read())["embedding"])
        if not ask.embeds:
            _converse(client, ask, said)


def _converse(client: Any, ask: Ask, said: Said) -> None:
    messages: list[Any] = [{"role": "user", "content": [{"text": QUESTION}]}]
    given: dict[str, Any] = {
        "modelId": MODEL,
        "messages": messages,
        "system": [{"text": SYSTEM}],
        "inferenceConfig": {"maxTokens": MAX_TOKENS},
    }
    if ask.has_tool:
        given["toolConfig"] = {"tools": [{"toolSpec": SPEC}]}
    if ask.thinks:
        thinking = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
        given["additionalModelRequestFields"] = {"thinking": thinking}
    if ask.wants_data:
        schema = {"name": "weather", "schema": json.dumps(DATA_SCHEMA)}
        given["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
    for _ in range(MAX_ROUNDS):
        blocks = _streamed(client, given, said) if ask.is_stream else _whole(client, given, said)
        if ask.wants_data:
            said.data = json.loads(said.text)
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        if not uses:
            return
        said.calls += [(use["name"], use["input"]) for use in uses]
        results = [{"toolUseId": use["toolUseId"], "content": [{"text": weather(**use["input"])}]} for use in uses]
        messages.append({"role": "assistant", "content": blocks})
        messages.append({"role": "user", "content": [{"toolResult": result} for result in results]})


def _whole(client: Any, given: dict[str, Any], said: Said) -> list[dict[str, Any]]:
    final = client.converse(**given)
    blocks: list[dict[str, Any]] = final["output"]["message"]["content"]
    for block in blocks:
        said.text += block.get("text", "")
        said.thought += block.get("reasoningContent", {}).get("reasoningText", {}).get("text", "")
    _count(said, final["usage"])
    return blocks


def _streamed(client: Any, given: dict[str, Any], said: Said) -> list[dict[str, Any]]:
    blocks: dict[int, dict[str, Any]] = {}
    with contextlib.closing(client.converse_stream(**given)["stream"]) as stream:
        for event in stream:
            if "contentBlockStart" in event:
                start = event["contentBlockStart"]
                blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
            elif "contentBlockDelta" in event:
                _take(
                    event["contentBlockDelta"]["delta"], blocks, event["contentBlockDelta"]["contentBlockIndex"], said
                )
            elif "metadata" in event:
                _count(said, event["metadata"]["usage"])
    uses = [block["toolUse"] for block in blocks.values() if "toolUse" in block]
    for use in uses:
        use["input"] = json.loads(use["input"])
    return [blocks[index] for index in sorted(blocks)]


def _take(delta: dict[str, Any], blocks: dict[int, dict[str, Any]], index: int, said: Said) -> None:
    if "toolUse" in delta:
        blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
    elif "text" in delta:
        said.take(delta["text"])
        blocks.setdefault(index, {"text": ""})["text"] += delta["text"]
    else:
        said.thought += delta["reasoningContent"].get("text", "")


def _count(said: Said, usage: dict[str, int]) -> None:
    cached = usage["cacheReadInputTokens"]
    # This provider counts what came from its cache apart, and the thoughts with the output.
    said.count(input=usage["inputTokens"] + cached, output=usage["outputTokens"], cached=cached)
