"""The loopback server: the same bytes as in the process, faults on the wire, one port for all."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Iterator

import httpx
import pytest

import mock_provider
from mock_provider.errors import UsageError
from mock_provider.json_values import JsonObject
from mock_provider.limits import Limits
from mock_provider.mock import Mock
from mock_provider.replies import fault, gate, script, step, text, tool_call
from mock_provider.server import ServerThread, serve

AUTHORIZED = {"authorization": "Bearer x"}
BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
STREAM: JsonObject = {**BODY, "stream": True}
SCRIPTED = script(
    step(text("one two three"), tool_call("f", {"a": "ü"}), stream={"split": "words"}),
    step("whole"),
    step(http_error={"status": 429, "retry_after": 1}),
    step(text("bytes über"), stream={"split": {"bytes": 5}}),
    step(text("all at once"), stream={"split": "words", "events_per_write": 0}),
)


def raw_request(body: bytes = json.dumps(BODY).encode(), *headers: str, path: str = "/v1/chat/completions") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", "authorization: Bearer x", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture
def served() -> Iterator[Mock]:
    with ServerThread(script(step("hi", repeat="forever"))) as mock:
        yield mock


def connect(mock: Mock) -> socket.socket:
    host, port = mock.root.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def bodies(url: str, client: httpx.Client) -> list[tuple[int, bytes]]:
    found = []
    for body in (STREAM, BODY, BODY, STREAM, STREAM):
        answer = client.post(f"{url}/chat/completions", json=body, headers=AUTHORIZED)
        found.append((answer.status_code, answer.content))
    return found


def test_server_and_transport_send_the_same_bytes() -> None:
    face = mock_provider.transport(SCRIPTED)
    with httpx.Client(transport=face) as inside:
        expected = bodies(face.mock.base_url(), inside)
    with ServerThread(SCRIPTED) as mock, httpx.Client() as outside:
        assert bodies(mock.base_url(), outside) == expected
        assert [entry.reply_digest for entry in mock.journal.entries] == [
            entry.reply_digest for entry in face.mock.journal.entries
        ]
        assert [entry.pieces_sent for entry in mock.journal.entries] == [
            entry.pieces_sent for entry in face.mock.journal.entries
        ]
        assert mock.verify().ok


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param("reset", httpx.ReadError, id="reset"),
        pytest.param("cut", httpx.RemoteProtocolError, id="cut"),
        pytest.param("garbage", httpx.RemoteProtocolError, id="garbage"),
        pytest.param("stall", httpx.ReadTimeout, id="stall"),
    ],
)
async def test_a_fault_on_the_wire_comes_after_the_pieces_before_it(kind: str, error: type[Exception]) -> None:
    got = b""
    async with serve(script(step(text("one"), fault(kind)), step("next"))) as mock, httpx.AsyncClient() as client:
        with pytest.raises(error):  # noqa: PT012 - what came before the error counts
            async with client.stream(
                "POST", f"{mock.base_url()}/chat/completions", json=STREAM, headers=AUTHORIZED, timeout=0.2
            ) as answer:
                async for piece in answer.aiter_raw():
                    got += piece
        after = await client.post(f"{mock.base_url()}/chat/completions", json=BODY, headers=AUTHORIZED)
        assert (b'"content":"one"' in got, mock.journal[0].end, after.status_code) == (True, f"fault {kind}", 200)


@pytest.mark.parametrize("kind", ["reset", "cut", "garbage"])
async def test_a_fault_before_any_byte_sends_no_answer(kind: str) -> None:
    async with serve(script(step(fault=kind))) as mock, httpx.AsyncClient() as client:
        with pytest.raises(httpx.TransportError):
            await client.post(f"{mock.base_url()}/chat/completions", json=BODY, headers=AUTHORIZED)


async def test_a_clean_end_without_end_mark_keeps_the_connection() -> None:
    async with serve(script(step(text("one"), fault("end")), step("next"))) as mock, httpx.AsyncClient() as client:
        url = f"{mock.base_url()}/chat/completions"
        first = await client.post(url, json=STREAM, headers=AUTHORIZED)
        second = await client.post(url, json=BODY, headers=AUTHORIZED)
    assert (b"[DONE]" in first.content, b'"content":"one"' in first.content, second.status_code) == (False, True, 200)


async def test_a_gate_holds_one_client_while_another_is_served() -> None:
    held = step(text("one"), gate("middle"), text("two"), expect={"last_user": "held"})
    played = script({"any_order": [held, step("free", expect={"last_user": "free"})]})
    async with serve(played) as mock, httpx.AsyncClient(base_url=mock.base_url(), headers=AUTHORIZED) as client:

        def ask(words: str) -> JsonObject:
            return {**STREAM, "messages": [{"role": "user", "content": words}]}

        waiting = asyncio.ensure_future(client.post("/chat/completions", json=ask("held")))
        assert await mock.gate("middle").reached()
        free = await client.post("/chat/completions", json=ask("free"))
        opened = await client.post(f"{mock.root}/__mock__/gates/middle")
        answer = await waiting
        assert (free.status_code, opened.json()["open"], b"two" in answer.content) == (200, True, True)
        assert mock.verify().ok


async def test_a_client_that_leaves_is_noted_with_its_piece() -> None:
    async with serve(script(step(text("one"), gate("middle"), text("two")))) as mock:
        async with (
            httpx.AsyncClient(base_url=mock.base_url(), headers=AUTHORIZED) as client,
            client.stream("POST", "/chat/completions", json=STREAM) as answer,
        ):
            await anext(answer.aiter_raw())
            await mock.gate("middle").reached()
        while mock.gate("middle").waiting:  # noqa: ASYNC110 - a server has no word for it; the time limit is pytest's
            await asyncio.sleep(0)
        assert (mock.journal[0].end, mock.verify().ok) == ("client gone at piece 1", True)


def test_requests_sent_in_one_write_are_answered_in_order(served: Mock) -> None:
    with connect(served) as sock:
        sock.sendall(raw_request() + raw_request(b"{", "connection: close"))
        data = read_all(sock)
    assert [answer.split(b"\r\n")[0] for answer in data.split(b"HTTP/1.1 ")[1:]] == [b"200 OK", b"400 Bad Request"]


def test_a_request_in_single_bytes_is_understood(served: Mock) -> None:
    with connect(served) as sock:
        for at in raw_request(json.dumps(BODY).encode(), "connection: close"):
            sock.sendall(bytes([at]))
        assert read_all(sock).startswith(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-mock-provider: scripted"
        )


def test_the_headers_come_in_a_fixed_order(served: Mock) -> None:
    with connect(served) as sock:
        sock.sendall(raw_request(json.dumps(STREAM).encode(), "connection: close"))
        head = read_all(sock).split(b"\r\n\r\n")[0].decode()
    names = [line.split(":")[0] for line in head.split("\r\n")[1:]]
    assert names == ["content-type", "x-mock-provider", "x-request-id", "transfer-encoding", "connection"]


def test_a_client_that_waits_for_100_is_told_to_go_on(served: Mock) -> None:
    body = json.dumps(BODY).encode()
    with connect(served) as sock:
        sock.sendall(raw_request(body, "expect: 100-continue", "connection: close")[: -len(body)])
        assert sock.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert read_all(sock).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400", id="tls"),
        pytest.param(b"GET / HTTP/1.1\r\nbroken header\r\n\r\n", b"400", id="header"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 70_000, b"431", id="header-block-too-large"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ten\r\n\r\n", b"400", id="length"),
    ],
)
def test_what_is_not_http_gets_a_plain_answer_and_a_close(served: Mock, data: bytes, status: bytes) -> None:
    with connect(served) as sock:
        sock.sendall(data)
        assert read_all(sock).split(b" ")[1] == status
    with httpx.Client() as client:
        assert client.get(f"{served.root}/__mock__/health").json()["ok"] is True


CHUNKS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\ntransfer-encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(raw_request(b"x" * 2000)[:-2000], id="announced"),
        pytest.param(raw_request(b"x" * 2000), id="sent"),
        pytest.param(CHUNKS + b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\n", id="chunks"),
    ],
)
def test_a_body_over_the_limit_is_refused_in_the_providers_form(data: bytes) -> None:
    with ServerThread(Mock(script(step("hi")), limits=Limits(body_bytes=1000))) as mock:
        with connect(mock) as sock:
            sock.sendall(data)
            answer = read_all(sock)
        assert answer.split(b" ")[1] == b"413"
        assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["type"] == "invalid_request_error"
        assert [entry.rule for entry in mock.journal.entries] == ["body_too_large"]


def test_a_compressed_body_is_read(served: Mock) -> None:
    packed = gzip.compress(json.dumps(BODY).encode())
    with httpx.Client() as client:
        headers = {**AUTHORIZED, "content-encoding": "gzip", "content-type": "application/json"}
        answer = client.post(f"{served.base_url()}/chat/completions", content=packed, headers=headers)
    assert (answer.status_code, served.journal[0].body) == (200, BODY)


def test_head_of_the_root_is_alive_and_counts_as_no_request(served: Mock) -> None:
    with httpx.Client() as client:
        assert (client.head(served.root).status_code, len(served.journal)) == (200, 0)


def test_a_client_of_http_1_0_gets_the_bare_body_and_a_close(served: Mock) -> None:
    with connect(served) as sock:
        sock.sendall(raw_request(json.dumps(STREAM).encode()).replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, body = read_all(sock).split(b"\r\n\r\n", 1)
    assert (b"transfer-encoding" in head, body.startswith(b"data: {"), body.endswith(b"[DONE]\n\n")) == (
        False,
        True,
        True,
    )


def test_head_of_a_list_has_its_length_and_no_body(served: Mock) -> None:
    with connect(served) as sock:
        sock.sendall(b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\nconnection: close\r\n\r\n")
        head, body = read_all(sock).split(b"\r\n\r\n", 1)
    assert (b"content-length: 27" in head, body) == (True, b"")


async def test_a_gate_that_stays_shut_ends_the_answer_at_its_time_limit() -> None:
    stuck = Mock(script(step(text("one"), gate("shut"))), gate_timeout_s=0.05)
    async with serve(stuck) as mock, httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(f"{mock.base_url()}/chat/completions", json=STREAM, headers=AUTHORIZED)
        assert ["[GATE_NEVER_OPENED]" in problem for problem in mock.verify().gates] == [True]


async def test_reset_gives_up_the_answers_that_wait_and_shuts_the_gates_again() -> None:
    async with (
        serve(script(step(text("one"), gate("g"), text("two")))) as mock,
        httpx.AsyncClient(base_url=mock.base_url(), headers=AUTHORIZED) as client,
    ):
        waiting = asyncio.ensure_future(client.post("/chat/completions", json=STREAM))
        await mock.gate("g").reached()
        mock.reset()
        with pytest.raises(httpx.ReadError):
            await waiting
        assert (mock.gate("g").is_open, mock.gate("g").arrival.is_open, len(mock.journal)) == (False, False, 0)


async def test_declared_waiting_is_kept() -> None:
    paced = script(step(text("one two"), stream={"split": "words", "first_ms": 30, "every_ms": 30}))
    loop = asyncio.get_running_loop()
    async with serve(paced) as mock, httpx.AsyncClient() as client:
        before = loop.time()
        await client.post(f"{mock.base_url()}/chat/completions", json=STREAM, headers=AUTHORIZED)
        assert loop.time() - before >= 0.06


@pytest.mark.parametrize(
    ("encoding", "data", "status"),
    [
        pytest.param("gzip", b"not gzip", 400, id="not-gzip"),
        pytest.param("br", b"x", 415, id="unknown"),
        pytest.param("gzip", gzip.compress(b" " * 3_000), 413, id="bomb"),
    ],
)
def test_an_encoded_body_that_cannot_be_read_is_refused(encoding: str, data: bytes, status: int) -> None:
    face = mock_provider.transport(Mock(script(step("hi")), limits=Limits(body_bytes=1000)))
    headers = {**AUTHORIZED, "content-encoding": encoding}
    with httpx.Client(transport=face) as client:
        answer = client.post(f"{face.mock.base_url()}/chat/completions", content=data, headers=headers)
    assert answer.status_code == status


def test_control_routes_show_journal_and_verdict_and_reset(served: Mock) -> None:
    with httpx.Client(base_url=served.root, headers=AUTHORIZED) as client:
        client.post("/v1/chat/completions", json=BODY)
        journal = client.get("/__mock__/journal").json()["entries"]
        verdict = client.get("/__mock__/verify").json()
        client.post("/__mock__/reset")
        assert ([entry["step"] for entry in journal], verdict["ok"], len(served.journal)) == ([1], True, 0)
        assert client.get("/__mock__/gates/nothing").status_code == 404
        assert client.get("/__mock__/jurnal").status_code == 404


def test_a_port_that_is_taken_is_a_usage_error(served: Mock) -> None:
    port = int(served.root.rpartition(":")[2])
    with (
        pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"),
        ServerThread(script(step("x")), port=port),
    ):
        pass


def test_an_answer_larger_than_the_socket_takes_reaches_a_slow_reader_whole(served: Mock) -> None:
    long = "x" * 4_000_000
    with ServerThread(script(step(text(long), stream={"split": {"chars": 100_000}}))) as mock, connect(mock) as sock:
        sock.sendall(raw_request(json.dumps(STREAM).encode(), "connection: close"))
        data = read_all(sock)
        assert data.count(b"x" * 100_000) == 40
        assert mock.journal[0].end == "complete"


async def test_many_conversations_at_once_each_get_their_own_steps() -> None:
    names = [f"c{at}" for at in range(64)]
    played = script(conversations={name: {"steps": [step(f"{name} first"), step(f"{name} second")]} for name in names})

    async def talk(name: str, client: httpx.AsyncClient, mock: Mock) -> list[str]:
        found = []
        for _ in range(2):
            answer = await client.post(f"{mock.base_url(conversation=name)}/chat/completions", json=BODY)
            found.append(answer.json()["choices"][0]["message"]["content"])
        return found

    async with serve(played) as mock, httpx.AsyncClient(headers=AUTHORIZED) as client:
        found = await asyncio.gather(*(talk(name, client, mock) for name in names))
        assert found == [[f"{name} first", f"{name} second"] for name in names]
        assert mock.verify().ok
