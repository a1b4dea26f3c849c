"""The ACP server: admission as a transaction, cancel in each of its windows, and an answer only at true rest."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from harness.log.attachments_rules import Upload
from harness.log.events import AssistantMessage, Cause
from harness.model.messages import AttachmentRef, ImageBlock, Message, MessageId, TextBlock, UserSource
from lanes.unit.surfaces.acp_bench import ONE_PIXEL, PICTURE, AcpBench, Held, stop, storing, until, words
from lanes.unit.surfaces.scripted import refuse, say, use

# handshake and sessions ---------------------------------------------------------------------------------------------

pytestmark = pytest.mark.claim("acp.server")


async def test_the_handshake_says_what_is_served_and_nothing_else(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, version="1.2")
    answer = await bench.ask("initialize", protocolVersion=999)
    assert answer == {
        "protocolVersion": 1,
        "agentInfo": {"name": "five-lanes-acp", "version": "1.2"},
        "agentCapabilities": {"promptCapabilities": {"image": True, "audio": False, "embeddedContext": False}},
        "authMethods": [],
    }
    assert await bench.ask("authenticate", methodId="x") == {}
    assert await bench.ask("session/load", sessionId="s") == {
        "code": -32601,
        "message": "method not found: session/load",
    }
    assert await bench.leave() == 0


@pytest.mark.parametrize(
    ("model", "environ", "provider", "image"),
    [
        ("gpt-4.1-mini", {}, "openai", True),
        ("somebody-elses", {}, "openai", False),
        ("deepseek-chat", {}, "deepseek", False),
        ("mine", {"HARNESS_MODEL_INPUT": "text,image"}, "custom", True),
        ("mine", {}, "custom", False),
    ],
)
async def test_AC01_pictures_are_advertised_only_for_a_model_that_is_known_to_take_them(
    tmp_path: Path, model: str, environ: dict[str, str], provider: str, image: bool
) -> None:
    bench = AcpBench(tmp_path, model=model, environ=environ, provider=provider)
    answer = await bench.initialize()
    await bench.leave()
    assert answer["agentCapabilities"]["promptCapabilities"]["image"] is image


async def test_AC01_without_a_codec_nothing_is_advertised(tmp_path: Path) -> None:
    store = storing(tmp_path)
    store.accepted_types = frozenset()
    bench = AcpBench(tmp_path, store=store)
    answer = await bench.initialize()
    await bench.leave()
    assert answer["agentCapabilities"]["promptCapabilities"]["image"] is False


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"cwd": "relative"}, "cwd"),
        ({"cwd": 5}, "cwd"),
        ({}, "cwd"),
        ({"cwd": "/", "mcpServers": [{"bad": 1}]}, "mcpServers"),
        ({"cwd": "/", "additionalDirectories": [1]}, "additionalDirectories"),
        ({"cwd": "/", "mcpServers": "none"}, "mcpServers"),
        ({"cwd": "/no/such/folder"}, "cwd"),
    ],
)
async def test_AC07_a_session_that_asks_for_what_is_not_served_is_refused_by_field(
    tmp_path: Path, params: dict[str, Any], field: str
) -> None:
    bench = AcpBench(tmp_path)
    answer = await bench.ask("session/new", **params)
    await bench.leave()
    assert (answer["code"], answer["message"].startswith(f"Invalid params: {field}: "), len(bench.live)) == (
        -32602, True, 0,
    )  # fmt: skip


@pytest.mark.parametrize("session", ["none", "../x"])
async def test_an_unknown_session_is_named_in_words_hosts_look_for(tmp_path: Path, session: str) -> None:
    bench = AcpBench(tmp_path)
    answer = await bench.say(session, "hi") if await bench.initialize() else None
    await bench.leave()
    assert answer == {"code": -32602, "message": f"Invalid params: unknown session: {session}"}


# prompts and output -------------------------------------------------------------------------------------------------


async def test_a_turn_is_told_by_its_committed_words_and_answered_at_its_end(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, use("list_files", {}, text="looking"), say("done"))
    session = await bench.ready()
    answer = await bench.say(session, "hi")
    frames = bench.sink.frames
    await bench.leave()
    assert answer == {"stopReason": "end_turn", "_meta": {"ending": "completed"}}
    assert bench.texts == ["looking", "done"]
    assert "result" in frames[-1]


async def test_AC35_what_a_stranger_raises_never_reaches_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AcpBench(tmp_path)

    async def fails(*given: Any, **options: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("harness.surfaces.acp.bridge.assemble", fails)
    answer = await bench.ask("session/new", cwd=str(bench.work))
    await bench.leave()
    assert answer == {"code": -32603, "message": "Internal error: unexpected failure"}
    assert "RuntimeError: secret detail" in bench.said


# cancel -------------------------------------------------------------------------------------------------------------


async def test_AC15_a_cancel_after_the_message_was_queued_ends_its_turn_and_answers_at_rest(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), on_hold=working)
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await working.reached.wait()
    bench.cancel(session)
    answer = await bench.answer(number)
    status = bench.agent(session).status
    types = bench.types(session)
    await bench.leave()
    assert (answer, status, types[-1]) == (
        {"stopReason": "cancelled", "_meta": {"ending": "aborted"}}, "idle", "TurnEnd",
    )  # fmt: skip


async def test_AC15_the_general_cancel_of_a_request_is_the_same(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), on_hold=working)
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await working.reached.wait()
    bench.tell("$/cancel_request", requestId=number + 1)
    bench.tell("$/cancel_request", requestId=number)
    answer = await bench.answer(number)
    await bench.leave()
    assert stop(answer) == "cancelled"


async def test_AC16_an_idle_cancel_poisons_nothing_and_one_of_an_unknown_session_is_silent(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("ok"))
    session = await bench.ready()
    bench.cancel(session)
    bench.cancel("nobody")
    bench.tell("session/cancel")
    answer = await bench.say(session, "a")
    await bench.leave()
    assert (stop(answer), bench.said) == ("end_turn", [])


async def test_AC16_an_idle_cancel_stops_what_the_session_does_by_itself(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), on_hold=working)
    session = await bench.ready()
    agent = bench.agent(session)
    agent.followup(Message(MessageId("own"), "user", (TextBlock("own"),), UserSource()))
    await working.reached.wait()
    bench.cancel(session)
    await agent.when_idle()
    types = bench.types(session)
    await bench.leave()
    assert (types[-1], bench.texts) == ("TurnEnd", [])


# settlement ---------------------------------------------------------------------------------------------------------


async def test_AC17_a_prompt_is_answered_after_its_last_update_was_sent(tmp_path: Path) -> None:
    store = storing(tmp_path)
    bench = AcpBench(tmp_path, say("words"), store=store)
    session = await bench.ready()
    reading = Held()
    (reference,) = await store.admit([Upload(ONE_PIXEL, "image/gif")])
    store.reading = reading
    _answer_with_picture(bench, session, reference)
    number = bench.prompt(session, words("a"))
    await reading.reached.wait()
    await bench.agent(session).when_idle()
    unanswered = not any(frame.get("id") == number for frame in bench.sink.frames)
    reading.gate.set()
    await bench.answer(number)
    frames = bench.sink.frames
    await bench.leave()
    kinds = [update["content"]["type"] for update in bench.updates]
    assert (unanswered, kinds, frames[-1]["id"]) == (True, ["text", "image"], number)
    assert bench.updates[-1]["content"] == PICTURE


async def test_AC26_a_picture_that_is_gone_fails_its_own_prompt_and_leaves_its_later_blocks_out(
    tmp_path: Path,
) -> None:
    store = storing(tmp_path)
    bench = AcpBench(tmp_path, say("words"), say("again"), store=store)
    session = await bench.ready()
    store.reading = bench.agent(session).when_idle
    reference = AttachmentRef("sha256:" + "0" * 64, "image/gif", 1, 1, 1)
    _answer_with_picture(bench, session, reference)
    answer = await bench.say(session, "a")
    again = await bench.say(session, "b")
    await bench.leave()
    assert answer["message"].startswith("Internal error: assistant output delivery failed: the picture is not in")
    assert (stop(again), bench.texts) == ("end_turn", ["words", "again"])


def _answer_with_picture(bench: AcpBench, session: str, reference: AttachmentRef) -> None:
    """No dialect answers with pictures yet: put one into the next message before anybody is told of it."""
    chain = bench.bridge._sessions[bench.agent(session).id].chain
    add = chain.add
    done: list[bool] = []

    def with_picture(event: Any) -> None:
        payload = event.payload
        if isinstance(payload, AssistantMessage) and not done:
            done.append(True)
            content = (*payload.message.content, ImageBlock(reference))
            message = Message(payload.message.id, "assistant", content, payload.message.source)
            event = type(event)(event.seq, event.time, AssistantMessage(payload.turn, payload.step, message))
        add(event)

    chain.add = with_picture  # type: ignore[method-assign] # as above


async def test_AC18_a_prompt_is_answered_when_what_was_queued_behind_it_is_done_too(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("one", hold=0), say("two"), on_hold=working)
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await working.reached.wait()
    bench.agent(session).followup(Message(MessageId("later"), "user", (TextBlock("later"),), UserSource()))
    working.gate.set()
    await bench.answer(number)
    texts = bench.texts
    await bench.leave()
    assert texts == ["one", "two"]


async def test_AC19_the_late_end_of_a_cancelled_turn_does_not_settle_the_next_prompt(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), say("second"), on_hold=working)
    session = await bench.ready()
    first = bench.prompt(session, words("a"))
    await working.reached.wait()
    bench.cancel(session)
    await bench.answer(first)
    second = await bench.say(session, "b")
    await bench.leave()
    assert (stop(second), second["_meta"], bench.texts) == ("end_turn", {"ending": "completed"}, ["second"])


async def test_AC21_a_failed_turn_says_so_and_its_partial_words_are_not_on_the_wire(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, refuse(400, "the model is out"))
    session = await bench.ready()
    answer = await bench.say(session, "a")
    await bench.leave()
    assert (answer["code"], bench.updates) == (-32603, [])
    assert answer["message"].startswith("Internal error: turn failed: ")


async def test_AC21_of_a_turn_that_was_tried_again_only_the_words_that_stand_are_told(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, refuse(500, "try again"), say("final"))
    session = await bench.ready()
    answer = await bench.say(session, "a")
    await bench.leave()
    assert (stop(answer), bench.texts) == ("end_turn", ["final"])


async def test_AC22_a_turn_that_another_owner_ended_is_an_ended_turn(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), on_hold=working)
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await working.reached.wait()
    bench.agent(session).cancel(Cause("user"))
    answer = await bench.answer(number)
    await bench.leave()
    assert answer == {"stopReason": "end_turn", "_meta": {"ending": "aborted"}}


async def test_AC22_a_message_that_was_taken_out_before_its_turn_is_cancelled(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("own", hold=0), on_hold=working)
    session = await bench.ready()
    agent = bench.agent(session)
    agent.followup(Message(MessageId("own"), "user", (TextBlock("own"),), UserSource()))
    await working.reached.wait()
    number = bench.prompt(session, words("a"))
    await until(lambda: agent.pending == 1)
    (waiting,) = agent.inbox.next_turn
    assert agent.cancel_message(waiting.id)
    working.gate.set()
    answer = await bench.answer(number)
    await bench.leave()
    assert stop(answer) == "cancelled"


async def test_AC23_a_failure_before_the_prompt_was_queued_is_not_its_own(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("ok"))
    session = await bench.ready()
    bench.agent(session).failures.append(RuntimeError("earlier"))
    answer = await bench.say(session, "a")
    await bench.leave()
    assert stop(answer) == "end_turn"


async def test_AC20_a_failure_of_the_agent_after_it_was_queued_is(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("ok", hold=0), on_hold=working)
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await working.reached.wait()
    bench.agent(session).failures.append(RuntimeError("the loop"))
    working.gate.set()
    answer = await bench.answer(number)
    await bench.leave()
    assert answer == {"code": -32603, "message": "Internal error: turn failed: the loop"}


async def test_a_limit_is_told_of_where_it_was_asked_for(tmp_path: Path) -> None:
    for asked, word in ((False, "end_turn"), (True, "max_tokens")):
        bench = AcpBench(tmp_path, say("cut", finish="length"), tells_max_tokens=asked)
        session = await bench.ready()
        answer = await bench.say(session, "a")
        await bench.leave()
        assert answer == {"stopReason": word, "_meta": {"ending": "max-tokens"}}


# permission ---------------------------------------------------------------------------------------------------------

WRITE = use("write_file", {"path": "a", "content": "x"})


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allow-once"}}, True),
        ({"outcome": {"outcome": "selected", "optionId": "else"}}, False),
        ({"outcome": {"outcome": "cancelled"}}, False),
        ({"error": {"code": -32601, "message": "no"}}, False),
    ],
    ids=["allowed", "other-option", "cancelled", "refused"],
)
async def test_AC27_a_change_is_made_only_when_the_client_allowed_it(
    tmp_path: Path, answer: Any, written: bool
) -> None:
    bench = AcpBench(tmp_path, WRITE, say("done"), asks=True)
    asked: list[Any] = []
    bench.permit = lambda params: (asked.append(params), answer)[1]
    session = await bench.ready()
    ended = await bench.say(session, "a")
    await bench.leave()
    assert ((bench.work / "a").exists(), stop(ended)) == (written, "end_turn")
    assert asked == [
        {
            "sessionId": session,
            "toolCall": {"toolCallId": "call_1", "title": "write_file"},
            "options": [
                {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"},
                {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
            ],
        }
    ]


async def test_AC27_a_cancel_withdraws_the_question(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, WRITE, asks=True)
    asked = asyncio.Event()
    bench.permit = lambda params: asked.set()
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await asked.wait()
    bench.cancel(session)
    answer = await bench.answer(number)
    await bench.leave()
    assert (stop(answer), (bench.work / "a").exists()) == ("cancelled", False)


async def test_AC27_a_client_is_told_before_the_end_of_its_prompt_that_its_answer_is_not_waited_for(
    tmp_path: Path,
) -> None:
    bench = AcpBench(tmp_path, WRITE, say("done"), asks=True)
    asked = asyncio.Event()
    bench.permit = lambda params: asked.set()
    session = await bench.ready()
    number = bench.prompt(session, words("a"))
    await asked.wait()
    bench.cancel(session)
    await bench.answer(number)
    question, *then = bench.sink.frames[2:]
    bench.source.frame(id=question["id"], error={"code": -32800, "message": "Request cancelled"})
    again = await bench.say(session, "b")
    await bench.leave()
    told = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": question["id"]}}
    assert (question["method"], then[:-1], then[-1]["id"]) == ("session/request_permission", [told], number)
    assert (stop(again), bench.said) == ("end_turn", [])


async def test_AC27_a_question_that_was_answered_is_not_taken_back(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, WRITE, say("done"), asks=True)
    bench.permit = lambda params: {"outcome": {"outcome": "selected", "optionId": "allow-once"}}
    session = await bench.ready()
    await bench.say(session, "a")
    bench.cancel(session)
    await bench.leave()
    methods = [frame["method"] for frame in bench.sink.frames if "method" in frame]
    assert methods == ["session/request_permission", "session/update"]


async def test_AC27_a_client_that_goes_while_it_is_asked_allowed_nothing(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, WRITE, asks=True)
    asked = asyncio.Event()
    bench.permit = lambda params: asked.set()
    session = await bench.ready()
    bench.prompt(session, words("a"))
    await asked.wait()
    assert (await bench.leave(), (bench.work / "a").exists()) == (0, False)


async def test_AC27_an_agent_of_somebody_else_is_not_asked_about_here(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, WRITE, say("done"), asks=True)
    asked: list[Any] = []
    bench.permit = lambda params: asked.append(params)
    session = await bench.ready()
    agent = bench.agent(session)
    bench.bridge._sessions.clear()
    agent.followup(Message(MessageId("own"), "user", (TextBlock("own"),), UserSource()))
    await agent.when_idle()
    await bench.leave()
    assert (asked, (bench.work / "a").exists()) == ([], False)


# several sessions, and the end --------------------------------------------------------------------------------------


async def test_AC28_sessions_do_not_touch_each_other(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("one", hold=0), say("two"), on_hold=working)
    first = await bench.ready()
    second = await bench.new()
    number = bench.prompt(first, words("a"))
    await working.reached.wait()
    other = await bench.say(second, "b")
    told = [(frame["params"]["sessionId"]) for frame in bench.sink.frames if frame.get("method") == "session/update"]
    bench.cancel(second)
    working.gate.set()
    answer = await bench.answer(number)
    await bench.leave()
    assert (stop(other), told, stop(answer)) == ("end_turn", [second], "end_turn")


async def test_AC29_a_client_that_goes_cancels_everything_first_and_nothing_is_left(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), say("never", hold=0), on_hold=working)
    sessions = [await bench.ready(), await bench.new()]
    numbers = [bench.prompt(session, words("a")) for session in sessions]
    await until(lambda: len(bench.script.requests) == 2)
    logs = [bench.agent(session).log for session in sessions]
    assert await bench.leave() == 0
    assert [stop(await bench.answer(number)) for number in numbers] == ["cancelled", "cancelled"]
    assert ([type(log[-1].payload).__name__ for log in logs], len(bench.live)) == (["TurnEnd", "TurnEnd"], 0)


async def test_AC30_one_session_that_does_not_close_keeps_no_other_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AcpBench(tmp_path)
    await bench.ready()
    broken = await bench.new()
    assembled = bench.bridge.hosted.get(bench.agent(broken).id)
    assert assembled is not None
    original = type(assembled).close

    async def fails(self: Any) -> Any:
        ended = await original(self)
        if self is assembled:
            raise OSError("the disk")
        return ended

    monkeypatch.setattr(type(assembled), "close", fails)
    assert (await bench.leave(), len(bench.live)) == (0, 0)
    assert any(broken in line and "the disk" in line for line in bench.said)


async def test_AC31_after_the_end_began_nothing_is_created(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path)
    await bench.ready()
    ending = asyncio.ensure_future(bench.bridge.end())
    refused = await bench.ask("session/new", cwd=str(bench.work))
    await ending
    await bench.leave()
    assert (refused, len(bench.live)) == ({"code": -32603, "message": "Internal error: disposed"}, 0)


async def test_AC31_a_session_that_was_being_made_when_the_end_began_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import harness.surfaces.acp.bridge as room

    bench = AcpBench(tmp_path)
    making = Held()
    original = room.assemble

    async def slow(*given: Any, **options: Any) -> Any:
        await making()
        return await original(*given, **options)

    monkeypatch.setattr(room, "assemble", slow)
    await asyncio.sleep(0)
    number = bench.send("session/new", cwd=str(bench.work))
    await making.reached.wait()
    ending = asyncio.ensure_future(bench.bridge.end())
    await asyncio.sleep(0)
    making.gate.set()
    await ending
    answer = await bench.answer(number)
    await bench.leave()
    assert (answer, len(bench.live)) == ({"code": -32603, "message": "Internal error: disposed"}, 0)


async def test_AC32_a_request_right_before_the_end_of_the_input_ends_through_the_teardown(tmp_path: Path) -> None:
    working = Held()
    bench = AcpBench(tmp_path, say("never", hold=0), on_hold=working)
    session = await bench.ready()
    log = bench.agent(session).log
    number = bench.prompt(session, words("a"))
    bench.source.end()
    assert await asyncio.wait_for(bench.serving, 20) == 0
    assert (stop(await bench.answer(number)), len(bench.live)) == ("cancelled", 0)
    assert not log or type(log[-1].payload).__name__ in ("TurnEnd", "InboxSpliced")


@pytest.mark.parametrize(
    "line", [b"garbage", b"null", b"[]", b"5", b'"s"', b"\xff", b'{"id":null,"method":"initialize"}']
)
async def test_AC33_a_malformed_line_leaves_the_connection_serving(tmp_path: Path, line: bytes) -> None:
    bench = AcpBench(tmp_path)
    await asyncio.sleep(0)
    hello = {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
    bench.source.send(line + b"\n" + json.dumps(hello).encode() + b"\n")  # in one piece, so that the line is looked at
    answer = await bench.answer(1)
    assert (answer["protocolVersion"], len(bench.sink.frames), await bench.leave()) == (1, 1, 0)


# more, where it is asked for ----------------------------------------------------------------------------------------


async def test_DS10_tool_calls_are_told_of_live_where_it_was_asked_for(tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, use("list_files", {}), say("done"), live=True)
    session = await bench.ready()
    await bench.say(session, "a")
    await bench.leave()
    assert [update["sessionUpdate"] for update in bench.updates] == [
        "tool_call", "tool_call_update", "agent_message_chunk",
    ]  # fmt: skip
    assert bench.updates[0] == {
        "sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "list_files", "kind": "search",
        "status": "in_progress", "rawInput": {},
    }  # fmt: skip


async def test_DS10_stored_sessions_are_listed_loaded_and_closed_where_it_was_asked_for(tmp_path: Path) -> None:
    first = AcpBench(tmp_path, say("one"))
    session = await first.ready()
    await first.say(session, "a")
    await first.leave()
    bench = AcpBench(tmp_path, say("two"), stored=True)
    hello = await bench.initialize()
    listed = await bench.ask("session/list", cwd=str(bench.work))
    unknown = await bench.ask("session/load", sessionId="none", cwd=str(bench.work), mcpServers=[])
    loaded = await bench.ask("session/load", sessionId=session, cwd=str(bench.work), mcpServers=[])
    replayed = [(update["sessionUpdate"], update["content"]["text"]) for update in bench.updates]
    again = await bench.ask("session/resume", sessionId=session, cwd=str(bench.work))
    answer = await bench.say(session, "b")
    closed = await bench.ask("session/close", sessionId=session)
    gone = await bench.say(session, "c")
    await bench.leave()
    assert hello["agentCapabilities"]["loadSession"] is True
    assert listed == {"sessions": [{"sessionId": session, "cwd": str(bench.work)}]}
    assert (unknown["message"], again["code"]) == ("Invalid params: unknown session: none", -32602)
    assert (loaded, replayed) == ({}, [("user_message_chunk", "a"), ("agent_message_chunk", "one")])
    assert (stop(answer), closed, gone["message"]) == (
        "end_turn", {}, f"Invalid params: unknown session: {session}",
    )  # fmt: skip
