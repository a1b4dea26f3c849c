"""Requests a second of the mock provider, beside a responder that always answers the same bytes.

The floor parses nothing but the length of a body. The load comes from raw sockets in the same process, for both alike.
"""

from __future__ import annotations

import asyncio
import json
import statistics

from benchmarks.load import ConstantResponder, requests_per_second
from benchmarks.timing import Row
from mock_provider.script import build_script
from mock_provider.server import serve

_PATH = "/v1/chat/completions"


def _small_request() -> bytes:
    return json.dumps({"model": "m-small", "messages": [{"role": "user", "content": "hello"}]}).encode()


def _agent_request() -> bytes:
    """About 25 KB: 16 tools and 36 messages."""
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(8)}}
    tools = [
        {
            "type": "function",
            "function": {"name": f"tool_{n}", "description": "does a thing " * 8, "parameters": schema},
        }
        for n in range(16)
    ]
    messages: list[dict[str, object]] = []
    for n in range(12):
        call = {"id": f"call_{n}", "type": "function", "function": {"name": "tool_1", "arguments": "{}"}}
        messages.append({"role": "user", "content": "do the next thing " * 12})
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": "line of output " * 30})
    messages.append({"role": "user", "content": "and now?"})
    return json.dumps({"model": "m-small", "messages": messages, "tools": tools}).encode()


async def _mock_rate(body: bytes, connections: int, total: int) -> float:
    script = build_script({"version": 1, "steps": [{"reply": [{"text": "hi"}], "repeat": "forever"}]})
    async with serve(script) as mock:
        port = int(mock.base_url("openai_chat").split(":")[2].split("/")[0])
        return await requests_per_second(port, _PATH, body, connections=connections, total=total)


async def _floor_rate(body: bytes, connections: int, total: int) -> float:
    answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": "hi"}}]}).encode()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ConstantResponder(answer), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await requests_per_second(port, _PATH, body, connections=connections, total=total)


def measure(*, sizes: str) -> list[Row]:
    """Seconds for a thousand requests at 1 and 16 connections, small and agent-sized, against the floor."""
    total = 800 if sizes == "quick" else 3_200
    rows: list[Row] = []
    for name, body in (("small", _small_request()), ("25 KB", _agent_request())):
        for connections in (1, 16):
            mock: list[float] = []
            floor: list[float] = []
            for _ in range(3):
                mock.append(asyncio.run(_mock_rate(body, connections, total)))
                floor.append(asyncio.run(_floor_rate(body, connections, total)))
            ours, theirs = statistics.median(mock), statistics.median(floor)
            note = f"{ours:,.0f} of {theirs:,.0f} requests/s, {len(body):,} bytes each"
            subject = f"mock: 1,000 {name} requests, {connections} connections"
            rows.append(Row(subject, "a constant body", 1_000 / ours, 1_000 / theirs, note))
    return rows
