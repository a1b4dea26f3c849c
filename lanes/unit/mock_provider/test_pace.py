"""When pieces go out: declared, computed from tokens, varied by a seed, and never looked up on a clock."""

from __future__ import annotations

import json
from itertools import islice

import httpx
import pytest

import mock_provider
from mock_provider.actions import Delay, Send
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.pace import stream_waits, whole_wait
from mock_provider.replies import script, step, text, tool_call
from mock_provider.steps import StreamPlan

HEADERS = {"authorization": "Bearer x"}


def chat(mock: Mock, *, is_stream: bool = True) -> list[object]:
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": is_stream}
    exchange = mock.handle(Incoming("POST", "/v1/chat/completions", HEADERS, json.dumps(body).encode()))
    return [action for action, _ in exchange.plan]


def waits(stream: JsonObject, *parts: Json) -> list[int]:
    return [
        action.ms for action in chat(Mock(script(step(reply=list(parts), stream=stream)))) if isinstance(action, Delay)
    ]


def first(plan: StreamPlan, count: int, tokens: tuple[int, ...] = (), seed: str = "a") -> list[int]:
    return list(islice(stream_waits(plan, tokens, seed), count))


def test_the_first_piece_and_the_later_ones_wait_as_declared() -> None:
    assert first(StreamPlan(first_ms=5, every_ms=2), 4) == [5, 2, 2, 2]


def test_tokens_per_second_become_waits_and_no_fraction_is_lost() -> None:
    waited = first(StreamPlan(tokens_per_s=300), 30, tokens=(1,) * 30)
    assert (sorted(set(waited)), sum(waited)) == ([3, 4], 100)


def test_a_piece_of_many_tokens_waits_longer() -> None:
    parts = [text("a" * 40), tool_call("f", {"path": "b" * 30})]
    assert waits({"tokens_per_s": 1000}, *parts) == [10, 1, 11]  # ten tokens, the name, and {"path":"…"} of 41 bytes


def test_jitter_stays_in_its_range_and_repeats_for_its_seed() -> None:
    plan = StreamPlan(every_ms=50, first_ms=50, jitter_ms=20, seed=1)
    waited = first(plan, 200)
    assert (min(waited) >= 30, max(waited) <= 70, len(set(waited)) > 20) == (True, True, True)
    assert waited == first(plan, 200)
    assert waited != first(StreamPlan(every_ms=50, first_ms=50, jitter_ms=20, seed=2), 200)
    assert waited != first(plan, 200, seed="b")


def test_jitter_never_makes_a_wait_negative() -> None:
    assert min(first(StreamPlan(jitter_ms=5), 100)) == 0


def test_a_whole_answer_waits_as_long_as_its_stream() -> None:
    plan = StreamPlan(first_ms=100, tokens_per_s=10)
    assert whole_wait(plan, (1, 2, 3), "a") == 700
    played = script(step("a" * 40, stream={"first_ms": 100, "tokens_per_s": 10}))
    assert chat(Mock(played), is_stream=False)[0] == Delay(1100)


def test_signs_of_life_fill_a_long_wait() -> None:
    stream: JsonObject = {"first_ms": 25, "keep_alive_ms": 10}
    actions = chat(Mock(script(step("hi", stream=stream))))
    sign = Send(b": keep-alive\n\n")
    assert actions[2:7] == [Delay(10), sign, Delay(10), sign, Delay(5)]


@pytest.mark.parametrize(
    ("stream", "sizes"),
    [
        pytest.param({"bytes_per_write": 100}, [100, 100], id="one-event-in-several-writes"),
        pytest.param({"split": "words", "events_per_write": 2, "bytes_per_write": 10_000}, None, id="joined"),
    ],
)
def test_events_are_joined_and_cut_into_writes(stream: JsonObject, sizes: list[int] | None) -> None:
    apart = [action.data for action in chat(Mock(script(step("one two")))) if isinstance(action, Send)]
    actions = [action.data for action in chat(Mock(script(step("one two", stream=stream)))) if isinstance(action, Send)]
    if sizes is None:
        events = [write.count(b"data: ") for write in actions]
        assert events == [2, 2, 1]
    else:
        assert [len(write) for write in actions[:2]] == sizes
        assert len(b"".join(actions)) == len(b"".join(apart))


def test_a_drip_puts_a_wait_before_every_write_but_the_first() -> None:
    actions = chat(Mock(script(step("hi", stream={"drip": {"bytes": 50, "every_ms": 9}}))))
    kinds = ["".join("D" if isinstance(action, Delay) else "S" for action in actions[1:])]
    sends = [action for action in actions if isinstance(action, Send)]
    assert kinds == ["S" + "DS" * (len(sends) - 1)]
    assert all(len(send.data) <= 50 for send in sends)


def test_a_slow_answer_takes_no_time_under_a_virtual_clock() -> None:
    stream: JsonObject = {"split": "words", "tokens_per_s": 0.01, "jitter_ms": 1000}
    face = mock_provider.transport(script(step("one two three", stream=stream)), virtual_time=True)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with httpx.Client(transport=face, base_url=face.mock.base_url(), timeout=httpx.Timeout(None)) as client:
        answer = client.post("/chat/completions", json=body, headers=HEADERS)
    assert (b"three" in answer.content, face.mock.verify().ok) == (True, True)


def test_signs_of_life_without_end_reach_the_clients_own_limit_under_a_virtual_clock() -> None:
    face = mock_provider.transport(script(step("hi", fault={"kind": "keep_alive", "after": 1})), virtual_time=True)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with (
        httpx.Client(transport=face, base_url=face.mock.base_url(), timeout=5) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.post("/chat/completions", json=body, headers=HEADERS)
    assert face.mock.journal[0].end == "fault stall"
