"""Whether a failed attempt gets another try, and after how long.

Room: pure; the attempt asks. The budget is counted from the log, the jitter comes as a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from harness.log.events import Event, LlmRetry
from harness.model.chunks import Failure

RETRYABLE = frozenset({"EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "STREAM_CLOSED", "TIMEOUT", "TRANSPORT"})
MAX_DOUBLINGS = 30  # 500 ms doubled 30 times is past any cap; more would only grow the integer


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How failures of one provider route are tried again.

    Shape: normal tries max_retries times after the first attempt, always without end; only codes are tried again.
    Units: base_ms doubles with each retry up to cap_ms; jitter is the share by which the wait may differ either way.
    """

    mode: Literal["normal", "always"] = "normal"
    max_retries: int = 2
    codes: frozenset[str] = RETRYABLE
    base_ms: int = 500
    cap_ms: int = 10_000
    jitter: float = 0.1
    key: str = "default"


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again: which retry this is, and the wait before it in milliseconds."""

    number: int
    delay_ms: int


def used_retries(events: Iterable[Event], turn: int, step: int, provider: str, policy_key: str) -> int:
    """How many retries the log holds for that step, provider and policy."""
    return sum(
        1
        for event in events
        if isinstance(event.payload, LlmRetry)
        and (event.payload.turn, event.payload.step) == (turn, step)
        and (event.payload.provider, event.payload.policy_key) == (provider, policy_key)
    )


def next_retry(policy: RetryPolicy, used: int, failure: Failure, jitter: float) -> Retry | None:
    """The next retry, or None when this failure ends the step.

    A Retry-After up to the cap is obeyed to the millisecond; above it normal gives up and always waits as usual.
    Units: jitter is a number from 0 up to 1, where one half means none.
    """
    if failure.code not in policy.codes or failure.code == "ABORTED":
        return None
    if policy.mode == "normal" and used >= policy.max_retries:
        return None
    asked = failure.provider_retry_after_ms
    if asked is not None and asked <= policy.cap_ms:
        return Retry(used + 1, asked)
    if asked is not None and policy.mode == "normal":
        return None
    wait_ms = min(policy.cap_ms, policy.base_ms << min(used, MAX_DOUBLINGS))
    return Retry(used + 1, round(wait_ms * (1 + policy.jitter * (2 * jitter - 1))))
