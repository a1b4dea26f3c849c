"""Which wire formats a model can be reached with.

Room: pure; the one table from dialect name to codec.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from harness.errors import UsageError
from harness.model.call import ModelRequest
from harness.model.chunks import Failure
from harness.model.messages import JsonObject
from harness.wire import anthropic_messages, openai_chat, openai_responses
from harness.wire.answer import AnswerStream
from harness.wire.growing_body import Growth
from harness.wire.pictures import Pictures


class RequestEncoder(Protocol):
    """Turns a request into a body's JSON; pictures holds the bytes of those the request names."""

    def __call__(self, request: ModelRequest, pictures: Pictures | None = None) -> JsonObject:
        """The body."""
        ...


class ErrorReader(Protocol):
    """Reads an answer that is no event stream."""

    def __call__(self, status: int, headers: Mapping[str, str], body: bytes, *, now: datetime | None = None) -> Failure:
        """The failure it stands for."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One wire format: where to post, how to say who asks, what to send, how a body grows, how to read the answer."""

    path: str
    authorization: Callable[[str], Mapping[str, str]]
    headers: Mapping[str, str]
    encode_request: RequestEncoder
    encode_body: Callable[[JsonObject], bytes]
    open_stream: Callable[[], AnswerStream]
    classify_error: ErrorReader
    growth: Growth | None = None  # None for a dialect whose bodies are encoded whole each time


DIALECTS: Mapping[str, Dialect] = {
    "openai_chat": Dialect(
        path=openai_chat.PATH,
        authorization=openai_chat.authorization,
        headers={},
        encode_request=openai_chat.encode_request,
        encode_body=openai_chat.encode_body,
        open_stream=openai_chat.ChatStream,
        classify_error=openai_chat.classify_error,
        growth=openai_chat.GROWTH,
    ),
    "openai_responses": Dialect(
        path=openai_responses.PATH,
        authorization=openai_responses.authorization,
        headers={},
        encode_request=openai_responses.encode_request,
        encode_body=openai_responses.encode_body,
        open_stream=openai_responses.ResponseStream,
        classify_error=openai_responses.classify_error,
        growth=openai_responses.GROWTH,
    ),
    "anthropic_messages": Dialect(
        path=anthropic_messages.PATH,
        authorization=anthropic_messages.authorization,
        headers=anthropic_messages.HEADERS,
        encode_request=anthropic_messages.encode_request,
        encode_body=anthropic_messages.encode_body,
        open_stream=anthropic_messages.MessageStream,
        classify_error=anthropic_messages.classify_error,
        growth=anthropic_messages.GROWTH,
    ),
}


def dialect_named(name: str) -> Dialect:
    """The dialect of that name.

    Raises: UsageError [NO_ADAPTER] with the nearest name.
    """
    dialect = DIALECTS.get(name)
    if dialect is not None:
        return dialect
    near = difflib.get_close_matches(name, DIALECTS, 1)
    raise UsageError(
        f"dialect {name!r} is unknown" + (f"; did you mean {near[0]!r}?" if near else ""),
        where="model route",
        expected=f"one of {', '.join(sorted(DIALECTS))}",
        code="NO_ADAPTER",
    )
