"""A scripted model's service for the tests of the surfaces: the same answers in memory and over loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


def _frame(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _frame({"id": "scripted", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@dataclass(frozen=True)
class Reply:
    """One answer: the pieces of its body; hold says after how many of them it waits for the script's gate."""

    pieces: tuple[bytes, ...]
    status: int = 200
    hold: int | None = None


def say(text: str, *, usage: tuple[int, int] | None = None, finish: str = "stop", hold: int | None = None) -> Reply:
    """An answer in words; text comes as one piece."""
    pieces = [_piece({"content": text})] if text else [_piece({"reasoning_content": "hm"})]
    pieces.append(_piece({}, finish))
    if usage is not None:
        spent = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        pieces.append(_frame({"choices": [], "usage": spent}))
    return Reply((*pieces, b"data: [DONE]\n\n"), hold=hold)


def use(name: str, arguments: dict[str, Any], *, text: str = "", call_id: str = "call_1") -> Reply:
    """An answer that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": call_id, "type": "function", "function": function}
    words = (_piece({"content": text}),) if text else ()
    return Reply((*words, _piece({"tool_calls": [call]}), _piece({}, "tool_calls"), b"data: [DONE]\n\n"))


def refuse(status: int, message: str) -> Reply:
    """An error of the service."""
    return Reply((json.dumps({"error": {"message": message}}).encode(),), status=status)


@dataclass
class Script:
    """Answers in order, and what was asked."""

    replies: list[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)

    def next(self, body: bytes) -> Reply:
        self.requests.append(json.loads(body))
        self.asked.set()
        if len(self.requests) > len(self.replies):
            return refuse(400, f"request {len(self.requests)} is not scripted")
        return self.replies[len(self.requests) - 1]


class ScriptedTransport(httpx.AsyncBaseTransport):
    """The script as a transport; a held answer waits for on_hold, which the test gives."""

    def __init__(self, script: Script, on_hold: Callable[[], Any] | None = None) -> None:
        self._script = script
        self._on_hold = on_hold

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        reply = self._script.next(await request.aread())
        kind = "text/event-stream" if reply.status == 200 else "application/json"
        return httpx.Response(reply.status, headers={"content-type": kind}, content=self._body(reply))

    async def _body(self, reply: Reply) -> AsyncIterator[bytes]:
        for number, piece in enumerate(reply.pieces):
            if number == reply.hold and self._on_hold is not None:
                await self._on_hold()
            yield piece


class _Handler(BaseHTTPRequestHandler):
    script: Script

    def do_POST(self) -> None:
        reply = self.script.next(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(reply.status)
        self.send_header("content-type", "text/event-stream" if reply.status == 200 else "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for number, piece in enumerate(reply.pieces):
                if number == reply.hold:
                    self.wfile.flush()
                    self.script.held.set()
                    self.script.gate.wait(30)
                self.wfile.write(piece)
        except OSError:
            return  # the client went away, which is what some tests are about

    def log_message(self, *arguments: object) -> None:
        """Stay quiet."""


@contextmanager
def served(script: Script) -> Iterator[str]:
    """The script at a loopback address, as a base URL."""
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        script.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
