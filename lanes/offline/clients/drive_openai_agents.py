"""The OpenAI Agents SDK, whose runner calls the tools itself.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
)
from agents.result import RunResultBase
from openai.types.shared import Reasoning
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


class Weather(BaseModel):
    """The data that is asked for."""

    city: str
    degrees: int


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    asyncio.run(_answer(ask, said))


async def _answer(ask: Ask, said: Said) -> None:
    async def use(_context: Any, arguments: str) -> str:
        given = json.loads(arguments)
        said.calls.append((TOOL, given))
        return weather(**given)

    tool = FunctionTool(name=TOOL, description=TOOL_TEXT, params_json_schema=dict(TOOL_SCHEMA), on_invoke_tool=use)
    async with openai.AsyncOpenAI(
        api_key=KEY, base_url=ask.url, max_retries=ask.retries, timeout=ask.timeout_s
    ) as client:
        kind = OpenAIResponsesModel if ask.way == "responses" else OpenAIChatCompletionsModel
        model: Model = kind(model=MODEL, openai_client=client)
        agent = Agent(
            name="agent",
            instructions=SYSTEM,
            model=model,
            tools=[tool] if ask.has_tool else [],
            output_type=Weather if ask.wants_data else None,
            model_settings=ModelSettings(
                include_usage=True, reasoning=Reasoning(summary="auto") if ask.thinks else None
            ),
        )
        # Its traces go to the provider's own host, whatever the base URL is.
        settings = RunConfig(tracing_disabled=True)
        if ask.is_stream:
            streamed = Runner.run_streamed(agent, QUESTION, max_turns=MAX_ROUNDS, run_config=settings)
            async for event in streamed.stream_events():
                if event.type == "raw_response_event":
                    _take(event.data, said)
            _finish(streamed, said)
        else:
            whole = await Runner.run(agent, QUESTION, max_turns=MAX_ROUNDS, run_config=settings)
            for response in whole.raw_responses:
                _take_whole(response.output, said)
            if ask.wants_data:
                said.data = whole.final_output.model_dump()
            _finish(whole, said)


def _take(event: Any, said: Said) -> None:
    if event.type == "response.output_text.delta":
        said.take(event.delta)
    elif event.type == "response.reasoning_summary_text.delta":
        said.thought += event.delta


def _take_whole(items: list[Any], said: Said) -> None:
    for item in items:
        if item.type == "message":
            said.text += "".join(part.text for part in item.content if part.type == "output_text")
        elif item.type == "reasoning":
            said.thought += "".join(part.text for part in item.summary)


def _finish(result: RunResultBase, said: Said) -> None:
    usage = result.context_wrapper.usage
    said.count(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.input_tokens_details.cached_tokens,
        reasoning=usage.output_tokens_details.reasoning_tokens,
    )
