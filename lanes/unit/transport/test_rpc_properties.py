"""Any bytes in: frames stay in step, only requests are answered, nothing is raised and no more than a line is held."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.transport.rpc import METHOD_NOT_FOUND, Peer
from lanes.unit.transport.memory_pipes import MemorySink, MemorySource

LIMIT_BYTES = 300  # small, so that the search passes it often
PROBE = b'{"id":"probe","method":"none"}\n'

_TEXTS = st.text(max_size=8) | st.sampled_from(
    ["id", "method", "params", "result", "jsonrpc", "2.0", "\ud800", "\u2028"]
)
_NUMBERS = st.integers() | st.floats()
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_MEMBERS = st.fixed_dictionaries(
    {}, optional={"jsonrpc": _VALUES, "id": _VALUES, "method": _VALUES, "params": _VALUES, "error": _VALUES}
)
_REQUESTS = st.fixed_dictionaries(
    {"id": st.integers() | st.text(max_size=5) | st.floats(), "method": st.text(max_size=5)}
)


def spelled(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


_LINES = st.one_of(
    st.binary(max_size=40),
    _VALUES.map(spelled),
    _MEMBERS.map(spelled),
    _REQUESTS.map(spelled),
    _REQUESTS.map(lambda frame: json.dumps(frame, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.integers(1, 400).map(lambda size: b"[" * size),
    st.integers(250, 400).map(lambda size: b"x" * size),
    st.sampled_from([b"\xef\xbb\xbf" + PROBE[:-1].replace(b"probe", b"marked"), b'{"id":1e999,"method":"x"}', b"NaN"]),
)
_STREAMS = st.lists(st.tuples(_LINES, st.sampled_from([b"\n", b"\r\n", b"\n\n", b""])), max_size=12)


def asked(stream: bytes) -> list[Any]:
    """The ids of the requests in a stream, by a reading of its own: one line after the other, nothing shared."""
    found: list[Any] = []
    for line in stream.split(b"\n")[:-1]:
        frame = None if len(line) > LIMIT_BYTES else _object(line)
        identity = None if frame is None else frame.get("id")
        is_id = isinstance(identity, str | int | float) and not isinstance(identity, bool)
        if frame is not None and is_id and isinstance(frame.get("method"), str):
            found.append(identity)
    return found


def _object(line: bytes) -> dict[str, Any] | None:
    def refuse(word: str) -> Any:
        raise ValueError(word)

    def finite(text: str) -> float:
        value = float(text)
        return value if math.isfinite(value) else refuse(text)

    try:
        value = json.loads(line.decode("utf-8-sig").strip(" \t\r\n"), parse_constant=refuse, parse_float=finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def cut(stream: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The stream in pieces, cut at these places."""
    places = [0, *sorted({place % (len(stream) + 1) for place in cuts}), len(stream)]
    return [stream[start:end] for start, end in pairwise(places)]


async def answers(pieces: Sequence[bytes]) -> tuple[list[Any], int]:
    """The frames that a peer without any handler writes, and the most it held of an unfinished line."""
    source, sink = MemorySource(), MemorySink()
    peer = Peer(source, sink, ids=lambda: "own", report=lambda text: None, max_line_bytes=LIMIT_BYTES)
    peer.start()
    held = 0
    for piece in pieces:
        source.send(piece)
        held = max(held, len(peer._decoder._lines._held))
    await peer.settle()
    source.end()
    peer.close()
    return [json.loads(line) for line in sink.data.split(b"\n") if line], held


@settings(deadline=None, max_examples=300)
@given(stream=_STREAMS, cuts=st.lists(st.integers(0, 5000), max_size=8))
@example(stream=[(PROBE[:-1], b"\r\n"), (b"\xff", b"\n"), (b"x" * 301, b"\n"), (PROBE[:-1], b"\n")], cuts=[1, 40, 60])
def test_TR01_TR03_TR18_any_bytes_in_any_pieces_answer_exactly_the_requests_among_them(
    stream: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    data = b"".join(line + end for line, end in stream)
    written, held = asyncio.run(answers([*cut(data, cuts), b"\n", PROBE]))

    expected = asked(data + b"\n" + PROBE)
    assert [frame["id"] for frame in written] == expected
    assert [type(frame["id"]) for frame in written] == [type(identity) for identity in expected]
    assert {frame["error"]["code"] for frame in written} == {METHOD_NOT_FOUND}
    assert held <= LIMIT_BYTES


@settings(deadline=None, max_examples=100)
@given(params=_VALUES, result=st.dictionaries(_TEXTS, _VALUES, max_size=3))
def test_TR19_whatever_is_answered_is_one_line_of_ascii_that_is_valid_json(params: Any, result: Any) -> None:
    async def run() -> bytes:
        source, sink = MemorySource(), MemorySink()

        async def echo(given: Any) -> Any:
            return {"given": given, **result}

        peer = Peer(source, sink, ids=lambda: "own", report=lambda text: None, handlers={"echo": echo})
        peer.start()
        source.send(spelled({"id": 1, "method": "echo", "params": params}) + b"\n")
        await peer.settle()
        peer.close()
        return sink.data

    written = asyncio.run(run())
    assert written.isascii()
    assert written.count(b"\n") == bool(written)
    assert all(_object(line) is not None for line in written.splitlines())
