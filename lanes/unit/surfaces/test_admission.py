"""Admission: a prompt is taken in whole or not at all, and a cancel in any of its windows queues nothing late."""

from __future__ import annotations

import asyncio
import base64
import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AttachmentError
from harness.log.events import RequestConfig
from harness.log.fold import open_turn
from harness.log.inbox import fold_inbox
from harness.log.session_log import SessionLog
from harness.loop.agent import Agent
from harness.model.messages import ImageBlock, Message, MessageId, SessionId, TextBlock, UserSource
from lanes.unit.surfaces.acp_bench import ONE_PIXEL, PICTURE, AcpBench, Held, stop, storing, until, words
from lanes.unit.surfaces.scripted import say

pytestmark = pytest.mark.claim("acp.admission")


async def test_AC08_the_log_holds_references_in_the_order_of_the_wire(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("seen"))
    session = await bench.ready()
    await bench.prompted(session, words("a"), words("b"), PICTURE, words("c"))
    (message,) = [event.payload.message for event in bench.agent(session).log if hasattr(event.payload, "message")][:1]
    raw = next((tmp_path / "sessions").rglob("session.jsonl")).read_text()
    await bench.leave()
    assert [type(block) for block in message.content] == [TextBlock, ImageBlock, TextBlock]
    assert PICTURE["data"] not in raw
    assert base64.b64encode(ONE_PIXEL).decode() in str(bench.script.requests[0]["messages"])


async def test_AC02_a_picture_on_a_connection_that_was_not_told_of_them_stores_nothing(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("ok"))
    session = await bench.new()  # nobody shook hands, so nothing was advertised
    answer = await bench.prompted(session, words("a"), PICTURE)
    again = await bench.say(session, "a")
    await bench.leave()
    assert (answer["code"], bench.pictures(), stop(again)) == (-32602, [], "end_turn")


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_AC03_one_bad_block_anywhere_stores_nothing_and_the_next_prompt_works(
    tmp_path: Path, position: int
) -> None:
    bench = AcpBench(tmp_path, say("ok"))
    session = await bench.ready()
    blocks: list[Any] = [words("a"), PICTURE]
    blocks.insert(position, {"type": "audio", "data": "x"})
    answer = await bench.prompted(session, *blocks)
    again = await bench.say(session, "a")
    await bench.leave()
    assert (answer["code"], bench.pictures(), stop(again)) == (-32602, [], "end_turn")


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a", ONE_PIXEL[:20], b"\x89PNG\r\n\x1a\n" + b"0" * 40],
    ids=["empty", "cut", "truncated", "other-type"],
)
async def test_AC04_AC10_a_picture_that_is_none_is_the_senders_mistake(tmp_path: Path, data: bytes) -> None:
    bench = AcpBench(tmp_path)
    session = await bench.ready()
    answer = await bench.prompted(session, PICTURE | {"data": base64.b64encode(data).decode()})
    await bench.leave()
    assert (answer["code"], answer["message"][:16], bench.pictures()) == (-32602, "Invalid params: ", [])


async def test_AC10_a_disk_that_refuses_is_ours_and_its_words_stay_here(tmp_path: Path) -> None:
    store = storing(tmp_path)
    store.failure = AttachmentError(f"no space {errno.ENOSPC}", code="ATTACHMENT_WRITE_FAILED")
    bench = AcpBench(tmp_path, store=store)
    session = await bench.ready()
    answer = await bench.prompted(session, PICTURE)
    await bench.leave()
    assert answer == {"code": -32603, "message": "Internal error: the pictures could not be stored"}
    assert any("no space" in line for line in bench.said)


async def test_AC09_the_route_a_session_uses_by_now_decides(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("one"), say("two"))
    session = await bench.ready()
    bench.agent(session).select_model(RequestConfig("deepseek", "deepseek-chat"))
    await bench.say(session, "a")
    answer = await bench.prompted(session, PICTURE)
    await bench.leave()
    assert answer == {
        "code": -32602,
        "message": "Invalid params: prompt: the model of this session takes no pictures",
    }


async def test_AC11_a_second_prompt_during_the_admission_of_the_first_is_refused(tmp_path: Path) -> None:
    store = storing(tmp_path)
    saving = Held()
    store.before = saving
    bench = AcpBench(tmp_path, say("ok"), store=store)
    session = await bench.ready()
    first = bench.prompt(session, PICTURE)
    await saving.reached.wait()
    refused = await bench.say(session, "b")
    saving.gate.set()
    answer = await bench.answer(first)
    await bench.leave()
    assert refused["message"] == f"Invalid params: a prompt is already in flight in session {session}"
    assert stop(answer) == "end_turn"


async def test_a_prompt_of_nothing_is_refused(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path)
    session = await bench.ready()
    answers = [await bench.prompted(session, *blocks) for blocks in ([], [words(" \n")])]
    await bench.leave()
    assert {answer["message"] for answer in answers} == {"Invalid params: empty prompt"}


async def test_AC25_a_message_the_agent_refuses_frees_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AcpBench(tmp_path, say("ok"))
    session = await bench.ready()

    def fails(self: Agent, message: Message) -> None:
        raise RuntimeError("secret detail")

    with monkeypatch.context() as patch:
        patch.setattr(Agent, "followup", fails)
        refused = await bench.say(session, "a")
    again = await bench.say(session, "b")
    await bench.leave()
    assert refused == {"code": -32603, "message": "Internal error: the prompt was not queued"}
    assert stop(again) == "end_turn"


async def test_AC24_an_agent_that_went_during_the_save_gets_nothing(tmp_path: Path) -> None:
    store = storing(tmp_path)
    bench = AcpBench(tmp_path, store=store)
    session = await bench.ready()
    agent = bench.agent(session)
    store.after = lambda: bench.live._agents.clear()
    answer = await bench.prompted(session, PICTURE)
    await bench.leave()
    assert answer == {"code": -32603, "message": "Internal error: the session's agent is gone"}
    assert (len(bench.pictures()), len(agent.log), bench.script.requests) == (1, 0, [])


async def test_AC12_a_cancel_in_the_admission_to_followup_hand_over_gap_asks_no_model(tmp_path: Path) -> None:
    for number, by in enumerate(["callback", "task"] * 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = storing(folder)
        bench = AcpBench(folder, say("too late"), store=store)
        session = await bench.ready()
        log = bench.agent(session).log
        store.after = partial(_cancel_soon, partial(bench.bridge.told["session/cancel"], {"sessionId": session}), by)
        answer = await bench.prompted(session, PICTURE)
        late = len(bench.script.requests)
        types = bench.types(session)
        await bench.leave()
        assert late == 0, f"model requests after cancel: {late}: {bench.script.requests}"
        assert stop(answer) == "cancelled"
        assert not {"UserMessage", "RequestHeader", "TurnStart"} & set(types)
        found = bench.stored().inspect(log.header.id)
        assert [each.payload for each in found.events] == [each.payload for each in log]
        replayed = SessionLog.resumed(found.header, found.events, clock=lambda: 0)
        child = await bench.stored().fork(replayed, SessionId("child"))
        await child.close()
        for reading in (found.log, replayed, child.log, bench.stored().inspect(SessionId("child")).log):
            assert (tuple(reading.messages()), len(fold_inbox(reading)), open_turn(reading)) == ((), 0, None)


_TASKS: set[asyncio.Task[None]] = set()


def _cancel_soon(cancel: Callable[[], None], by: str) -> None:
    """Cancel as soon as anybody else runs: from a callback of the event loop, or from a task."""

    async def run() -> None:
        cancel()

    loop = asyncio.get_running_loop()
    if by == "callback":
        loop.call_soon(cancel)
    else:
        task = loop.create_task(run())
        _TASKS.add(task)  # the loop alone would let it go
        task.add_done_callback(_TASKS.discard)


async def test_AC13_a_cancel_while_pictures_are_saved_waits_for_the_write_and_queues_nothing(tmp_path: Path) -> None:
    store = storing(tmp_path)
    saving = Held()
    store.before = saving
    bench = AcpBench(tmp_path, store=store)
    session = await bench.ready()
    number = bench.prompt(session, PICTURE)
    await saving.reached.wait()
    bench.cancel(session)
    await until(lambda: bench.bridge._sessions[bench.agent(session).id].slot.was_cancelled)
    for _ in range(100):  # steps of the loop, many more than an answer takes
        await asyncio.sleep(0)
    too_early = [frame for frame in bench.sink.frames if frame.get("id") == number]
    saving.gate.set()
    answer = await bench.answer(number)
    log = bench.agent(session).log
    await bench.leave()
    assert too_early == [], "answered while the picture was being written"
    assert (stop(answer), len(log), len(bench.pictures())) == ("cancelled", 0, 1)


async def test_a_cancel_while_the_route_is_looked_up_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AcpBench(tmp_path)
    session = await bench.ready()
    looking = Held()

    async def look() -> bool:
        await looking()
        return True

    monkeypatch.setattr(bench.bridge, "_route_of", lambda session: look)
    number = bench.prompt(session, PICTURE)
    await looking.reached.wait()
    bench.cancel(session)
    await until(lambda: bench.bridge._sessions[bench.agent(session).id].slot.was_cancelled)
    looking.gate.set()
    answer = await bench.answer(number)
    await bench.leave()
    assert (stop(answer), bench.pictures()) == ("cancelled", [])


async def test_a_cancel_in_the_same_read_as_its_prompt_is_a_cancel_of_it(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("too late"))
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    bench.cancel(session)
    answer = await bench.answer(number)
    await bench.leave()
    assert stop(answer) == "cancelled"


async def test_AC14_a_cancel_during_admission_leaves_unrelated_work_alone(tmp_path: Path) -> None:
    store = storing(tmp_path)
    saving, working = Held(), Held()
    store.before = saving
    bench = AcpBench(tmp_path, say("own work", hold=0), store=store, on_hold=working)
    session = await bench.ready()
    agent = bench.agent(session)
    agent.followup(Message(MessageId("other"), "user", (TextBlock("other"),), UserSource()))
    await working.reached.wait()
    number = bench.prompt(session, PICTURE)
    await saving.reached.wait()
    bench.cancel(session)
    saving.gate.set()
    answer = await bench.answer(number)
    working.gate.set()
    await agent.when_idle()
    await bench.leave()
    assert (stop(answer), bench.texts) == ("cancelled", ["own work"])
