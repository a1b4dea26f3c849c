"""MCP servers over streamable HTTP serve tools, and whatever they do wrong stays an error result or a line."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from harness.capabilities.mcp_config import HttpServer
from harness.capabilities.mcp_connection import Limits
from harness.log.events import Cause
from harness.loop.scope import CancelScope
from lanes.unit.capabilities.mcp_bench import START_S, Bench, ask, text_of
from lanes.unit.capabilities.mcp_good_server import build_server

OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    found = Bench(tmp_path, limits=Limits(start_s=START_S, close_s=1.0))
    yield found
    await found.close()


@pytest.fixture(params=["stream", "json"])
def official(request: pytest.FixtureRequest) -> Iterator[str]:
    """The server of the official package at a loopback address, with both ways to answer."""
    app = build_server().streamable_http_app(json_response=request.param == "json")
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, loop="asyncio", ws="none", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join()


class Peer(ThreadingHTTPServer):
    """A server of the standard library that answers as its test says."""

    daemon_threads = True

    def __init__(self, on_call: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None], way: str = "") -> None:
        self.on_call = on_call
        self.way = way
        self.asked: list[tuple[str, str | None]] = []
        self.held = threading.Event()
        self.release = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"


class Handler(BaseHTTPRequestHandler):
    server: Peer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = request.get("method", "")
        self.server.asked.append((method, self.headers.get("authorization")))
        if self.server.way == "broken":
            self.answer(500, b"<html>boom</html>", "text/html")
        elif self.server.way == "hangs":
            self.server.release.wait(30)
        elif "id" not in request:
            self.answer(202, b"")
        elif method == "initialize":
            version = request["params"]["protocolVersion"]
            self.result(
                request,
                {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "peer", "version": "1"}},
            )
        elif method == "tools/list":
            self.result(request, {"tools": [{"name": "echo", "inputSchema": OBJECT}]})
        elif method == "tools/call":
            self.server.on_call(self, request)
        else:
            error = {"code": -32601, "message": "unknown method"}
            self.answer(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode())

    def do_GET(self) -> None:
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(405, b"")

    def result(self, request: dict[str, Any], result: object) -> None:
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Stay quiet."""


def echo(handler: Any, request: dict[str, Any]) -> None:
    text = request["params"]["arguments"]["text"]
    handler.result(request, {"content": [{"type": "text", "text": f"echo: {text}"}]})


@contextmanager
def serving(on_call: Callable[[Any, dict[str, Any]], None] = echo, way: str = "") -> Iterator[Peer]:
    peer = Peer(on_call, way)
    thread = threading.Thread(target=peer.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        peer.release.set()
        peer.shutdown()
        peer.server_close()
        thread.join()


async def test_a_server_of_the_official_package_serves_its_tools(bench: Bench, official: str) -> None:
    servers = await bench.open(HttpServer("far", official))
    answers = [await ask(servers, "far__shout", text="hello"), await ask(servers, "far__fail", reason="no luck")]
    assert (sorted(servers.tools), servers.notices) == (["far__add", "far__fail", "far__shout"], ())
    assert [(text_of(each), each.is_error) for each in answers] == [
        ("HELLO", False),
        ("Error: Error executing tool fail: no luck", True),
    ]


async def test_the_configured_headers_go_with_every_request(bench: Bench) -> None:
    with serving() as peer:
        servers = await bench.open(HttpServer("far", peer.url, {"Authorization": "Bearer one"}))
        assert text_of(await ask(servers, "far__echo", text="a")) == "echo: a"
        await bench.close()
    assert {secret for _, secret in peer.asked} == {"Bearer one"}


async def test_a_server_nobody_reaches_is_left_out_with_a_line(bench: Bench) -> None:
    with serving() as peer:
        gone = peer.url
    servers = await bench.open(HttpServer("far", gone))
    (notice,) = servers.notices
    assert (servers.tools, notice.startswith("MCP server 'far' is left out: ")) == ({}, True)


async def test_a_server_that_answers_with_a_page_is_left_out_with_a_line(bench: Bench) -> None:
    with serving(way="broken") as peer:
        servers = await bench.open(HttpServer("far", peer.url))
    (notice,) = servers.notices
    assert (servers.tools, notice.startswith("MCP server 'far' is left out: "), "\n" in notice) == ({}, True, False)


async def test_a_server_that_hangs_at_the_handshake_is_given_up_after_its_time(bench: Bench) -> None:
    bench.limits = Limits(start_s=0.5, close_s=1.0)
    with serving(way="hangs") as peer:
        servers = await bench.open(HttpServer("far", peer.url))
    assert servers.notices == ("MCP server 'far' is left out: it did not list its tools within 0.5 s",)


def hang_up(handler: Any, request: dict[str, Any]) -> None:
    handler.close_connection = True


def write_nonsense(handler: Any, request: dict[str, Any]) -> None:
    handler.answer(200, b"\xff{nonsense")


def refuse(handler: Any, request: dict[str, Any]) -> None:
    handler.answer(503, b"busy", "text/plain")


@pytest.mark.parametrize("on_call", [hang_up, write_nonsense, refuse], ids=lambda each: each.__name__)
async def test_an_answer_that_is_none_is_an_error_result(bench: Bench, on_call: Any) -> None:
    with serving(on_call) as peer:
        servers = await bench.open(HttpServer("far", peer.url))
        output = await asyncio.wait_for(ask(servers, "far__echo", text="a"), 20)
    assert (output.is_error, text_of(output).startswith("Error: the MCP server 'far' ")) == (True, True)
    assert "\n" not in text_of(output)


async def test_a_cancel_ends_a_call_that_hangs(bench: Bench) -> None:
    def hold(handler: Any, request: dict[str, Any]) -> None:
        handler.server.held.set()
        handler.server.release.wait(30)

    with serving(hold) as peer:
        servers = await bench.open(HttpServer("far", peer.url))
        scope = CancelScope()
        asking = asyncio.ensure_future(ask(servers, "far__echo", scope, text="a"))
        await asyncio.to_thread(peer.held.wait, 30)
        scope.cancel(Cause("user"))
        output = await asking
        assert output.code == "ABORTED"
        await bench.close()


async def test_closing_does_not_wait_for_a_server_that_hangs(bench: Bench) -> None:
    with serving() as peer:
        servers = await bench.open(HttpServer("far", peer.url))
        peer.way = "hangs"
        await asyncio.wait_for(servers.close(), 10)
