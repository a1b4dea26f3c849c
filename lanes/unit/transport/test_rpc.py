"""The peer answers what is asked, ignores what is malformed, and leaves nothing pending behind."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

from harness.errors import UsageError
from harness.model.messages import JsonObject
from harness.transport.rpc import CallTimeoutError, ConnectionEndedError, Peer, RpcError
from lanes.unit.transport.memory_pipes import MemorySink, MemorySource

MALFORMED = [
    b"garbage", b"", b"   ", b"null", b"5", b'"s"', b"[]", b'[{"id":1,"method":"echo"}]', b"{}", b"\xff\xfe{",
    b"[" * 100_000, b'{"id":1,"method":"echo","params":{"n":1e999}}', b'{"id":NaN,"method":"echo"}',
]  # fmt: skip
MANY = 10_000


class Ends:
    """A peer and both its ends."""

    def __init__(self, **options: Any) -> None:
        self.source, self.sink = MemorySource(), MemorySink()
        self.notes: list[str] = []
        numbers = itertools.count(1)
        self.heard: list[tuple[str, JsonObject]] = []
        self.peer = Peer(
            self.source,
            self.sink,
            ids=lambda: f"own-{next(numbers)}",
            report=self.notes.append,
            **{"handlers": {"echo": echo}, "hear_all": lambda *told: self.heard.append(told), **options},
        )
        self.peer.start()

    async def answers(self) -> list[Any]:
        await asyncio.sleep(0)
        await self.peer.settle()
        return self.sink.frames


class PartSink(MemorySink):
    """Keeps each piece by itself; there are many."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytes] = []

    def put(self, data: bytes) -> None:
        self.parts.append(data)


async def echo(params: JsonObject) -> JsonObject:
    return {"echo": dict(params)}


@pytest.fixture
def ends(anyio_backend: str) -> Ends:
    return Ends()


# frames in --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", MALFORMED, ids=range(len(MALFORMED)))
async def test_TR01_a_malformed_line_is_not_answered_and_the_next_request_is_served(line: bytes) -> None:
    ends = Ends()
    ends.source.send(line + b"\n")
    ends.source.frame(id=1, method="echo", params={"a": 1})
    assert await ends.answers() == [{"jsonrpc": "2.0", "id": 1, "result": {"echo": {"a": 1}}}]
    assert (ends.heard, ends.notes, ends.peer.end) == ([], [], None)


async def test_TR02_a_character_split_over_two_reads_is_whole() -> None:
    ends = Ends()
    line = '{"id":1,"method":"echo","params":{"a":"é€😀"}}\n'.encode()
    for at in range(len(line)):
        ends.source.send(line[at : at + 1])
    assert (await ends.answers())[0]["result"] == {"echo": {"a": "é€😀"}}


async def test_TR03_frames_are_found_however_the_reads_cut_them() -> None:
    ends = Ends()
    ends.source.send(b'\xef\xbb\xbf{"id":1,"method":"echo"}\r\n{"id":2,"meth')
    ends.source.send(b'od":"echo"}\n \n{"id":3,')
    ends.source.send(b'"method":"echo"}\n')
    assert [frame["id"] for frame in await ends.answers()] == [1, 2, 3]


@pytest.mark.parametrize("identity", ["1", 1, 1.5, 0, "", -7, 2**63], ids=repr)
async def test_TR04_an_id_comes_back_with_value_and_type(identity: object) -> None:
    ends = Ends()
    ends.source.frame(id=identity, method="echo")
    (answer,) = await ends.answers()
    assert (answer["id"], type(answer["id"])) == (identity, type(identity))


@pytest.mark.parametrize("identity", [True, False, None, {}, []])
async def test_TR04_TR06_another_id_makes_a_notification(identity: object) -> None:
    ends = Ends()
    ends.source.frame(id=identity, method="echo", params={"a": 1})
    assert (await ends.answers(), ends.heard) == ([], [("echo", {"a": 1})])


async def test_TR05_an_unknown_method_and_a_failing_handler_have_their_own_codes() -> None:
    async def fails(params: JsonObject) -> JsonObject:
        raise RuntimeError("the disk is on fire")

    async def refuses(params: JsonObject) -> JsonObject:
        raise UsageError("expected text", where="sessionId")

    ends = Ends(handlers={"fails": fails, "refuses": refuses})
    for number, method in enumerate(["none", "fails", "refuses"]):
        ends.source.frame(id=number, method=method)
    assert {frame["id"]: frame["error"] for frame in await ends.answers()} == {
        0: {"code": -32601, "message": "method not found: none"},
        1: {"code": -32603, "message": "the disk is on fire"},
        2: {"code": -32602, "message": "sessionId: expected text"},
    }


async def test_TR06_a_notification_is_never_answered_also_when_it_cannot_be_taken_in() -> None:
    def fails(params: JsonObject) -> None:
        raise RuntimeError("no")

    ends = Ends(told={"fails": fails})
    ends.source.frame(method="fails")
    ends.source.frame(method="unknown")
    assert (await ends.answers(), ends.notes) == ([], ["fails could not be taken in: no"])


@pytest.mark.parametrize("params", [[1], 5, "s", None, True])
async def test_TR07_params_that_are_no_object_are_an_empty_one(params: object) -> None:
    ends = Ends()
    ends.source.frame(id=1, method="echo", params=params)
    assert (await ends.answers())[0]["result"] == {"echo": {}}


async def test_TR08_a_slow_request_does_not_hold_up_a_later_one() -> None:
    gate = asyncio.Event()

    async def slow(params: JsonObject) -> JsonObject:
        await gate.wait()
        return {}

    ends = Ends(handlers={"slow": slow, "echo": echo})
    ends.source.frame(id=1, method="slow")
    ends.source.frame(id=2, method="echo")
    for _ in range(3):
        await asyncio.sleep(0)
    gate.set()
    assert [frame["id"] for frame in await ends.answers()] == [2, 1]


async def test_a_notification_is_heard_after_the_requests_that_came_before_it_have_begun() -> None:
    begun: list[str] = []

    async def begin(params: JsonObject) -> JsonObject:
        begun.append("request")
        return {}

    ends = Ends(handlers={"begin": begin}, told={"tell": lambda params: begun.append("notification")})
    ends.source.send(b'{"id":1,"method":"begin"}\n{"method":"tell"}\n{"id":2,"method":"begin"}\n')
    await ends.answers()
    assert begun == ["request", "notification", "request"]


async def test_TR18_a_line_over_the_limit_is_dropped_and_the_next_one_served() -> None:
    ends = Ends(max_line_bytes=100)
    ends.source.send(b"x" * 1000)
    ends.source.send(b"y\n")
    ends.source.frame(id=1, method="echo")
    assert [frame["id"] for frame in await ends.answers()] == [1]
    assert ends.notes == ["a line of more than 100 bytes was dropped"]


async def test_TR13_an_unfinished_last_line_is_not_executed() -> None:
    ends = Ends()
    ends.source.send(b'{"id":1,"method":"echo"}\n{"id":2,"method":"echo"}')
    ends.source.end()
    assert [frame["id"] for frame in await ends.answers()] == [1]


async def test_TR19_half_a_character_is_written_as_an_escape_and_no_number_without_end_leaves() -> None:
    async def odd(params: JsonObject) -> JsonObject:
        return {"text": "\ud83d"} if params else {"number": float("nan")}

    ends = Ends(handlers={"odd": odd})
    ends.source.frame(id=1, method="odd", params={"a": 1})
    ends.source.frame(id=2, method="odd")
    text, number = await ends.answers()
    assert (text["result"], number["error"]["code"]) == ({"text": "\ud83d"}, -32603)
    assert ends.sink.data.isascii()


# own requests -----------------------------------------------------------------------------------------------------


async def test_TR09_an_answer_that_comes_before_the_write_returns_is_taken() -> None:
    ends = Ends()
    ends.sink.on_put = lambda: ends.source.frame(id="own-1", result={"ok": True})
    assert await ends.peer.request("ask", {}, timeout_s=1) == {"ok": True}


async def test_TR10_a_timeout_leaves_nothing_and_a_late_answer_is_ignored() -> None:
    ends = Ends()
    with pytest.raises(CallTimeoutError):
        await ends.peer.request("ask", timeout_s=0)
    ends.source.frame(id="own-1", result={})
    assert (ends.peer.pending_calls, ends.notes, ends.sink.frames[0]["id"]) == (0, [], "own-1")


async def test_TR10_a_cancelled_call_leaves_nothing() -> None:
    ends = Ends()
    call = asyncio.ensure_future(ends.peer.request("ask"))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})
    assert (call.cancelled(), ends.peer.pending_calls) == (True, 0)


async def test_a_call_that_can_be_withdrawn_says_so_when_it_is_cancelled_and_not_when_it_was_answered() -> None:
    ends = Ends()
    calls = [asyncio.ensure_future(ends.peer.request("ask", withdrawal="$/gone")) for _ in range(3)]
    await asyncio.sleep(0)
    ends.source.frame(id="own-1", result={})
    for call in calls[:2]:  # the answer of the first has come, and nobody has looked at it yet
        call.cancel()
    await asyncio.wait(set(calls[:2]))
    ends.source.frame(id="own-2", result={})
    ends.source.frame(id="own-3", result={"ok": True})
    assert (await calls[2], ends.peer.pending_calls, ends.notes) == ({"ok": True}, 0, [])
    assert ends.sink.frames[3:] == [{"jsonrpc": "2.0", "method": "$/gone", "params": {"requestId": "own-2"}}]


async def test_TR10_ten_thousand_pending_calls_are_answered_in_any_order_and_leave_nothing() -> None:
    source, sink, numbers = MemorySource(), PartSink(), itertools.count()
    peer = Peer(source, sink, ids=lambda: f"own-{next(numbers)}", report=print)
    peer.start()
    calls = [asyncio.ensure_future(peer.request("ask", {"number": number})) for number in range(MANY)]
    await asyncio.sleep(0)
    pending = peer.pending_calls
    for number in reversed(range(MANY)):
        source.frame(id=f"own-{number}", result={"number": number})
    assert [await call for call in calls] == [{"number": number} for number in range(MANY)]
    assert (pending, len(sink.parts), peer.pending_calls) == (MANY, MANY, 0)


async def test_TR08_ten_thousand_requests_may_be_pending_and_each_is_answered_once() -> None:
    gate, source, sink = asyncio.Event(), MemorySource(), PartSink()

    async def slow(params: JsonObject) -> JsonObject:
        await gate.wait()
        return {}

    peer = Peer(source, sink, ids=str, report=print, handlers={"slow": slow})
    peer.start()
    source.send(b"".join(b'{"id":%d,"method":"slow"}\n' % number for number in range(MANY)))
    source.frame(id="last", method="none")
    await asyncio.sleep(0)
    while_pending = len(sink.parts)
    gate.set()
    await peer.settle()
    assert (while_pending, [json.loads(part)["id"] for part in sink.parts]) == (1, ["last", *range(MANY)])


async def test_TR11_a_call_cancelled_before_it_began_writes_nothing() -> None:
    ends = Ends()
    call = asyncio.ensure_future(ends.peer.request("ask"))
    call.cancel()
    await asyncio.wait({call})
    assert ends.sink.data == b""


@pytest.mark.parametrize(
    ("error", "code", "message", "data"),
    [
        ({"code": 7, "message": "no", "data": [1]}, 7, "no", [1]),
        ({"code": "7"}, 0, "the peer answered with an error", None),
        ({"code": True, "message": 5}, 0, "the peer answered with an error", None),
        ("words", 0, "words", None),
    ],
)
async def test_an_error_answer_raises_with_what_it_said(error: object, code: int, message: str, data: object) -> None:
    ends = Ends()
    ends.sink.on_put = lambda: ends.source.frame(id="own-1", error=error)
    with pytest.raises(RpcError) as raised:
        await ends.peer.request("ask", timeout_s=1)
    assert (raised.value.rpc_code, raised.value.what, raised.value.data) == (code, message, data)


async def test_an_error_that_is_null_is_a_success() -> None:
    ends = Ends()
    ends.sink.on_put = lambda: ends.source.frame(id="own-1", error=None, result={"a": 1})
    assert await ends.peer.request("ask", timeout_s=1) == {"a": 1}


# the end ----------------------------------------------------------------------------------------------------------


async def pending(ends: Ends) -> asyncio.Task[Any]:
    call = asyncio.ensure_future(ends.peer.request("ask"))
    await asyncio.sleep(0)
    return call


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("end", "the other end closed the connection"),
        ("error", "input/output error"),
        ("close", "transport closed"),
        ("write", "the output cannot be written: broken pipe"),
    ],
)
async def test_TR12_each_end_fails_what_is_pending_with_its_own_text(how: str, text: str) -> None:
    ends = Ends()
    call = await pending(ends)
    match how:
        case "end":
            ends.source.end()
        case "error":
            ends.source.end("input/output error")
        case "close":
            ends.peer.close()
        case _:
            ends.sink.on_failure(text)
    with pytest.raises(ConnectionEndedError, match=text):
        await call
    with pytest.raises(ConnectionEndedError, match=text):
        await ends.peer.request("later", timeout_s=1)
    assert (ends.peer.end, ends.peer.pending_calls, ends.peer.ended.is_set()) == (text, 0, True)


async def test_TR12_a_write_that_fails_fails_its_own_call() -> None:
    ends = Ends()
    ends.sink.fails = True
    with pytest.raises(ConnectionEndedError, match="broken pipe"):
        await ends.peer.request("ask", timeout_s=1)
    assert ends.peer.pending_calls == 0


async def test_after_close_nothing_is_written() -> None:
    gate = asyncio.Event()

    async def slow(params: JsonObject) -> JsonObject:
        await gate.wait()
        return {}

    ends = Ends(handlers={"slow": slow})
    ends.source.frame(id=1, method="slow")
    await asyncio.sleep(0)
    ends.peer.close()
    gate.set()
    ends.peer.notify("late", {})
    assert (await ends.answers(), ends.sink.is_closed, ends.source.is_closed) == ([], True, True)


async def test_close_before_start_and_twice_is_a_close() -> None:
    source, sink = MemorySource(), MemorySink()
    peer = Peer(source, sink, ids=lambda: "a", report=lambda line: None)
    peer.close()
    peer.close()
    peer.start()
    assert (peer.end, peer.ended.is_set()) == ("transport closed", True)
