"""The control routes: what a test in another process can ask and do."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import mock_provider
from mock_provider.actions import Send
from mock_provider.incoming import Incoming
from mock_provider.json_values import JsonObject
from mock_provider.metrics import CONTENT_TYPE
from mock_provider.mock import Mock
from mock_provider.replies import fault, gate, script, step, text
from mock_provider.server import ServerThread, serve

HEADERS = {"authorization": "Bearer x"}
BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
LONG_S = 60  # what a poll would wait if nothing came; no test comes near it


def ask(mock: Mock, **more: bool) -> None:
    """One chat request, read to its end."""
    data = json.dumps({**BODY, **more}).encode()
    exchange = mock.handle(Incoming("POST", "/v1/chat/completions", HEADERS, data))
    for action, is_last in exchange.plan:
        if isinstance(action, Send):
            exchange.sent(action.data, is_piece=action.is_piece)
        if is_last:
            exchange.finish("complete")


def read(mock: Mock, path: str) -> httpx.Response:
    with httpx.Client(transport=mock_provider.transport(mock), base_url=mock.root) as client:
        return client.get(f"/__mock__/{path}")


def samples(mock: Mock) -> dict[str, str]:
    lines = read(mock, "metrics").text.splitlines()
    parts = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: value for name, _, value in parts}


def test_metrics_are_in_the_text_form_of_prometheus() -> None:
    mock = Mock(script(step("hi")))
    answer = read(mock, "metrics")
    line = re.compile(r'# (HELP|TYPE) mock_provider_\w+ .+|mock_provider_\w+(\{(\w+="[^"]*",?)*\})? \d+')
    assert answer.headers["content-type"] == CONTENT_TYPE
    assert [shown for shown in answer.text.splitlines() if not line.fullmatch(shown)] == []
    assert answer.text.endswith("\n")


def test_metrics_count_requests_by_their_end() -> None:
    mock = Mock(script(step("one two", stream={"split": "words"}), step("hi"), step("left", gate="g")))
    ask(mock, stream=True)
    ask(mock)
    mock.handle(Incoming("POST", "/v1/chat/completions", {}, b"{"))
    found = samples(mock)
    assert found['mock_provider_requests_total{dialect="openai_chat",status="200",end="complete"}'] == "2"
    assert {key: found[f"mock_provider_{key}"] for key in ("requests_open", "steps_used", "steps_left")} == {
        "requests_open": "1",
        "steps_used": "2",
        "steps_left": "1",
    }
    assert (found["mock_provider_requests_invalid"], found['mock_provider_gate_waiting{gate="g"}']) == ("1", "0")
    assert found["mock_provider_pieces_sent_total"] == "3"


def test_metrics_outlive_the_journal() -> None:
    mock = Mock(script(step("hi", repeat="forever")))
    ask(mock)
    mock.reset()
    ask(mock)
    key = 'mock_provider_requests_total{dialect="openai_chat",status="200",end="complete"}'
    assert (samples(mock)[key], len(mock.journal)) == ("2", 1)


async def test_metrics_tell_faults_and_clients_that_left() -> None:
    played = script(step(text("a"), fault("cut")), step(text("a"), gate("g"), text("b")))
    async with serve(played) as mock, httpx.AsyncClient(base_url=mock.base_url(), headers=HEADERS) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/chat/completions", json={**BODY, "stream": True})
        async with client.stream("POST", "/chat/completions", json={**BODY, "stream": True}):
            await mock.gate("g").reached()
        while mock.gate("g").waiting:  # noqa: ASYNC110 - a server has no word for it; the time limit is pytest's
            await asyncio.sleep(0)
        shown = (await client.get(f"{mock.root}/__mock__/metrics")).text
    assert 'end="fault cut"} 1' in shown
    assert 'end="client gone"} 1' in shown


def test_the_journal_is_read_from_where_one_left_off() -> None:
    mock = Mock(script(step("hi", repeat="forever")))
    for _ in range(3):
        ask(mock)
    page = read(mock, "journal?after=1").json()
    assert ([entry["number"] for entry in page["entries"]], page["next"]) == ([2, 3], 3)
    assert read(mock, "journal?after=3").json() == {"entries": [], "dropped": 0, "next": 3}


def test_a_long_poll_with_news_answers_at_once() -> None:
    mock = Mock(script(step("hi")))
    ask(mock)
    assert len(read(mock, f"journal?wait_s={LONG_S}").json()["entries"]) == 1


def test_a_long_poll_without_news_ends_when_its_time_is_up() -> None:
    assert read(Mock(script(step("hi"))), "journal?after=0&wait_s=0.001").json()["entries"] == []


async def test_a_long_poll_over_loopback_waits_for_the_next_request() -> None:
    async with serve(script(step("hi"))) as mock, httpx.AsyncClient(timeout=LONG_S, headers=HEADERS) as client:
        poll = asyncio.ensure_future(client.get(f"{mock.root}/__mock__/journal?wait_s={LONG_S}"))
        while not mock.journal.is_awaited:  # noqa: ASYNC110 - a server has no word for it; the time limit is pytest's
            await asyncio.sleep(0)
        await client.post(f"{mock.base_url()}/chat/completions", json=BODY)
        page = (await poll).json()
        assert ([entry["number"] for entry in page["entries"]], page["next"]) == ([1], 1)


def test_a_long_poll_in_a_thread_waits_for_the_next_request() -> None:
    mock = Mock(script(step("hi")))
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(read, mock, f"journal?wait_s={LONG_S}")
        while not mock.journal.is_awaited:
            pass
        ask(mock)
        assert poll.result(timeout=LONG_S).json()["next"] == 1


async def test_the_poll_of_a_client_that_leaves_is_given_up() -> None:
    async with serve(script(step("hi"))) as mock:
        async with httpx.AsyncClient(timeout=0.05) as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.get(f"{mock.root}/__mock__/journal?wait_s={LONG_S}")
        assert len(mock.journal) == 0


def test_a_poll_that_makes_no_sense_is_refused() -> None:
    assert read(Mock(script(step("hi"))), "journal?after=x").status_code == 400


def test_an_unknown_route_names_the_known_ones() -> None:
    answer = read(Mock(script(step("hi"))), "metric")
    assert (answer.status_code, "GET metrics" in answer.json()["routes"]) == (404, True)


def test_health_reset_and_gates_over_loopback() -> None:
    with (
        ServerThread(script(step("hi", gate="g"))) as mock,
        httpx.Client(base_url=f"{mock.root}/__mock__") as client,
    ):
        assert client.get("/health").json() == {"ok": True, "script": "script"}
        assert client.post("/gates/g").json() == {"name": "g", "open": True, "reached": False, "waiting": 0}
        assert client.post("/reset").json() == {"ok": True}
        assert client.get("/gates/g").json()["open"] is False
        assert client.get("/gates/h").status_code == 404


def test_the_verdict_lists_what_was_left_unmatched_invalid_and_stuck_apart() -> None:
    mock = Mock(script(step("one", expect={"last_user": "a"}), step("two")))
    face = mock_provider.transport(mock)
    body = {"model": "m", "messages": [{"role": "user", "content": "b"}]}
    with httpx.Client(transport=face, base_url="http://mock.invalid", headers={"authorization": "Bearer k"}) as client:
        client.post("/v1/chat/completions", json=body)
        client.post("/v1/chat/completions", json={"model": "m", "messages": "x"})
        verdict = client.get("/__mock__/verify").json()
    listed = {name: len(verdict[name]) for name in ("left", "unmatched", "invalid", "gates", "problems")}
    assert listed == {"left": 2, "unmatched": 1, "invalid": 1, "gates": 0, "problems": 4}
