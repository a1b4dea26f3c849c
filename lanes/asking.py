"""How a small model is asked: what its story adds to each request on the way, and takes nothing out.

Room: pure but for the transport around another one. The real lane, the recorder and the replay suite put the same one
around their channels, so a request is the same in all three. The product knows nothing of it.

A model of this size does not choose tools by itself. Its story says which tool each step of a turn has to call; the
server then holds the model to the form of that tool's arguments, and the model fills them in. Where the story names no
tool, the model answers in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

import httpx

from lanes.normalize import Json


class AskedStepByStep(httpx.AsyncBaseTransport):
    """Adds sampling options, and the tool that this step has to call, to every request.

    Shape: forced holds for each turn the tools of its steps in order; the steps after them have none.
    """

    def __init__(
        self, inner: httpx.AsyncBaseTransport, sampling: Mapping[str, object], forced: Sequence[Sequence[str]]
    ) -> None:
        self._inner = inner
        self._sampling = dict(sampling)
        self._forced = tuple(tuple(tools) for tools in forced)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass one request on with what it lacks for a small model."""
        body: Json = json.loads(await request.aread())
        if not isinstance(body, dict):
            return await self._inner.handle_async_request(request)
        asked = {**body, **self._sampling, "tool_choice": tool_choice(body.get("messages"), self._forced)}
        headers = [(name, value) for name, value in request.headers.multi_items() if name != "content-length"]
        return await self._inner.handle_async_request(
            httpx.Request(request.method, request.url, headers=headers, json=asked, extensions=dict(request.extensions))
        )

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


def tool_choice(messages: Json, forced: Sequence[Sequence[str]]) -> Json:
    """The tool that the step has to call which these messages ask for; "none" where it has to answer in words.

    Source: OpenAI API reference, "Create chat completion", tool_choice.
    """
    roles = [cast("dict[str, Json]", each).get("role") for each in messages] if isinstance(messages, list) else []
    turn = roles.count("user") - 1
    since = len(roles) - 1 - roles[::-1].index("user") if "user" in roles else 0
    step = roles[since:].count("assistant")
    tools = forced[turn] if 0 <= turn < len(forced) else ()
    return {"type": "function", "function": {"name": tools[step]}} if step < len(tools) else "none"
