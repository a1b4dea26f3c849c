"""When the pieces of an answer go out: waits declared, computed from tokens, or varied by a seeded lot.

Room: pure; the deciding room comes in. Nothing here looks at a clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import count

from mock_provider.dialects.codec import Reply
from mock_provider.pieces import count_tokens, split_text
from mock_provider.steps import Reasoning, RefusalText, StreamPlan, Text, ToolCall

MS_PER_S = 1000


def lot(*seed: str | int) -> float:
    """A number from 0 up to 1, the same for the same seed."""
    digest = hashlib.sha256("\x1f".join(map(str, seed)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def piece_tokens(reply: Reply) -> list[int]:
    """The tokens of each piece of an answer, in order: all dialects cut a stream by the same rule."""
    tokens: list[int] = []
    calls = iter(reply.calls)
    for part in reply.parts:
        if isinstance(part, Text | RefusalText | Reasoning):
            tokens += [count_tokens(piece) for piece in split_text(part.text, reply.stream.split)]
        elif isinstance(part, ToolCall):
            call = next(calls)
            tokens.append(count_tokens(call.name))
            tokens += [count_tokens(piece) for piece in split_text(call.arguments, reply.stream.split)]
    return tokens


def stream_waits(plan: StreamPlan, tokens: Sequence[int], seed: str) -> Iterator[int]:
    """The waits before each piece, in milliseconds, without end.

    Shape: seed is of the answer, so that two answers vary in different ways; what rounding takes away is not lost.
    """
    owed = 0.0
    for number in count():
        owed += plan.first_ms if number == 0 else plan.every_ms
        if plan.tokens_per_s:
            owed += (tokens[number] if number < len(tokens) else 1) * MS_PER_S / plan.tokens_per_s
        wait = int(owed)
        owed -= wait
        yield max(wait + _jitter(plan, seed, number), 0)


def _jitter(plan: StreamPlan, seed: str, number: int) -> int:
    return round(plan.jitter_ms * (2 * lot(plan.seed, seed, number) - 1)) if plan.jitter_ms else 0


def whole_wait(plan: StreamPlan, tokens: Sequence[int], seed: str) -> int:
    """The wait before an answer in one body: as long as the whole stream would take."""
    wait: float = plan.first_ms
    if plan.tokens_per_s:
        wait += sum(tokens) * MS_PER_S / plan.tokens_per_s
    return max(int(wait) + _jitter(plan, seed, 0), 0)
