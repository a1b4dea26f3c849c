"""Budget and delay of a retry."""

from __future__ import annotations

import pytest

from harness.log.events import Event, LlmRetry, StepStart
from harness.loop.retry import RETRYABLE, Retry, RetryPolicy, next_retry, used_retries
from harness.model.chunks import Failure

NORMAL = RetryPolicy()
ALWAYS = RetryPolicy(mode="always")


def failure(code: str = "SERVER", retry_after_ms: int | None = None) -> Failure:
    return Failure("x", code, provider_retry_after_ms=retry_after_ms)


@pytest.mark.parametrize(
    ("policy", "used", "asked_ms", "expected"),
    [
        (NORMAL, 0, None, Retry(1, 500)),
        (NORMAL, 1, None, Retry(2, 1000)),
        (NORMAL, 2, None, None),
        (NORMAL, 0, 10_000, Retry(1, 10_000)),
        (NORMAL, 0, 10_001, None),
        (NORMAL, 0, 1, Retry(1, 1)),
        (NORMAL, 2, 1, None),
        (ALWAYS, 4, None, Retry(5, 8000)),
        (ALWAYS, 5, None, Retry(6, 10_000)),
        (ALWAYS, 10_000, None, Retry(10_001, 10_000)),
        (ALWAYS, 0, 10_001, Retry(1, 500)),
        (RetryPolicy(max_retries=0), 0, None, None),
    ],
)
def test_R05_budget_back_off_and_retry_after(
    policy: RetryPolicy, used: int, asked_ms: int | None, expected: Retry | None
) -> None:
    assert next_retry(policy, used, failure(retry_after_ms=asked_ms), 0.5) == expected


@pytest.mark.parametrize(("jitter", "delay_ms"), [(0.0, 450), (0.5, 500), (0.999_999, 550)])
def test_R05_jitter_moves_the_wait_by_a_tenth_either_way(jitter: float, delay_ms: int) -> None:
    assert next_retry(NORMAL, 0, failure(), jitter) == Retry(1, delay_ms)


def test_R05_jitter_leaves_a_retry_after_as_the_provider_said_it() -> None:
    assert next_retry(NORMAL, 0, failure(retry_after_ms=777), 0.0) == Retry(1, 777)


def test_B11_these_codes_are_tried_again() -> None:
    assert {"EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "STREAM_CLOSED", "TIMEOUT", "TRANSPORT"} == RETRYABLE


@pytest.mark.parametrize(
    "code", ["AUTH", "QUOTA", "INVALID_REQUEST", "CONTEXT_WINDOW_EXCEEDED", "MALFORMED_RESPONSE", "ABORTED", "UNKNOWN"]
)
@pytest.mark.parametrize("policy", [NORMAL, ALWAYS], ids=["normal", "always"])
def test_other_codes_are_not_tried_again(policy: RetryPolicy, code: str) -> None:
    assert next_retry(policy, 0, failure(code), 0.5) is None


def test_C09_a_cancel_is_not_tried_again_whatever_the_policy_lists() -> None:
    assert next_retry(RetryPolicy(codes=frozenset({"ABORTED"})), 0, failure("ABORTED"), 0.5) is None


def test_R05_retries_count_for_their_step_provider_and_policy_only() -> None:
    def retried(turn: int, step: int, provider: str, key: str) -> LlmRetry:
        return LlmRetry("r", turn, step, provider, "normal", key, 1, 500, failure())

    payloads = [
        StepStart(1, 1),
        retried(1, 1, "p", "k"),
        retried(1, 1, "p", "k"),
        retried(1, 2, "p", "k"),
        retried(2, 1, "p", "k"),
        retried(1, 1, "q", "k"),
        retried(1, 1, "p", "other"),
    ]
    events = [Event(seq, 0, payload) for seq, payload in enumerate(payloads)]
    assert used_retries(events, 1, 1, "p", "k") == 2
