"""LangChain's chat models for OpenAI and Anthropic.

Room: the table of clients names it; only a test that drives this client loads it.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, Field

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
    degrees: int = Field()


def answer(ask: Ask, said: Said) -> None:
    """Do the task with the client."""
    if ask.embeds:
        from langchain_openai import OpenAIEmbeddings

        # Its own check of lengths would load a table of tokens from the network.
        embedder = OpenAIEmbeddings(
            model="text-embedding-3-small", api_key=KEY, base_url=ask.url, check_embedding_ctx_length=False
        )
        said.vectors = embedder.embed_documents(list(ask.embeds))
        return
    model = _anthropic(ask) if ask.way == "messages" else _openai(ask)
    messages: list[BaseMessage] = [SystemMessage(SYSTEM), HumanMessage(QUESTION)]
    if ask.wants_data:
        found = model.with_structured_output(Weather, method="json_schema").invoke(messages)
        said.data = found.model_dump() if isinstance(found, Weather) else None
        return
    tool = {"type": "function", "function": {"name": TOOL, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}}
    asked: Any = model.bind_tools([tool]) if ask.has_tool else model
    for _ in range(MAX_ROUNDS):
        message = _streamed(asked, messages, said) if ask.is_stream else _whole(asked, messages, said)
        messages.append(message)
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            said.calls.append((call["name"], call["args"]))
            messages.append(ToolMessage(weather(**call["args"]), tool_call_id=call["id"]))


def _openai(ask: Ask) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=MODEL,
        api_key=KEY,
        base_url=ask.url,
        max_retries=ask.retries,
        timeout=ask.timeout_s,
        stream_usage=True,
        use_responses_api=ask.way == "responses",
        reasoning={"summary": "auto"} if ask.thinks and ask.way == "responses" else None,
    )


def _anthropic(ask: Ask) -> BaseChatModel:
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(
        model=MODEL,
        api_key=KEY,
        base_url=ask.url,
        max_retries=ask.retries,
        timeout=ask.timeout_s,
        max_tokens=MAX_TOKENS,
        thinking={"type": "enabled", "budget_tokens": THINKING_TOKENS} if ask.thinks else None,
    )


def _whole(model: Any, messages: list[BaseMessage], said: Said) -> AIMessage:
    message: AIMessage = model.invoke(messages)
    said.text += message.text
    said.thought += _thought(message)
    _count(said, message)
    return message


def _streamed(model: Any, messages: list[BaseMessage], said: Said) -> AIMessage:
    whole: Any = None
    for chunk in model.stream(messages):
        said.take(chunk.text)
        said.thought += _thought(chunk)
        whole = chunk if whole is None else whole + chunk
    _count(said, whole)
    return whole


def _thought(message: AIMessage) -> str:
    return "".join(block.get("reasoning", "") for block in message.content_blocks if block["type"] == "reasoning")


def _count(said: Said, message: AIMessage) -> None:
    usage: Any = message.usage_metadata
    said.count(
        input=usage["input_tokens"],
        output=usage["output_tokens"],
        cached=usage.get("input_token_details", {}).get("cache_read"),
        reasoning=usage.get("output_token_details", {}).get("reasoning"),
    )
