"""Several workers play one script as one: the same steps, the same bytes, the same verdict, whoever is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import any_order, conversation, gate, script, step, text, tool_call
from mock_provider.script import ScriptLike, as_script
from mock_provider.sharing.log import EventLog, LinkLostError, MemoryLog

AUTHORIZED = {"authorization": "Bearer x"}
PLAYED = script(
    conversations={
        "a": conversation(step("a1"), step(tool_call("f", {"x": 1})), step("a3", optional=True)),
        "b": {**conversation(step("b1", repeat=2), step("b2")), "parallel": 2},
        "c": conversation(any_order(step("C", expect={"last_user": "c"}), step("D", expect={"last_user": "d"}))),
        "free": conversation(step("free", repeat="forever", optional=True)),
    }
)


def ask(mock: Mock, name: str, words: str, *, is_stream: bool = False) -> bytes:
    """One request in the process; the whole answer, status and headers included."""
    face = mock_provider.transport(mock)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": words}], "stream": is_stream}
    headers = {**AUTHORIZED, "x-mock-conversation": name} if name else AUTHORIZED
    with httpx.Client(transport=face, base_url=mock.root, headers=headers) as client:
        answer = client.post("/v1/chat/completions", json=body)
        return f"{answer.status_code} {sorted(answer.headers.items())}\n".encode() + answer.content


def team(count: int, played: ScriptLike = PLAYED, log: EventLog | None = None) -> list[Mock]:
    """Workers that share one order of events."""
    shared = log or MemoryLog()
    return [Mock(as_script(played), shared=shared) for _ in range(count)]


ASKED = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["a", "b", "b@x", "b@y", "b@z", "c", "free", "none", ""]),
    st.sampled_from(["c", "d", "a longer one"]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(asked=st.lists(ASKED, max_size=14))
def test_any_spread_of_requests_over_workers_gets_the_bytes_of_one_server(
    asked: list[tuple[int, str, str, bool]],
) -> None:
    workers, alone = team(3), Mock(as_script(PLAYED))
    for number, name, words, is_stream in asked:
        assert ask(workers[number], name, words, is_stream=is_stream) == ask(alone, name, words, is_stream=is_stream)
    expected = [entry.to_json() for entry in alone.journal.entries]
    for worker in workers:
        assert str(worker.verify()) == str(alone.verify())
        assert [entry.to_json() for entry in worker.journal.entries] == expected
        assert worker.metrics.text(worker.verify(), (), arrived=0, dropped=0) == alone.metrics.text(
            alone.verify(), (), arrived=0, dropped=0
        )


class Meddling:
    """An order of events in which somebody is always faster, as often as there are meddlers."""

    def __init__(self) -> None:
        self._log = MemoryLog()
        self.meddlers: list[Callable[[], object]] = []
        self._is_meddling = False

    def append(self, at: int, event: bytes) -> Sequence[bytes]:
        if self.meddlers and not self._is_meddling:
            self._is_meddling = True
            self.meddlers.pop()()
            self._is_meddling = False
        return self._log.append(at, event)

    def read(self, at: int) -> Sequence[bytes]:
        return self._log.read(at)


def test_a_worker_that_was_slower_decides_again() -> None:
    log = Meddling()
    played = script(*(step(f"{number}") for number in range(4)))
    first, second = team(2, played, log)
    log.meddlers = [lambda: ask(second, "", "x")] * 3
    answer = ask(first, "", "x")
    assert b'"content":"3"' in answer
    assert [entry.step for entry in first.journal.entries] == [1, 2, 3, 4]
    assert first.verify().ok


def test_a_gate_is_opened_for_all_workers_and_all_know_who_waits() -> None:
    first, second = team(2, script(step(text("one"), gate("g"), text("two"))))
    face = mock_provider.transport(first)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with (
        httpx.Client(transport=face, base_url=first.root, headers=AUTHORIZED) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        second.gate("g").open()
        first.catch_up()
        assert b"two" in answer.read()
    second.catch_up()
    assert (second.gate("g").arrival.is_open, second.gate("g").waiting, first.gate("g").is_open) == (True, 0, True)


def test_a_reset_begins_again_for_all_and_what_ends_later_belongs_to_before() -> None:
    first, second = team(2, script(step("1"), step("2")))
    face = mock_provider.transport(first)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with (
        httpx.Client(transport=face, base_url=first.root, headers=AUTHORIZED) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        second.reset()
        ask(second, "", "x")
        answer.read()
    first.catch_up()
    second.catch_up()
    assert [[(entry.number, entry.step, entry.end) for entry in one.journal.entries] for one in (first, second)] == [
        [(1, 1, "complete")]
    ] * 2
    assert b'"content":"2"' in ask(first, "", "x")


def test_a_kept_response_is_known_to_every_worker() -> None:
    first, second = team(2, script(step("one"), step("two")))

    def post(mock: Mock, path: str, content: Json, method: str = "POST") -> httpx.Response:
        with httpx.Client(transport=mock_provider.transport(mock), base_url=mock.root, headers=AUTHORIZED) as client:
            return client.request(method, path, json=content)

    kept = post(first, "/v1/responses", {"model": "m", "input": "x"}).json()["id"]
    assert post(second, "/v1/responses", {"model": "m", "input": "y", "previous_response_id": kept}).status_code == 200
    assert post(second, f"/v1/responses/{kept}", None, "DELETE").status_code == 200
    assert post(first, f"/v1/responses/{kept}", None, "GET").status_code == 404


class Gone:
    """An order of events that cannot be reached."""

    def append(self, at: int, event: bytes) -> Sequence[bytes]:
        raise LinkLostError("connection refused")

    def read(self, at: int) -> Sequence[bytes]:
        raise LinkLostError("connection refused")


def test_workers_that_have_lost_each_other_answer_nothing_in_a_wrong_order() -> None:
    mock = Mock(as_script(script(step("hi"))), shared=Gone())
    face = mock_provider.transport(mock)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with httpx.Client(transport=face, base_url=mock.root, headers=AUTHORIZED) as client:
        answer = client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, "lost each other" in answer.json()["error"]["message"]) == (503, True)
    with pytest.raises(LinkLostError):
        mock.verify()
