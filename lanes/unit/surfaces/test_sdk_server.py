"""The SDK server: what a client is told, in which order, and what stands in the log when it was told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LogWriteError
from harness.log.store import SessionStore
from harness.log.writer import SessionWriter
from harness.model.messages import SessionId
from lanes.unit.surfaces.scripted import refuse, say, use
from lanes.unit.surfaces.sdk_bench import SdkBench

pytestmark = pytest.mark.claim("sdk.server")


KINDS = "expected a block of type text, reasoning, image"


# handshake --------------------------------------------------------------------------------------------------------


async def test_SV01_the_handshake_names_the_server_and_applies_to_sessions_made_later(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("one"), say("two"), say("three"))
    (tmp_path / "other").mkdir()
    first = await bench.hello()
    await bench.prompt("a", "first")
    await bench.idle("first")
    await bench.hello(cwd=str(tmp_path / "other"), model="n")
    for session in ("first", "second"):
        await bench.prompt("b", session)
        await bench.idle(session, 2 if session == "first" else 1)
    assert await bench.leave() == 0
    assert first["serverInfo"] == {"name": "deepseek-harness-sdk-runtime", "version": "0.0.1"}
    assert [request["model"] for request in bench.script.requests] == ["m", "m", "n"]
    assert [_cwd(bench, name) for name in ("first", "second")] == [str(bench.work), str(tmp_path / "other")]


def _cwd(bench: SdkBench, session: str) -> str | None:
    return SessionStore(bench.folder / "sessions", clock=lambda: 0).inspect(SessionId(session)).header.cwd


async def test_SV01_a_relative_folder_counts_from_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    monkeypatch.chdir(tmp_path)
    await bench.hello(cwd="work")
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    assert _cwd(bench, "s") == str(bench.work)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2**53, True, "7", [1]], ids=repr)
async def test_SV02_a_token_limit_that_is_none_is_refused_and_changes_nothing(tmp_path: Path, value: Any) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.hello(maxTokens=77)
    refused = await bench.hello(maxTokens=value, model="other")
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    assert refused == {"code": -32602, "message": "maxTokens: expected a positive safe integer"}
    (request,) = bench.script.requests
    assert (request["model"], request["max_completion_tokens"]) == ("m", 77)


async def test_SV03_an_unknown_provider_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    refused = await bench.hello(provider="x", model="other")
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    assert refused == {"code": -32602, "message": 'no adapter registered for provider "x"'}
    assert bench.script.requests[0]["model"] == "m"


async def test_SV22_the_provider_that_published_clients_ask_for_by_themselves_is_known(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    hello = await bench.hello(provider="deepseek-official", model="deepseek-v4-flash")
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    assert (hello["serverInfo"]["name"], bench.script.requests[0]["model"]) == (
        "deepseek-harness-sdk-runtime", "deepseek-v4-flash",
    )  # fmt: skip


@pytest.mark.parametrize("field", ["cwd", "provider", "model"])
@pytest.mark.parametrize("value", [None, "", 5, {}], ids=repr)
async def test_a_handshake_names_the_field_it_refuses(tmp_path: Path, field: str, value: Any) -> None:
    bench = SdkBench(tmp_path)
    refused = await bench.hello(**{field: value})
    await bench.leave()
    assert refused == {"code": -32602, "message": f"{field}: expected a text that is not empty"}


async def test_an_effort_nobody_knows_and_a_folder_that_is_missing_are_refused(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path)
    effort, folder = await bench.hello(reasoningEffort="most"), await bench.hello(cwd="/nowhere/at/all")
    await bench.leave()
    assert effort["message"] == "reasoningEffort: expected one of low, medium, high"
    assert (folder["code"], folder["message"][:27]) == (-32602, "cwd: there is no folder /no")


# prompts ----------------------------------------------------------------------------------------------------------


async def test_SV04_the_receipt_is_the_id_of_the_splice_and_of_the_message_the_model_gets(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    receipt = (await bench.prompt("a"))["messageId"]
    await bench.idle()
    await bench.leave()
    events = bench.stored()
    assert [item["id"] for item in events[0]["data"]["inserted"]] == [receipt]
    assert [event["data"]["id"] for event in events if event["type"] == "user/message"] == [receipt]


async def test_SV05_the_receipt_comes_while_the_turn_still_runs(tmp_path: Path) -> None:
    gate = asyncio.Event()
    bench = SdkBench(tmp_path, say("ok", hold=0), on_hold=gate.wait)
    assert "messageId" in await bench.prompt("a")
    assert "idle" not in bench.told_of
    gate.set()
    await bench.idle()
    await bench.leave()


async def test_SV04_DS6_a_receipt_is_given_for_what_is_durable_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = SdkBench(tmp_path)

    async def fails(self: SessionWriter) -> None:
        raise LogWriteError("disk full", where="session log")

    monkeypatch.setattr(SessionWriter, "flush", fails)
    refused = await bench.prompt("a")
    await bench.leave()
    assert (refused["code"], "disk full" in refused["message"]) == (-32603, True)


async def test_SV06_prompts_that_come_together_make_one_session(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("one"), say("two"))
    await asyncio.sleep(0)
    blocks = [{"type": "text", "text": "x"}]
    numbers = [bench.send("session/prompt", {"sessionId": "s", "contentBlocks": blocks}) for _ in range(2)]
    receipts = [(await bench.answer(number))["messageId"] for number in numbers]
    await bench.idle()
    await bench.leave()
    inserted = [item["id"] for event in bench.stored() for item in event["data"].get("inserted", [])]
    assert (len(bench.live), inserted) == (0, receipts)


async def test_SV06_a_session_that_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    (tmp_path / "sessions").write_text("in the way")
    refused = await bench.prompt("a")
    (tmp_path / "sessions").unlink()
    assert "messageId" in await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    assert refused["code"] == -32603


async def test_SV07_an_agent_that_was_ended_elsewhere_gets_nothing(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.prompt("a")
    await bench.idle()
    (agent,) = bench.live
    await agent.dispose()
    refused = await bench.prompt("b")
    await bench.leave()
    assert (refused["code"], len(bench.script.requests)) == (-32602, 1)


async def test_SV07_an_agent_that_another_one_took_the_place_of_gets_nothing(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.prompt("a")
    await bench.idle()
    (agent,) = bench.live
    bench.live._agents[agent.id] = object()  # type: ignore[assignment] # of another owner
    refused = await bench.prompt("b")
    await bench.leave()
    assert refused == {"code": -32603, "message": "session s is not served here any more"}
    assert (len(bench.script.requests), agent.pending) == (1, 0)


async def test_SV08_three_prompts_are_three_turns_in_order_and_one_stretch_of_work(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("one"), say("two"), say("three"))
    await asyncio.sleep(0)
    numbers = [
        bench.send("session/prompt", {"sessionId": "s", "contentBlocks": [{"type": "text", "text": text}]})
        for text in ("a", "b", "c")
    ]
    receipts = [(await bench.answer(number))["messageId"] for number in numbers]
    await bench.idle()
    await bench.leave()
    messages = [event["data"]["id"] for event in bench.events() if event["type"] == "user/message"]
    statuses = [word for word in bench.told_of if word in ("running", "idle")]
    assert (messages, statuses) == (receipts, ["running", "idle"])


async def test_an_idle_session_is_told_of_in_the_order_it_happens(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    told = [word for word in bench.told_of if word != "assistant/chunk"]
    assert told[:4] == ["agent/inbox/spliced", "running", "turn/start", "agent/inbox/spliced"]
    assert told[-2:] == ["turn/end", "idle"]


async def test_DS6_every_event_that_was_told_of_is_in_the_log_as_it_was_told(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, use("list_files", {}), say("ok"))
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    assert bench.events() == bench.stored()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"contentBlocks": []}, "sessionId: expected a text that is not empty"),
        ({"sessionId": "", "contentBlocks": []}, "sessionId: expected a text that is not empty"),
        ({"sessionId": 5, "contentBlocks": []}, "sessionId: expected a text that is not empty"),
        ({"sessionId": "s"}, "contentBlocks: expected a list of blocks"),
        ({"sessionId": "s", "contentBlocks": "hi"}, "contentBlocks: expected a list of blocks"),
        ({"sessionId": "s", "contentBlocks": ["hi"]}, f"contentBlocks[0]: {KINDS}"),
        (
            {"sessionId": "s", "contentBlocks": [{"type": "text", "text": "a"}, {"type": "audio"}]},
            f"contentBlocks[1]: {KINDS}",
        ),
        ({"sessionId": "s", "contentBlocks": [{"type": "text", "text": 5}]}, "contentBlocks[0].text: expected a text"),
        (
            {"sessionId": "s", "contentBlocks": [{"type": "image", "attachment": {"attachmentId": "x"}}]},
            "contentBlocks[0].attachment: expected a reference to a stored picture",
        ),
    ],
)  # fmt: skip
async def test_SV20_a_bad_prompt_names_its_field_and_makes_no_session(
    tmp_path: Path, params: Any, message: str
) -> None:
    bench = SdkBench(tmp_path)
    refused = await bench.ask("session/prompt", params)
    await bench.leave()
    assert refused == {"code": -32602, "message": message}
    assert not (tmp_path / "sessions").exists()


async def test_a_picture_that_is_not_stored_makes_no_session(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path)
    reference = {
        "attachmentId": f"sha256:{'0' * 64}", "mediaType": "image/png", "bytes": 1, "width": 1, "height": 1,
    }  # fmt: skip
    blocks = [{"type": "image", "attachment": reference}]
    refused = await bench.ask("session/prompt", {"sessionId": "s", "contentBlocks": blocks})
    await bench.leave()
    assert (refused["code"], "not in the store" in refused["message"], len(bench.live)) == (-32603, True, 0)


# children ---------------------------------------------------------------------------------------------------------


DELEGATE = use("delegate", {"task": "look"})


async def test_SV09_SV10_a_child_is_announced_before_its_first_event_and_ended_before_the_parents_result(
    tmp_path: Path,
) -> None:
    bench = SdkBench(tmp_path, DELEGATE, say("seen"), say("done"), depth=1)
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    told = bench.told_of
    params = [frame["params"] for frame in bench.sink.frames if frame.get("method", "").startswith("subagent.")]
    started, finished = params
    child = started["childSessionId"]
    assert started == {"parentSessionId": "s", "childSessionId": child}
    assert finished == {
        "provider": "openai", "agentId": child, "parentSessionId": "s", "childSessionId": child, "status": "ok",
        "stopReason": "completed", "lastAssistantMessage": [{"type": "text", "text": "seen"}],
    }  # fmt: skip
    at = told.index("subagent.started")
    of_child = [i for i, frame in enumerate(_notifications(bench)) if frame["params"].get("sessionId") == child]
    assert (told[at - 1], min(of_child) > at, max(of_child) < told.index("subagent.finished")) == (
        "tool/call", True, True,
    )  # fmt: skip
    assert told.index("subagent.finished") < told.index("tool/result")
    assert bench.events(child) == bench.stored(child)


async def test_SV13_a_child_that_said_nothing_has_no_last_message(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, DELEGATE, refuse(400, "no"), say("done"), depth=1)
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    (finished,) = [f["params"] for f in _notifications(bench) if f["method"] == "subagent.finished"]
    assert ("lastAssistantMessage" in finished, finished["status"], finished["stopReason"]) == (False, "error", "error")


@pytest.mark.parametrize(("switch", "status"), [(False, "error"), (True, "ok")])
async def test_SV14_a_child_cut_at_its_token_limit_is_an_error_unless_the_deployment_says_otherwise(
    tmp_path: Path, switch: bool, status: str
) -> None:
    bench = SdkBench(
        tmp_path, DELEGATE, say("see", finish="length"), say("done"), depth=1, max_tokens_as_success=switch
    )
    await bench.prompt("a")
    await bench.idle()
    await bench.leave()
    (finished,) = [f["params"] for f in _notifications(bench) if f["method"] == "subagent.finished"]
    assert (finished["status"], finished["stopReason"]) == (status, "max-tokens")


def _notifications(bench: SdkBench) -> list[Any]:
    return [frame for frame in bench.sink.frames if "method" in frame]


# the end ----------------------------------------------------------------------------------------------------------


async def test_SV15_a_shutdown_in_a_turn_lets_the_client_see_its_end_before_the_answer(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    bench = SdkBench(tmp_path, say("never", hold=0), on_hold=hold)
    await bench.prompt("a")
    await held.wait()
    assert await bench.ask("shutdown") == {}
    assert await asyncio.wait_for(bench.serving, 20) == 0
    frames = bench.sink.frames
    types = [frame.get("params", {}).get("event", {}).get("type") for frame in frames]
    end = types.index("turn/end")
    answer = next(i for i, frame in enumerate(frames) if frame.get("result") == {})
    assert (bench.told_of[-1], end < answer, answer) == ("idle", True, len(frames) - 1)
    assert bench.stored()[-1]["data"]["reason"] == {"kind": "aborted", "reason": {"kind": "disposed"}}


async def test_SV16_two_shutdowns_get_two_answers_and_later_prompts_are_refused(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.prompt("a")
    await bench.idle()
    blocks = [{"type": "text", "text": "late"}]
    numbers = [bench.send("shutdown"), bench.send("shutdown", {})]
    late = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": blocks})
    assert [await bench.answer(number) for number in numbers] == [{}, {}]
    assert await bench.answer(late) == {"code": -32603, "message": "shutting down"}
    assert await asyncio.wait_for(bench.serving, 20) == 0


@pytest.mark.parametrize("code", [0, 130])
async def test_SV17_a_signal_during_a_shutdown_joins_it(tmp_path: Path, code: int) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.prompt("a")
    await bench.idle()
    shutting = bench.send("shutdown")
    bench.told.set_result(code)
    assert await asyncio.wait_for(bench.serving, 20) == code
    assert await bench.answer(shutting) == {}


async def test_SV17_the_end_of_the_input_ends_a_turn_and_the_log_is_balanced(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    bench = SdkBench(tmp_path, say("never", hold=0), on_hold=hold)
    await bench.prompt("a")
    await held.wait()
    assert await bench.leave() == 0
    assert bench.stored()[-1]["type"] == "turn/end"


async def test_SV18_SV19_one_session_that_does_not_close_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = SessionWriter.close

    async def fails_for_a(self: SessionWriter) -> None:
        await close(self)
        if self.log.header.id == "a":
            raise LogWriteError("disk full", where="session log")

    monkeypatch.setattr(SessionWriter, "close", fails_for_a)
    bench = SdkBench(tmp_path, say("one"), say("two"))
    for session in ("a", "b"):
        await bench.prompt("x", session)
        await bench.idle(session)
    refused = await bench.ask("shutdown")
    assert await asyncio.wait_for(bench.serving, 20) == 0
    assert (refused["code"], "a: session log: disk full" in refused["message"], len(bench.live)) == (-32603, True, 0)


# sessions of other processes ---------------------------------------------------------------------------------------


async def test_SV21_a_stored_session_goes_on_in_a_second_process(tmp_path: Path) -> None:
    first = SdkBench(tmp_path, say("one"))
    await first.prompt("a")
    await first.idle()
    await first.leave()
    second = SdkBench(tmp_path, say("two"))
    await second.prompt("b")
    await second.idle()
    await second.leave()
    assert second.stored()[: len(first.stored())] != []
    assert second.events()[-1]["seq"] == len(second.stored()) - 1
    assert [message["content"] for message in second.script.requests[0]["messages"] if message["role"] == "user"] == [
        "a",
        "b",
    ]


async def test_SV21_a_session_that_lives_elsewhere_is_refused_before_any_receipt(tmp_path: Path) -> None:
    first, second = SdkBench(tmp_path, say("one")), SdkBench(tmp_path)
    await first.prompt("a")
    await first.idle()
    refused = await second.prompt("b")
    await second.leave()
    await first.leave()
    assert (refused["code"], "[LOG_BUSY]" in refused["message"], second.script.requests) == (-32603, True, [])


async def test_resume_opens_what_is_stored_and_nothing_else(tmp_path: Path) -> None:
    first = SdkBench(tmp_path, say("one"))
    await first.prompt("a")
    await first.idle()
    await first.leave()
    bench = SdkBench(tmp_path)
    answers = [await bench.ask("session/resume", {"sessionId": name}) for name in ("none", "s", "s")]
    await bench.leave()
    assert answers == [
        {"code": -32602, "message": "sessionId: unknown session: none"},
        {},
        {"code": -32603, "message": "session s is open already"},
    ]


async def test_list_and_close_know_the_sessions_of_a_folder(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("one"))
    await bench.hello()
    await bench.prompt("a")
    await bench.idle()
    here = await bench.ask("session/list", {"cwd": str(bench.work)})
    elsewhere = await bench.ask("session/list", {"cwd": str(tmp_path)})
    closed = [await bench.ask("session/close", {"sessionId": "s"}) for _ in range(2)]
    await bench.leave()
    assert [session["sessionId"] for session in here["sessions"]] == ["s"]
    assert (elsewhere, closed) == (
        {"sessions": []},
        [{}, {"code": -32602, "message": "sessionId: unknown session: s"}],
    )


async def test_a_session_may_move_to_another_folder_while_it_is_idle(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("one"), use("list_files", {}), say("two"))
    inner = bench.work / "inner"
    inner.mkdir()
    (inner / "found").write_text("x")
    await bench.hello()
    await bench.prompt("a")
    await bench.idle()
    moved = await bench.ask("session/working-directory/set", {"sessionId": "s", "path": "inner"})
    missing = await bench.ask("session/working-directory/set", {"sessionId": "s", "path": "nowhere"})
    there = await bench.ask("session/working-directory/get", {"sessionId": "s"})
    await bench.prompt("b")
    await bench.idle(count=2)
    await bench.leave()
    assert (moved, there, missing["code"]) == ({"cwd": str(inner)}, {"cwd": str(inner)}, -32602)
    assert "found" in str(bench.script.requests[-1]["messages"][-1])


# cancel -----------------------------------------------------------------------------------------------------------


async def test_DS4_a_cancel_takes_out_a_queued_message_or_ends_the_turn_that_has_it(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    bench = SdkBench(tmp_path, say("never", hold=0), say("third"), on_hold=hold)
    first = (await bench.prompt("a"))["messageId"]
    await held.wait()
    second, third = (await bench.prompt("b"))["messageId"], (await bench.prompt("c"))["messageId"]
    answers = [
        (await bench.ask("session/cancel", {"sessionId": "s", "messageId": message}))["cancelled"]
        for message in (second, first)
    ]
    await bench.idle()
    later = [
        (await bench.ask("session/cancel", {"sessionId": "s", "messageId": message}))["cancelled"]
        for message in (first, "unknown")
    ]
    nobody = await bench.ask("session/cancel", {"sessionId": "other"})
    await bench.leave()
    messages = [event["data"]["id"] for event in bench.stored() if event["type"] == "user/message"]
    assert (answers, later, nobody) == (["queued", "turn"], ["none", "none"], {"cancelled": "none"})
    assert messages == [first, third]


async def test_DS4_a_cancel_without_a_message_ends_the_turn_and_empties_the_queue(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    bench = SdkBench(tmp_path, say("never", hold=0), on_hold=hold)
    await bench.prompt("a")
    await held.wait()
    await bench.prompt("b")
    answers = []
    for count in (1, 1):
        answers.append((await bench.ask("session/cancel", {"sessionId": "s"}))["cancelled"])
        await bench.idle(count=count)
    await bench.leave()
    assert (answers, len(bench.script.requests)) == (["turn", "none"], 1)


async def test_DS4_a_cancel_right_behind_the_first_prompt_of_a_session_stops_it(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("next"))
    await bench.hello()
    blocks = [{"type": "text", "text": "a"}]
    prompt = bench.send("session/prompt", {"sessionId": "s", "contentBlocks": blocks})
    cancel = bench.send("session/cancel", {"sessionId": "s"})
    receipt, cancelled = await bench.answer(prompt), await bench.answer(cancel)
    await bench.idle()
    await bench.prompt("b")
    await bench.idle(count=2)
    await bench.leave()
    reasons = [event["data"]["reason"]["kind"] for event in bench.events() if event["type"] == "turn/end"]
    assert ("messageId" in receipt, cancelled["cancelled"], reasons) == (True, "turn", ["aborted", "completed"])
    assert [request["messages"][-1]["content"] for request in bench.script.requests] == ["b"]


async def test_a_cancel_of_one_session_waits_for_no_other(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, say("ok"))
    await bench.hello()
    blocks = [{"type": "text", "text": "a"}]
    bench.send("session/prompt", {"sessionId": "s", "contentBlocks": blocks})
    cancelled = await bench.ask("session/cancel", {"sessionId": "other"})
    told = [frame for frame in bench.sink.frames if "method" in frame]
    await bench.idle()
    await bench.leave()
    assert (cancelled, told) == ({"cancelled": "none"}, [])
