"""Both servers as processes: floods, many requests at once, signals, a second process, a kill and what comes after."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import Any

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.wire import RealServer, events, is_answer, reasons
from mock_provider import Mock
from mock_provider.json_values import JsonObject
from mock_provider.replies import gate, script, step, text, tool_call

WIRES = ("sdk", "acp")
GARBAGE_BYTES = 100_000_000
MANY = 10_000
IDLE = script(step("never asked", optional=True))
HALF = step(text("Half"), gate("half"), text(" more"))
# every line that ended or hung a published stack of this protocol, and those the transport knows besides
BAD_LINES = (
    b"garbage", b"null", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', b"5", b'"s"', b"true", b"{}",
    b'{"id":null,"method":"initialize"}', b'{"id":true,"method":"initialize"}', b'{"method":"session/cancel"}',
    b'{"method":"session/cancel","params":{"sessionId":[]}}',
    b'{"method":"$/cancel_request","params":{"requestId":{}}}',
    b'{"jsonrpc":"2.0","id":"half","method":', b"\xff\xfe", b"[" * 100_000, b'{"id":1e999,"method":"x"}',
)  # fmt: skip


def half(mock: Mock) -> None:
    """Wait until the model is in the middle of its answer."""
    assert mock.gate("half").wait_reached(60)


def log_of(server: RealServer) -> str:
    """The one session log of a server, as it is on disk."""
    (path,) = server.sessions.rglob("session.jsonl")
    return path.read_text("utf-8")


# what comes in


@pytest.mark.claim("wire.real-servers")
@pytest.mark.parametrize("wire", WIRES)
def test_a_hundred_megabytes_of_garbage_between_requests_leave_every_one_answered_and_memory_flat(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    base_url = channels.loopback(IDLE).base_url("openai_chat")
    garbage = b"garbage\n" * 125_000
    rounds = GARBAGE_BYTES // len(garbage) + 1
    with RealServer(wire, tmp_path, base_url) as server:
        server.hello()
        asked, peaks = [], []
        for _ in range(rounds):
            server.write(garbage)
            asked.append(server.send("no/such/method", {}))
            server.answer(asked[-1])
            peaks.append(server.memory_peak_bytes)
        assert (server.leave(), server.errors) == (0, b"")

    answers = [frame for frame in server.frames if frame.get("error", {}).get("code") == -32601]
    assert [frame["id"] for frame in answers] == asked
    assert peaks[-1] - peaks[len(peaks) // 4] < 8 << 20


@pytest.mark.claim("wire.real-servers")
@pytest.mark.parametrize("wire", WIRES)
def test_ten_thousand_requests_at_once_are_answered_each_once(wire: str, channels: Channels, tmp_path: Path) -> None:
    base_url = channels.loopback(IDLE).base_url("openai_chat")
    method = "session/cancel" if wire == "sdk" else "authenticate"
    with RealServer(wire, tmp_path, base_url) as server:
        server.hello()
        asked = [server.next_id() for _ in range(MANY)]
        server.write(b"".join(server.frame(method, {"sessionId": "nobody"}, identity) for identity in asked))
        server.answer(asked[-1])
        server.until(lambda frames: len(frames) > MANY)
        assert (server.leave(), server.errors) == (0, b"")

    assert sorted(frame["id"] for frame in server.frames[1:]) == asked
    assert all("result" in frame for frame in server.frames)


@pytest.mark.claim("wire.real-servers")
def test_a_thousand_prompts_wait_behind_a_turn_and_a_cancel_empties_them_all(
    channels: Channels, tmp_path: Path
) -> None:
    count = 1_000  # each is a durable message and an event that is told
    mock = channels.loopback(script(HALF))
    with RealServer("sdk", tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        server.answer(server.prompt("s", "begin"))
        half(mock)
        lines = [server.prompt_line("s", f"more {number}") for number in range(count)]
        server.write(b"".join(line for _, line in lines))
        receipts = [server.answer(identity)["messageId"] for identity, _ in lines]
        assert server.ask("session/cancel", {"sessionId": "s"}) == {"cancelled": "turn"}
        assert server.ended(1) == ["aborted"]
        assert server.leave() == 0

    log = log_of(server)
    assert (len(set(receipts)), [receipt for receipt in receipts if receipt not in log]) == (count, [])


@pytest.mark.claim("wire.real-servers")
@pytest.mark.parametrize("wire", WIRES)
def test_AC33_every_bad_line_leaves_the_connection_serving_and_the_end_of_input_ends_it(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    base_url = channels.loopback(script(step("Fine."))).base_url("openai_chat")
    with RealServer(wire, tmp_path, base_url) as server:
        for line in BAD_LINES:
            server.write(line + b"\n")
            assert server.ask("no/such/method", {})["code"] == -32601
        server.hello()
        server.answer(server.prompt(server.open_session(), "and a turn"))
        server.ended(1)
        assert (server.texts(), server.leave()) == (["Fine."], 0)
    assert [frame for frame in server.frames if "error" in frame and frame["error"]["code"] != -32601] == []


@pytest.mark.claim("wire.real-servers")
@pytest.mark.parametrize("wire", WIRES)
def test_TR16_TR17_what_a_tools_child_writes_and_reads_touches_no_frame(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    command = "cat; echo to the output; echo to the errors >&2; printf half"
    play = script(
        step(tool_call("shell", {"command": command})),
        step("Done.", expect={"tool_result": [{"contains": "to the output"}]}),
    )
    with RealServer(wire, tmp_path, channels.loopback(play).base_url("openai_chat")) as server:
        server.hello()
        identity = server.prompt(server.open_session(), "run it")
        unread = server.send("no/such/method", {})
        assert server.answer(unread)["code"] == -32601
        server.answer(identity)
        server.ended(1)
        assert (server.texts(), server.leave()) == (["Done."], 0)  # leave has seen that every line was a frame


# how it goes


@pytest.mark.claim("wire.real-servers")
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (None, 0)], ids=str)
@pytest.mark.parametrize("wire", WIRES)
def test_SV17_the_way_out_of_a_turn_ends_it_in_the_log_and_in_the_clients_sight(
    wire: str, sent: signal.Signals | None, status: int, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(HALF))
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        prompt = server.prompt(server.open_session(), "begin")
        half(mock)
        if sent is None:
            server.close_input()
        else:
            server.signal(sent)
        ended = server.wait()

    assert (ended, server.errors) == (status, b"")
    assert '"aborted"' in log_of(server)
    if wire == "sdk":
        assert (reasons(server.frames), server.frames[-1]["params"]) == (
            ["aborted"], {"sessionId": "s", "status": "idle"},
        )  # fmt: skip
    else:
        assert [one["result"]["stopReason"] for one in server.frames if is_answer(one, prompt)] == ["cancelled"]


@pytest.mark.claim("wire.real-servers")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_SV17_a_signal_right_behind_the_answer_to_shutdown_changes_nothing(
    sent: signal.Signals, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(HALF))
    with RealServer("sdk", tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        server.answer(server.prompt("s", "begin"))
        half(mock)
        assert server.ask("shutdown", {}) == {}
        server.signal(sent)
        server.signal(sent)
        assert (server.wait(), server.errors) == (0, b"")


@pytest.mark.claim("wire.real-servers")
def test_SV15_SV16_two_shutdowns_in_a_turn_and_a_signal_between_them_are_one_end(
    channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(HALF))
    with RealServer("sdk", tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        server.answer(server.prompt("s", "begin"))
        half(mock)
        asked = [server.next_id(), server.next_id()]
        server.write(b"".join(server.frame("shutdown", {}, identity) for identity in asked))
        server.signal(signal.SIGTERM)
        assert ([server.answer(identity) for identity in asked], server.wait()) == ([{}, {}], 0)
    at = {frame.get("id"): place for place, frame in enumerate(server.frames) if "method" not in frame}
    (idle,) = [place for place, frame in enumerate(server.frames) if frame.get("params", {}).get("status") == "idle"]
    assert (reasons(server.frames), idle < min(at[identity] for identity in asked)) == (["aborted"], True)


# a second process


@pytest.fixture
def play() -> JsonObject:
    """A turn that is killed, and one that goes on with what it knew."""
    return script(HALF, step("Here again.", expect={"any_message": "remember elm", "last_user": "go on"}))


@pytest.mark.claim("wire.real-servers")
def test_SV21_a_second_process_is_refused_before_any_receipt_and_goes_on_after_the_first_was_killed(
    play: JsonObject, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(play)
    base_url = mock.base_url("openai_chat")
    with RealServer("sdk", tmp_path, base_url) as first, RealServer("sdk", tmp_path, base_url) as second:
        first.hello()
        second.hello()
        receipt = first.answer(first.prompt("s", "remember elm"))["messageId"]
        half(mock)
        before = log_of(first)
        refused = second.answer(second.prompt("s", "go on"))
        assert (refused["code"], events(second.frames), log_of(first)[: len(before)]) == (-32603, [], before)
        os.kill(first.process.pid, signal.SIGKILL)
        assert first.process.wait(60) == -9
        second.answer(second.prompt("s", "go on"))
        assert second.ended(1) == ["completed"]
        assert (second.texts(), second.leave()) == (["Here again."], 0)
    log = log_of(second)
    assert (receipt in log, '"interrupted"' in log, log.startswith(before)) == (True, True, True)


@pytest.mark.claim("wire.real-servers")
def test_a_session_of_acp_that_another_process_has_open_is_not_loaded_until_that_one_is_gone(
    play: JsonObject, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(play)
    base_url, stored = mock.base_url("openai_chat"), "--stored-sessions"
    with RealServer("acp", tmp_path, base_url) as first, RealServer("acp", tmp_path, base_url, stored) as second:
        first.hello()
        second.hello()
        session = first.open_session()
        first.prompt(session, "remember elm")
        half(mock)
        load = {"sessionId": session, "cwd": str(second.workspace), "mcpServers": []}
        refused = second.ask("session/load", load)
        os.kill(first.process.pid, signal.SIGKILL)
        assert first.process.wait(60) == -9
        loaded = second.ask("session/load", load)
        second.answer(second.prompt(session, "go on"))
        assert (refused["code"] < 0, loaded, second.texts()[-1], second.leave()) == (True, {}, "Here again.", 0)


# a client that does not read


@pytest.mark.claim("wire.real-servers")
def test_TR21_a_client_that_stops_reading_holds_up_no_turn_and_sees_everything_once_it_reads(
    channels: Channels, tmp_path: Path
) -> None:
    size = 900_000
    mock = channels.loopback(script(*(step("x" * size) for _ in range(6)), step("Last.")))
    with RealServer("sdk", tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        with server.not_reading():
            lines = [server.prompt_line("s", f"say {number}") for number in range(7)]
            server.write(b"".join(line for _, line in lines))
            until_asked(mock, 7)
        assert server.ended(7) == ["completed"] * 7
        told: list[Any] = events(server.frames)
        assert server.leave() == 0
    assert [event["seq"] for event in told] == list(range(len(told)))
    assert [len(words) for words in server.texts()] == [size] * 6 + [len("Last.")]


def until_asked(mock: Mock, count: int) -> None:
    """Wait until the model was asked that often."""
    for _ in range(6_000):
        if len(mock.journal.entries) >= count:
            return
        select.select([], [], [], 0.01)
    raise AssertionError(f"the model was asked {len(mock.journal.entries)} times")
