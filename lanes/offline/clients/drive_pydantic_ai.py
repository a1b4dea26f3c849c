"""Pydantic AI, whose agents run the tools themselves.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
from pydantic import BaseModel
from pydantic_ai import Agent, Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from lanes.offline.clients.asking import (
    KEY,
    MAX_TOKENS,
    MODEL,
    QUESTION,
    SYSTEM,
    THINKING_TOKENS,
    TOOL,
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
    asyncio.run(_answer(ask, said))


async def _answer(ask: Ask, said: Said) -> None:
    if ask.way == "messages":
        async with anthropic.AsyncAnthropic(
            api_key=KEY, base_url=ask.url, max_retries=ask.retries, timeout=ask.timeout_s
        ) as client:
            settings = AnthropicModelSettings(max_tokens=MAX_TOKENS)
            if ask.thinks:
                settings["anthropic_thinking"] = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
            await _run(AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client)), settings, ask, said)
        return
    async with openai.AsyncOpenAI(
        api_key=KEY, base_url=ask.url, max_retries=ask.retries, timeout=ask.timeout_s
    ) as client:
        provider = OpenAIProvider(openai_client=client)
        if ask.embeds:
            model = OpenAIEmbeddingModel("text-embedding-3-small", provider=provider)
            made = await Embedder(model).embed_documents(list(ask.embeds))
            said.vectors = [list(vector) for vector in made.embeddings]
        elif ask.way == "responses":
            asked = OpenAIResponsesModelSettings(openai_reasoning_summary="auto") if ask.thinks else ModelSettings()
            await _run(OpenAIResponsesModel(MODEL, provider=provider), asked, ask, said)
        else:
            await _run(OpenAIChatModel(MODEL, provider=provider), ModelSettings(), ask, said)


async def _run(model: Model, settings: ModelSettings, ask: Ask, said: Said) -> None:
    agent: Agent[None, Any] = Agent(
        model, instructions=SYSTEM, model_settings=settings, output_type=Weather if ask.wants_data else str, retries=0
    )
    if ask.has_tool:

        @agent.tool_plain(name=TOOL, description=TOOL_TEXT)
        async def use(city: str) -> str:  # a plain function would run in a thread, and two of them in any order
            said.calls.append((TOOL, {"city": city}))
            return weather(city)

    async with agent.iter(QUESTION) as run:
        async for node in run:
            if Agent.is_model_request_node(node) and ask.is_stream:
                async with node.stream(run.ctx) as stream:
                    async for event in stream:
                        _take(event, said)
            elif Agent.is_call_tools_node(node) and not ask.is_stream:
                said.text += "".join(p.content for p in node.model_response.parts if isinstance(p, TextPart))
                said.thought += "".join(p.content for p in node.model_response.parts if isinstance(p, ThinkingPart))
    result = run.result
    if result is None:
        return
    if ask.wants_data:
        said.data = result.output.model_dump()
    usage = run.usage
    said.count(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cache_read_tokens,
        reasoning=usage.details.get("reasoning_tokens", usage.details.get("thinking_tokens")),
    )


def _take(event: object, said: Said) -> None:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        said.take(event.part.content)
    elif isinstance(event, PartStartEvent) and isinstance(event.part, ThinkingPart):
        said.thought += event.part.content
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        said.take(event.delta.content_delta)
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ThinkingPartDelta):
        said.thought += event.delta.content_delta or ""
