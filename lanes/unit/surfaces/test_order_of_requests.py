"""What a client sends in one breath takes effect in the order it was sent, on both wires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.log.attachments import AttachmentStore
from harness.log.attachments_rules import Upload
from harness.model.messages import AttachmentRef
from harness.surfaces.hosting import Hosted
from harness.tools.shipped import ShippedTools
from lanes.unit.surfaces.acp_bench import ONE_PIXEL, AcpBench
from lanes.unit.surfaces.scripted import Reply, say, use
from lanes.unit.surfaces.sdk_bench import SdkBench

TEXT = [{"type": "text", "text": "words"}]


def asked(bench: SdkBench) -> list[Any]:
    """What the model was asked last, request by request."""
    return [request["messages"][-1]["content"] for request in bench.script.requests]


# handshakes -------------------------------------------------------------------------------------------------------


async def test_a_prompt_right_behind_a_handshake_is_served_as_the_handshake_asks(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    other = tmp_path / "other"
    other.mkdir()
    await asyncio.sleep(0)
    hello = bench.send("initialize", {"cwd": str(other), "provider": "openai", "model": "chosen", "maxTokens": 7})
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT})
    answers = [await bench.answer(hello), await bench.answer(prompt)]
    await bench.idle()
    folder = await bench.ask("session/working-directory/get", {"sessionId": "s"})
    await bench.leave()
    (request,) = bench.script.requests
    assert ["code" in answer for answer in answers] == [False, False]
    assert (request["model"], request.get("max_completion_tokens"), folder) == ("chosen", 7, {"cwd": str(other)})


async def test_a_handshake_right_behind_another_one_is_the_one_that_counts(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await asyncio.sleep(0)
    for model in ("first", "second"):
        bench.send("initialize", {"cwd": str(bench.work), "provider": "openai", "model": model})
    await bench.answer(bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT}))
    await bench.idle()
    await bench.leave()
    assert [request["model"] for request in bench.script.requests] == ["second"]


async def test_a_handshake_that_is_refused_keeps_no_prompt_behind_it_waiting(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await asyncio.sleep(0)
    hello = bench.send("initialize", {"cwd": str(tmp_path / "missing"), "provider": "openai", "model": "m"})
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT})
    answers = [await bench.answer(hello), await bench.answer(prompt)]
    await bench.idle()
    await bench.leave()
    assert ["code" in answer for answer in answers] == [True, False]


# prompts ----------------------------------------------------------------------------------------------------------


async def with_a_slow_store(
    folder: Path, monkeypatch: pytest.MonkeyPatch, between: Callable[[SdkBench], Awaitable[None]]
) -> SdkBench:
    """An open session to which a picture was sent, then what comes between, then words; the picture takes its time."""
    bench = SdkBench(folder, *(say("ok") for _ in range(3)))
    await bench.hello()
    await bench.prompt("first")
    await bench.idle()
    store = AttachmentStore.beside(folder / "sessions")
    (reference,) = await store.admit([Upload(ONE_PIXEL, "image/gif")])
    words_are_there = asyncio.Event()
    keep = AttachmentStore.keep

    async def slow(self: AttachmentStore, references: tuple[AttachmentRef, ...]) -> None:
        await words_are_there.wait()
        await keep(self, references)

    monkeypatch.setattr(AttachmentStore, "keep", slow)
    attachment = {
        "attachmentId": reference.attachment_id, "mediaType": "image/gif", "bytes": reference.bytes,
        "width": reference.width, "height": reference.height,
    }  # fmt: skip
    picture = [{"type": "text", "text": "picture"}, {"type": "image", "attachment": attachment}]
    numbers = [bench.send("session/prompt", {"sessionId": "s", "contentBlocks": picture})]
    await between(bench)
    numbers.append(bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT}))
    for _ in range(20):  # whoever does not wait has been there by now
        await asyncio.sleep(0)
    words_are_there.set()
    for number in numbers:
        assert "messageId" in await bench.answer(number)
    await bench.until(lambda frames: len(asked(bench)) == 3)
    await bench.leave()
    return bench


async def nothing(bench: SdkBench) -> None:
    """Send nothing more."""


async def a_prompt_that_is_refused(bench: SdkBench) -> None:
    answer = await bench.ask("session/prompt", {"sessionId": "s", "contentBlocks": "no list"})
    assert answer["code"] == -32602


@pytest.mark.parametrize("between", [nothing, a_prompt_that_is_refused])
async def test_words_sent_behind_a_picture_are_heard_behind_it(
    between: Callable[[SdkBench], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await with_a_slow_store(tmp_path, monkeypatch, between)
    assert ["picture" in str(content) for content in asked(bench)] == [False, True, False]


# folders ----------------------------------------------------------------------------------------------------------


async def in_work(folder: Path, *replies: Reply) -> tuple[SdkBench, Path]:
    """An idle session, and a folder beside the one it works in."""
    bench = SdkBench(folder, say("first"), *replies)
    await bench.hello()
    await bench.prompt("first")
    await bench.idle()
    other = folder / "other"
    other.mkdir()
    return bench, other


async def test_a_prompt_right_behind_a_change_of_folder_works_in_the_new_one(tmp_path: Path) -> None:
    bench, other = await in_work(tmp_path, use("shell", {"command": "pwd"}), say("done"))
    move = bench.send("session/working-directory/set", {"sessionId": "s", "path": str(other)})
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT})
    answers = [await bench.answer(move), await bench.answer(prompt)]
    await bench.until(lambda frames: len(bench.script.requests) == 3)
    await bench.leave()
    assert (answers[0], "messageId" in answers[1]) == ({"cwd": str(other)}, True)
    assert str(other) in json.dumps(bench.script.requests[2]["messages"][-1])


async def test_of_two_changes_of_folder_the_later_one_stays(tmp_path: Path) -> None:
    bench, other = await in_work(tmp_path)
    moves = [
        bench.send("session/working-directory/set", {"sessionId": "s", "path": str(path)}) for path in (other, tmp_path)
    ]
    answers = [await bench.answer(move) for move in moves]
    folder = await bench.ask("session/working-directory/get", {"sessionId": "s"})
    await bench.leave()
    assert (answers, folder) == ([{"cwd": str(other)}, {"cwd": str(tmp_path)}], {"cwd": str(tmp_path)})


@pytest.mark.parametrize("method", ["session/close", "session/resume"])
async def test_what_is_sent_behind_a_change_of_folder_finds_it_made(method: str, tmp_path: Path) -> None:
    bench, other = await in_work(tmp_path)
    move = bench.send("session/working-directory/set", {"sessionId": "s", "path": str(other)})
    behind = bench.send(method, {"sessionId": "s"})
    answers = [await bench.answer(move), await bench.answer(behind)]
    left = len(bench.live)
    await bench.leave()
    said = {"code": -32603, "message": "session s is open already"}
    expected: tuple[Any, int] = ({}, 0) if method == "session/close" else (said, 1)
    assert (answers[0], (answers[1], left)) == ({"cwd": str(other)}, expected)


async def test_a_change_of_folder_right_behind_a_prompt_is_refused_and_the_prompt_kept(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.hello()
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT})
    move = bench.send("session/working-directory/set", {"sessionId": "s", "path": str(tmp_path)})
    answers = [await bench.answer(prompt), await bench.answer(move)]
    await bench.idle()
    await bench.leave()
    assert ("messageId" in answers[0], answers[1]["message"]) == (True, "sessionId: the session is at work")


# opening and closing ----------------------------------------------------------------------------------------------


@pytest.fixture
def slow_end(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Sessions that do not close while this is clear, as one that waits for a stubborn process."""
    may_end = asyncio.Event()
    may_end.set()
    close = ShippedTools.close

    async def slow(self: ShippedTools) -> tuple[str, ...]:
        await may_end.wait()
        return await close(self)

    monkeypatch.setattr(ShippedTools, "close", slow)
    return may_end


async def answered_early(bench: SdkBench | AcpBench, *numbers: int) -> list[Any]:
    """The answers to these requests that come although the session they speak of does not close."""

    def answers() -> list[Any]:
        return [frame for frame in bench.sink.frames if frame.get("id") in numbers and "method" not in frame]

    with suppress(TimeoutError):
        await asyncio.wait_for(bench.until(lambda frames: bool(answers())), 0.2)
    return answers()


@pytest.mark.parametrize("method", ["session/prompt", "session/resume"])
async def test_SV21_a_session_is_opened_again_right_behind_its_close(
    method: str, tmp_path: Path, slow_end: asyncio.Event
) -> None:
    bench = SdkBench(tmp_path, say("one"), say("two"))
    await bench.hello()
    await bench.prompt("a")
    await bench.idle()
    slow_end.clear()
    close = bench.send("session/close", {"sessionId": "s"})
    again = bench.send(method, {"sessionId": "s", "contentBlocks": TEXT})
    early = await answered_early(bench, close, again)
    slow_end.set()
    answers = [await bench.answer(close), await bench.answer(again)]
    await bench.leave()
    assert (early, ["code" in answer for answer in answers]) == ([], [False, False])


async def test_a_close_right_behind_the_first_prompt_closes_what_the_prompt_opened(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("never"))
    await bench.hello()
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT})
    close = bench.send("session/close", {"sessionId": "s"})
    answers = [await bench.answer(prompt), await bench.answer(close)]
    left = len(bench.live)
    await bench.leave()
    assert ("messageId" in answers[0], answers[1], left) == (True, {}, 0)


async def test_a_close_behind_a_handshake_and_a_prompt_closes_what_the_prompt_opened(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("never"))
    await asyncio.sleep(0)
    hello = bench.send("initialize", {"cwd": str(bench.work), "provider": "openai", "model": "m"})
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": TEXT})
    close = bench.send("session/close", {"sessionId": "s"})
    answers = [await bench.answer(number) for number in (hello, prompt, close)]
    left = len(bench.live)
    await bench.leave()
    assert ("messageId" in answers[1], answers[2], left) == (True, {}, 0)


async def test_a_shutdown_waits_for_a_close_that_came_before_it(tmp_path: Path, slow_end: asyncio.Event) -> None:
    bench = SdkBench(tmp_path, say("one"))
    await bench.hello()
    await bench.prompt("a")
    await bench.idle()
    slow_end.clear()
    close, shutdown = bench.send("session/close", {"sessionId": "s"}), bench.send("shutdown")
    early = await answered_early(bench, close, shutdown)
    slow_end.set()
    answers = [await bench.answer(close), await bench.answer(shutdown)]
    await bench.serving
    assert (early, answers) == ([], [{}, {}])


async def test_what_tools_left_running_is_killed_also_in_a_session_that_is_being_closed(
    tmp_path: Path, slow_end: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[str] = []
    monkeypatch.setattr(ShippedTools, "end_now", lambda self: killed.append("tools"))
    bench = SdkBench(tmp_path, say("one"))
    await bench.prompt("a")
    await bench.idle()
    slow_end.clear()
    close = asyncio.ensure_future(hosted_of(bench).close(next(iter(hosted_of(bench).sessions)).agent.id))
    await asyncio.sleep(0)
    hosted_of(bench).end_now()
    slow_end.set()
    await close
    await bench.leave()
    assert killed == ["tools"]


def hosted_of(bench: SdkBench) -> Hosted:
    return bench.server.hosted


# the other wire ---------------------------------------------------------------------------------------------------


async def stored_session(folder: Path) -> tuple[AcpBench, str, dict[str, Any]]:
    """A session that was closed, and what asks for it."""
    first = AcpBench(folder, say("one"))
    session = await first.ready()
    await first.say(session, "a")
    await first.leave()
    bench = AcpBench(folder, say("two"), stored=True)
    await bench.initialize()
    return bench, session, {"sessionId": session, "cwd": str(bench.work), "mcpServers": []}


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_of_two_who_load_a_session_together_one_gets_it_and_hears_everything_once(
    method: str, tmp_path: Path
) -> None:
    bench, session, wanted = await stored_session(tmp_path)
    numbers = [bench.send(method, **wanted), bench.send("session/load", **wanted)]
    answers = [await bench.answer(number) for number in numbers]
    before = len(bench.texts)
    await bench.say(session, "b")
    await bench.leave()
    already = f"Invalid params: session {session} is open already"
    assert [answer.get("message") for answer in answers] == [None, already]
    assert bench.texts[before:] == ["two"]


async def test_a_load_that_was_refused_leaves_the_session_to_the_next_one(tmp_path: Path) -> None:
    bench, _, wanted = await stored_session(tmp_path)
    refused = await bench.ask("session/load", **{**wanted, "cwd": str(tmp_path / "missing")})
    loaded = await bench.ask("session/load", **wanted)
    await bench.leave()
    assert (refused["code"], loaded) == (-32602, {})


async def test_a_session_is_loaded_again_right_behind_its_close(tmp_path: Path, slow_end: asyncio.Event) -> None:
    bench, session, wanted = await stored_session(tmp_path)
    await bench.ask("session/load", **wanted)
    slow_end.clear()
    numbers = [bench.send("session/close", sessionId=session), bench.send("session/load", **wanted)]
    early = await answered_early(bench, *numbers)
    slow_end.set()
    answers = [await bench.answer(number) for number in numbers]
    before = len(bench.texts)
    await bench.say(session, "b")
    await bench.leave()
    assert (early, answers, bench.texts[before:]) == ([], [{}, {}], ["two"])


async def test_a_prompt_right_behind_a_close_finds_the_session_closed(tmp_path: Path, slow_end: asyncio.Event) -> None:
    bench, session, wanted = await stored_session(tmp_path)
    await bench.ask("session/load", **wanted)
    slow_end.clear()
    close = bench.send("session/close", sessionId=session)
    late = bench.prompt(session, *TEXT)
    answer = await bench.answer(late)
    slow_end.set()
    assert (answer["message"], await bench.answer(close)) == (f"Invalid params: unknown session: {session}", {})
    await bench.leave()
