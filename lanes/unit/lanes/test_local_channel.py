"""The way to the model on this machine, with a stand-in for its server: its one port, its identity, its end."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Iterator

import anyio
import httpx
import pytest

from lanes.errors import GuardError
from lanes.live_run import LiveWish, live_targets, load_live_run
from lanes.local_channel import LocalTransport
from lanes.local_model import RunningModel
from lanes.local_run import ATTEMPTS, load_local_run, write_local_run
from lanes.trouble import Trouble

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
PIECE = b'data: {"id":"c1","model":"m-tiny","choices":[{"delta":{"content":"the code is %s"}}]}\n\n'


def running(port: int = 4711) -> RunningModel:
    return RunningModel(port, 99, "m-tiny", "sha256:" + "a" * 64, "stand-in 1.0", {"seed": 1})


def read_request(connection: socket.socket) -> None:
    """Take all of a request, head and body: closing over unread bytes resets the connection under its answer."""
    with connection.makefile("rb") as wire:
        head = list(itertools.takewhile(bytes.strip, wire))
        lengths = [int(line.partition(b":")[2]) for line in head if line.lower().startswith(b"content-length:")]
        wire.read(sum(lengths))


@contextlib.contextmanager
def server(said: bytes, *, has_reset: threading.Event | None = None) -> Iterator[int]:
    """Answer one request with these bytes; what is no whole answer ends with its connection.

    Shape: with has_reset the connection is reset right after the answer, and who waits for it is told so.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                read_request(connection)
                connection.sendall(said)
                if has_reset is not None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif said.endswith(LAST):
                    connection.recv(1)  # a whole answer keeps its connection until the client lets go of it

            if has_reset is not None:
                has_reset.set()

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            thread.join(10)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def ask(transport: LocalTransport, port: int, host: str = "127.0.0.1") -> str:
    async with httpx.AsyncClient(transport=transport) as client:
        reply = await client.post(f"http://{host}:{port}/v1/chat/completions", json={"model": "m-tiny", "messages": []})
        return reply.text


@pytest.mark.parametrize(
    ("host", "port"),
    [
        pytest.param("127.0.0.1", 4712, id="another-port"),
        pytest.param("localhost", 4711, id="by-name"),
        pytest.param("127.0.0.2", 4711, id="another-address"),
        pytest.param("api.openai.com", 4711, id="elsewhere"),
    ],
)
async def test_a_request_to_any_other_place_is_refused_before_a_byte_is_sent(host: str, port: int) -> None:
    transport = LocalTransport(running())

    with pytest.raises(GuardError):
        await ask(transport, port, host)

    assert transport.notes == ()


async def test_what_answered_stands_in_the_proof_in_place_of_host_and_tls() -> None:
    with server(HEAD + chunk(PIECE % b"1") + chunk(b"data: [DONE]\n\n") + LAST) as port:
        transport = LocalTransport(running(port))
        await ask(transport, port)

    facts = transport.proof_facts()
    assert facts["local"] == running(port).facts()
    assert (facts["peer_ip"], facts["peer_scope"], facts["tls"]) == ("127.0.0.1", "loopback", None)
    assert (transport.model_facts()["provider"], transport.model_facts()["private"]) == ("local", True)


async def test_who_answered_is_known_also_when_the_connection_is_reset_before_its_answer_is_read() -> None:
    has_reset = threading.Event()

    async def wait(name: str, info: object) -> None:
        if name == "http11.receive_response_headers.started":
            await anyio.to_thread.run_sync(has_reset.wait)

    answer = HEAD + chunk(PIECE % b"1") + chunk(b"data: [DONE]\n\n") + LAST
    with server(answer, has_reset=has_reset) as port:
        transport = LocalTransport(running(port))
        async with httpx.AsyncClient(transport=transport) as client:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            await client.post(url, json={"model": "m-tiny", "messages": []}, extensions={"trace": wait})

    (note,) = transport.notes
    assert (note["wire"]["stream"], note["wire"]["peer_ip"], note["wire"]["peer_scope"]) == (
        True,
        "127.0.0.1",
        "loopback",
    )


@pytest.mark.parametrize("is_said", [True, False], ids=["said", "not-said"])
async def test_the_token_of_a_run_is_a_number_that_has_to_come_back_in_words(is_said: bool) -> None:
    transport = LocalTransport(running())
    token = transport.new_challenge()
    said = PIECE % (token.encode() if is_said else b"unknown")

    with server(HEAD + chunk(said) + chunk(b"data: [DONE]\n\n") + LAST) as port:
        own = LocalTransport(running(port))
        own._challenge = token
        await ask(own, port)

    assert (len(token), token.isdecimal(), own.says_challenge) == (6, True, is_said)


async def test_a_server_that_has_gone_is_an_outage_and_not_a_failure_of_the_model() -> None:
    told: list[Trouble | None] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        port = int(taken.getsockname()[1])

        with pytest.raises(httpx.ConnectError):
            await ask(LocalTransport(running(port), tell=told.append), port)

    assert [each and each.code for each in told] == ["outage"]


async def test_a_server_that_goes_in_the_middle_of_its_answer_is_an_outage() -> None:
    told: list[Trouble | None] = []
    with server(HEAD + chunk(PIECE % b"1")) as port, pytest.raises(httpx.RemoteProtocolError):
        await ask(LocalTransport(running(port), tell=told.append), port)

    assert [each and each.code for each in told] == ["outage"]


def test_the_processes_of_a_run_find_the_model_that_it_started(tmp_path) -> None:
    write_local_run(tmp_path, running(), LiveWish())

    plan = load_live_run(tmp_path)
    assert load_local_run(tmp_path) == running()
    assert plan is not None
    assert (plan.attempts, [each.provider for each in plan.targets]) == (ATTEMPTS, ["local"])


def test_a_run_takes_the_number_of_attempts_that_was_asked_for(tmp_path) -> None:
    write_local_run(tmp_path, running(), LiveWish(attempts=9))

    plan = load_live_run(tmp_path)
    assert plan is not None
    assert plan.attempts == 9


def test_the_hosted_suite_finds_no_target_in_a_run_with_the_local_model(tmp_path) -> None:
    write_local_run(tmp_path, running(), LiveWish())

    assert live_targets({"LANES_SPOOL": str(tmp_path)}) == ()


def test_a_lane_that_started_no_model_has_no_way_to_one(tmp_path) -> None:
    with pytest.raises(GuardError, match="this lane has started no model"):
        load_local_run(tmp_path)
