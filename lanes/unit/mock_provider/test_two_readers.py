"""The server says the same bytes whether h11 or httptools cuts the heads, and whichever loop it runs in.

Each runs in a process of its own: the faster loop has no place in a process that is guarded.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_provider.http_head import FramingError, cut_with_h11, read_head

PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
SCRIPT = """\
version: 1
steps:
  - expect: {stream: true}
    reply: [{text: one two three}]
    stream: {split: words}
    optional: true
    repeat: forever
  - {reply: hi, repeat: forever}
"""
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
STREAM = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}).encode()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, int]]]:
    """Two servers of one script: the plain one, and one with the extra `speed`."""
    if not importlib.util.find_spec("httptools"):
        pytest.skip("httptools is not installed: the extra 'speed' is not held against the plain server")
    path = tmp_path_factory.mktemp("two") / "script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    with contextlib.ExitStack() as running:
        found = []
        for options in (["--plain"], []):
            command = [sys.executable, "-m", "mock_provider", "serve", str(path), *options]
            environment = {**os.environ, "PYTHONPATH": PATH_OF_CHILDREN}
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
            )
            running.enter_context(process)
            running.callback(process.terminate)
            assert process.stdout is not None
            split = urlsplit(json.loads(process.stdout.readline())["root"])
            found.append((str(split.hostname), int(split.port or 0)))
        yield found


def said(server: tuple[str, int], pieces: list[bytes]) -> bytes:
    """Everything a server answers until it closes; the client sends no more after the last piece."""
    with socket.create_connection(server, timeout=20) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in pieces:
                sock.sendall(piece)
            sock.shutdown(socket.SHUT_WR)
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := sock.recv(65_536):
                data += piece
        return data


def request(body: bytes, *more: bytes, line: bytes = b"POST /v1/chat/completions HTTP/1.1") -> bytes:
    length = b"content-length: %d" % len(body)
    return b"\r\n".join((line, b"host: x", b"authorization: Bearer x", length, *more, b"", b"")) + body


SAMPLES = {
    "whole": request(BODY),
    "stream": request(STREAM, b"connection: close"),
    "one-after-the-other": request(BODY) * 2 + request(STREAM) + request(BODY),
    "modern-and-old": request(BODY) + request(BODY, line=b"POST /v1/chat/completions HTTP/1.0"),
    "chunks": b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n"
    b"transfer-encoding: chunked\r\n\r\n%x;a=b\r\n%b\r\n0\r\ntrailer: x\r\n\r\n" % (len(BODY), BODY) + request(BODY),
    "upgrade": request(BODY, b"connection: upgrade", b"upgrade: h2c"),
    "head": b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n\r\n",
    "unknown-method": request(BODY, line=b"BREW /v1/chat/completions HTTP/1.1"),
    "http-2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "line-feeds": request(BODY).replace(b"\r\n", b"\n"),
    "no-host": request(BODY).replace(b"host: x\r\n", b""),
    "two-hosts": request(BODY, b"host: y"),
    "two-lengths": request(BODY, b"content-length: %d" % len(BODY)),
    "length-and-chunks": request(BODY, b"transfer-encoding: chunked"),
    "other-coding": request(BODY, b"transfer-encoding: gzip"),
    "folded": request(BODY, b"x-a: b\r\n c"),
    "space-before-colon": request(BODY, b"x-a : b"),
    "no-colon": request(BODY, b"x-a"),
    "null": request(BODY, b"x-a: \0"),
    "wide": request(BODY, b"x-a: \xc3\xbc"),
    "bad-target": request(BODY, line=b"POST v1 HTTP/1.1"),
    "proxy-target": request(BODY, line=b"POST http://x/v1/chat/completions HTTP/1.1"),
    "tls": b"\x16\x03\x01\x02\x00\x01",
    "empty-lines": b"\r\n\r\n" + request(BODY),
}


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES)
def test_both_say_the_same(servers: list[tuple[str, int]], data: bytes) -> None:
    plain, fast = (said(server, [data]) for server in servers)
    assert plain == fast
    assert plain


PARTS = st.sampled_from(
    [
        b"POST /v1/chat/completions HTTP/1.1\r\n",
        b"GET /v1/models HTTP/1.1\r\n",
        b"host: x\r\n",
        b"authorization: Bearer x\r\n",
        b"content-length: %d\r\n" % len(BODY),
        b"Content-Length: 3\r\n",
        b"transfer-encoding: chunked\r\n",
        b"expect: 100-continue\r\n",
        b"connection: close\r\n",
        b"x: \xff\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b":",
        b"\0",
        b"0\r\n\r\n",
        b"3\r\nabc\r\n",
        BODY,
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(PARTS, min_size=1, max_size=9), cuts=st.lists(st.integers(1, 40), max_size=4), is_sound=st.booleans()
)
def test_both_say_the_same_to_anything_in_any_pieces(
    servers: list[tuple[str, int]], parts: list[bytes], cuts: list[int], is_sound: bool
) -> None:
    data = (request(BODY) if is_sound else b"") + b"".join(parts)
    pieces = []
    for cut in cuts:
        pieces.append(data[:cut])
        data = data[cut:]
    plain, fast = (said(server, [*pieces, data]) for server in servers)
    assert plain == fast
    assert b"HTTP/1.1 500" not in plain


HEAD_LINES = st.lists(
    st.sampled_from(
        [
            b"host: x",
            b"host: y",
            b"content-length: 5",
            b"content-length: 05",
            b"content-length: +5",
            b"transfer-encoding: chunked",
            b"expect: 100-continue",
            b"x-a: b",
            b"x-a:b c ",
            b"x:",
            b"x: \x01",
            b"x a: b",
            b"x-\xff: b",
            b": b",
        ]
    ),
    max_size=4,
)


@given(
    lines=HEAD_LINES,
    line=st.sampled_from([b"GET / HTTP/1.1", b"GET / HTTP/1.0", b"POST /a?b#c HTTP/1.1", b"GET  / HTTP/1.1"]),
)
def test_what_is_read_is_what_h11_reads_and_what_h11_refuses_is_refused(lines: list[bytes], line: bytes) -> None:
    block = b"\r\n".join((line, *lines, b"", b""))
    peer = h11.Connection(h11.SERVER)
    peer.receive_data(block)
    try:
        event = peer.next_event()
    except h11.RemoteProtocolError:
        with pytest.raises(FramingError):
            read_head(block, cut_with_h11)
        return
    assert isinstance(event, h11.Request)
    headers: dict[str, list[str]] = {}
    for name, value in event.headers:
        headers.setdefault(name.decode("ascii"), []).append(value.decode("latin-1"))
    with contextlib.suppress(FramingError):  # refusing more than h11 does is our right
        head = read_head(block, cut_with_h11)
        assert (head.method.encode(), head.target.encode(), head.headers) == (
            event.method,
            event.target,
            {name: ", ".join(values) for name, values in headers.items()},
        )
