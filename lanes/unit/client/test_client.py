"""The client: where a run begins and ends, whose notifications it sees, and how its server is made to go."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.client import (
    BlockingHarnessClient,
    ClientClosedError,
    Grace,
    HarnessClient,
    Launch,
    ProtocolError,
    RequestTimeoutError,
    RunTimeoutError,
    ServerDiedError,
    StartError,
    Told,
    clean_environment,
)
from harness.client import client as client_room
from harness.client.process import TAIL_LINES, ServerProcess, Tail, start_process
from harness.client.tree import SessionTree
from harness.log.events import AssistantMessage, Event, TurnStart
from harness.log.json_form import event_to_json
from harness.model.messages import Message, MessageId, ModelSource, TextBlock
from harness.transport.rpc import RpcError

FAKE = str(Path(__file__).parent / "fake_server.py")
QUICK = Grace(shutdown_s=0.2, end_of_input_s=0.2, terminate_s=0.2, kill_s=5)

Make = Callable[..., HarnessClient]


@pytest.fixture
async def make(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Make]:
    """Clients of a fake server; closed at the end."""
    made: list[HarnessClient] = []

    def build(
        *prompts: list[Any], cwd: str | None = None, timeout_s: float = 10, grace: Grace = QUICK, **scenario: Any
    ) -> HarnessClient:
        given = {"PATH": os.environ["PATH"], "FAKE_SERVER": json.dumps({"prompts": prompts, **scenario})}
        launch = Launch(
            cwd=cwd or tmp_path,
            provider="openai",
            model="m",
            command=(sys.executable, FAKE),
            environment=given,
            grace=grace,
            request_timeout_s=timeout_s,
        )
        made.append(HarnessClient(launch))
        return made[-1]

    yield build
    for client in made:
        await client.close()


def event(kind: str, session: str = "s", **data: Any) -> dict[str, Any]:
    return {"notify": ["session.event", {"sessionId": session, "event": {"type": kind, "data": data}}]}


def splice(message: str = "MESSAGE", session: str = "s") -> dict[str, Any]:
    return event("agent/inbox/spliced", session, inserted=[{"id": message}])


def stored(entry: Event, session: str) -> dict[str, Any]:
    return {"notify": ["session.event", {"sessionId": session, "event": event_to_json(entry)}]}


def begun(session: str = "s") -> dict[str, Any]:
    return stored(Event(1, 1, TurnStart(1)), session)


def said(text: str, session: str = "s", seq: int = 5) -> dict[str, Any]:
    message = Message(MessageId("a"), "assistant", (TextBlock(text),), ModelSource("p", "m"))
    return stored(Event(seq, 1, AssistantMessage(1, 1, message), surface_op="append"), session)


def idle(session: str = "s") -> dict[str, Any]:
    return {"notify": ["session.status", {"sessionId": session, "status": "idle"}]}


def ended(kind: str = "completed") -> dict[str, Any]:
    return event("turn/end", turn=1, reason={"kind": kind})


def started(parent: str, child: str) -> dict[str, Any]:
    return {"notify": ["subagent.started", {"parentSessionId": parent, "childSessionId": child}]}


ANSWER = {"answer": {"messageId": "MESSAGE"}}


def kinds(notifications: tuple[Told, ...]) -> list[str]:
    found = []
    for told in notifications:
        of_session = told.params.get("event")
        found.append(str(of_session["type"]) if isinstance(of_session, Mapping) else told.method)
    return found


async def lines_of(client: HarnessClient) -> list[str]:
    """What the fake server has read."""
    lines = (await client.request("lines"))["lines"]
    assert isinstance(lines, list)
    return [str(line) for line in lines]


# where a run begins and ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(4))
async def test_CL01_the_answer_may_come_anywhere_between_the_receipt_and_the_rest(make: Make, at: int) -> None:
    steps: list[Any] = [splice(), ended(), idle()]
    steps.insert(at, ANSWER)
    result = await make(steps).run("hi", session_id="s", timeout_s=10)
    assert (result.message_id, result.finish_reason, kinds(result.notifications)) == (
        "m-1", "completed", ["agent/inbox/spliced", "turn/end", "session.status"],
    )  # fmt: skip


async def test_CL02_a_rest_before_the_receipt_does_not_end_the_run(make: Make) -> None:
    result = await make([idle(), ANSWER, splice(), ended(), idle()]).run("hi", session_id="s", timeout_s=10)
    assert kinds(result.notifications) == ["agent/inbox/spliced", "turn/end", "session.status"]


async def test_CL03_only_the_splice_with_the_message_is_its_receipt(make: Make) -> None:
    malformed = [event("agent/inbox/spliced", inserted=value) for value in (None, 5, ["x"], [{"id": 7}])]
    steps = [splice("other"), *malformed, event("agent/inbox/spliced"), ANSWER, splice(), ended(), idle()]
    result = await make(steps).run("hi", session_id="s", timeout_s=10)
    assert kinds(result.notifications) == ["agent/inbox/spliced", "turn/end", "session.status"]


async def test_CL04_the_rest_and_the_words_of_a_child_are_not_the_runs(make: Make) -> None:
    steps = [
        ANSWER,
        splice(),
        started("s", "c"),
        said("of the child", "c"),
        idle("c"),
        begun(),
        said("own"),
        ended(),
        idle(),
    ]
    result = await make(steps).run("hi", session_id="s", timeout_s=10)
    assert (result.final_response, len(result.events), len(result.notifications)) == ("own", 4, 8)


async def test_an_empty_message_does_not_erase_what_was_said_before(make: Make) -> None:
    steps = [ANSWER, splice(), begun(), said("words"), said("", seq=6), ended("error"), idle()]
    result = await make(steps).run("hi", session_id="s", timeout_s=10)
    assert (result.final_response, result.finish_reason) == ("words", "error")


async def test_CL05_notifications_of_grandchildren_come_and_edges_stay_between_runs(make: Make) -> None:
    first = [ANSWER, splice(), started("s", "c"), started("c", "g"), said("deep", "g"), ended(), idle()]
    second = [ANSWER, splice(), said("again", "g"), ended(), idle()]
    client = make(first, second)
    results = [await client.run("hi", session_id="s", timeout_s=10) for _ in range(2)]
    of_grandchild = [
        [told for told in result.notifications if told.params.get("sessionId") == "g"] for result in results
    ]
    assert [len(found) for found in of_grandchild] == [1, 1]


async def test_CL08_another_session_never_leaks_in(make: Make) -> None:
    steps = [ANSWER, splice(), said("foreign", "x"), idle("x"), started("x", "y"), ended(), idle()]
    result = await make(steps).run("hi", session_id="s", timeout_s=10)
    assert kinds(result.notifications) == ["agent/inbox/spliced", "turn/end", "session.status"]


async def test_CL09_the_observer_has_seen_everything_in_order_before_the_run_returns(make: Make) -> None:
    seen: list[Told] = []
    result = await make([ANSWER, splice(), started("s", "c"), idle("c"), ended(), idle()]).run(
        "hi", session_id="s", timeout_s=10, observer=seen.append
    )
    assert tuple(seen) == result.notifications


async def test_CL10_a_raising_observer_or_filter_ends_its_own_run_or_subscription_only(make: Make) -> None:
    def fails(told: Told) -> Any:
        raise LookupError("mine")

    client = make([ANSWER, splice(), ended(), idle()], [ANSWER, splice(), ended(), idle()])
    await client.start()
    broken = client.subscribe(fails)
    rests = client.subscribe(lambda told: told.method == "session.status")
    with pytest.raises(LookupError):
        await client.run("hi", session_id="s", timeout_s=10, observer=fails)
    with pytest.raises(LookupError):
        await broken.next()
    await rests.next()  # the work that went on without its run is over, and nothing of it reaches the next one
    assert (await client.run("hi", session_id="s", timeout_s=10)).finish_reason == "completed"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([ANSWER, splice(), event("turn/end", turn=1), idle()], id="no-reason"),
        pytest.param([ANSWER, splice(), event("turn/end", turn=1, reason={"kind": 5}), idle()], id="odd-reason"),
        pytest.param([ANSWER, splice(), {"notify": ["session.event", {"sessionId": "s", "event": {}}]}], id="no-type"),
        pytest.param([{"answer": {}}], id="no-receipt"),
        pytest.param([{"answer": {"messageId": 5}}], id="odd-receipt"),
        pytest.param([{"answer": "text"}], id="no-object"),
    ],
)
async def test_CL19_what_is_not_of_this_wire_is_a_protocol_error(make: Make, steps: list[Any]) -> None:
    with pytest.raises(ProtocolError):
        await make(steps).run("hi", session_id="s", timeout_s=10)


async def test_events_of_a_newer_server_are_passed_over(make: Make) -> None:
    steps = [ANSWER, splice(), begun(), event("system/message", text="new"), said("own"), ended(), idle()]
    result = await make(steps).run("hi", session_id="s", timeout_s=10)
    assert (result.final_response, len(result.events)) == ("own", 5)


async def test_noise_on_the_wire_changes_nothing(make: Make) -> None:
    noise = {"raw": "a shell line\n\nnull\n[]\n5\n\xff\n"}
    steps = [noise, ANSWER, {"raw": "between\n"}, splice(), ended(), idle(), {"raw": "half a li"}]
    client = make(steps)
    assert (await client.run("hi", session_id="s", timeout_s=10)).finish_reason == "completed"


async def test_a_request_of_the_server_is_answered_that_nobody_has_it(make: Make) -> None:
    client = make([ANSWER, {"ask": "approve"}, splice(), ended(), idle()])
    await client.run("hi", session_id="s", timeout_s=10)
    assert any('"id":"server-1"' in line and "-32601" in line for line in await lines_of(client))


# deadlines and death ----------------------------------------------------------------------------------------------


async def test_CL12_a_death_in_a_run_comes_after_what_was_said_with_status_and_last_words(make: Make) -> None:
    seen: list[Told] = []
    steps = [ANSWER, splice(), begun(), said("part"), {"stderr": "the disk is gone\n"}, {"exit": 7}]
    with pytest.raises(ServerDiedError) as raised:
        await make(steps).run("hi", session_id="s", timeout_s=10, observer=seen.append)
    error = raised.value
    assert (error.status, error.tail, len(seen)) == (7, "the disk is gone", 3)
    assert error.partial is not None
    assert error.partial.final_response == "part"


async def test_CL12_half_a_line_at_death_is_no_frame(make: Make) -> None:
    steps = [ANSWER, splice(), {"raw": '{"jsonrpc":"2.0","method":"session.status"'}, {"exit": 0}]
    with pytest.raises(ServerDiedError) as raised:
        await make(steps).run("hi", session_id="s", timeout_s=10)
    assert raised.value.status == 0


async def test_CL13_after_the_death_calls_and_subscriptions_fail_at_once(make: Make) -> None:
    client = make([{"exit": 3}])
    with pytest.raises(ServerDiedError):
        await client.prompt("hi", session_id="s")
    subscription = client.subscribe(lambda told: True)
    calls: list[Callable[[], Awaitable[object]]] = [
        subscription.next,
        lambda: client.prompt("hi", session_id="s"),
        lambda: client.request("lines"),
    ]
    for call in calls:
        with pytest.raises(ServerDiedError) as raised:
            await asyncio.wait_for(call(), 5)
        assert raised.value.status == 3


async def test_CL20_a_deadline_raises_with_what_came_and_a_later_run_works(make: Make) -> None:
    client = make([ANSWER, splice(), begun(), said("part")], [ANSWER, splice(), ended(), idle()])
    with pytest.raises(RunTimeoutError) as raised:
        await client.run("hi", session_id="s", timeout_s=0.5)
    assert raised.value.partial.final_response == "part"
    assert client.pending_calls == 0
    assert (await client.run("hi", session_id="s", timeout_s=10)).finish_reason == "completed"


async def test_a_request_that_is_not_answered_in_time_leaves_nothing(make: Make) -> None:
    client = make(silent=["lines"])
    with pytest.raises(RequestTimeoutError, match="stays running"):
        await client.request("lines", timeout_s=0.1)
    assert client.pending_calls == 0


async def test_what_the_server_refuses_is_raised_as_it_said_it(make: Make) -> None:
    client = make([{"raw": '{"id":"req_2","error":{"code":-32602,"message":"sessionId: no"}}\n'}])
    with pytest.raises(RpcError) as raised:
        await client.run("hi", session_id="s", timeout_s=10)
    assert (raised.value.rpc_code, raised.value.what) == (-32602, "sessionId: no")


# start and end ----------------------------------------------------------------------------------------------------


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[ServerProcess]:
    """The processes that were started, in order."""
    started: list[ServerProcess] = []

    async def kept(*given: Any) -> ServerProcess:
        started.append(await start_process(*given))
        return started[-1]

    monkeypatch.setattr(client_room, "start_process", kept)
    return started


async def test_CL14_a_refused_handshake_reaps_its_process_and_the_next_start_uses_another(
    make: Make, processes: list[ServerProcess]
) -> None:
    client = make(hello={"refuse": "no adapter"})
    for number in (1, 2):
        with pytest.raises(StartError, match="no adapter"):
            await client.start()
        assert [process.exit_code for process in processes] == [0] * number
    await client.close()
    with pytest.raises(ClientClosedError):
        await client.start()
    assert len(processes) == 2


async def test_CL15_many_runs_share_one_handshake(make: Make, processes: list[ServerProcess]) -> None:
    steps = [ANSWER, splice(), ended(), idle()]
    client = make(*([steps] * 5))
    await asyncio.gather(*(client.run("hi", session_id="s", timeout_s=10) for _ in range(5)))
    assert sum("initialize" in line for line in await lines_of(client)) == 1
    assert len(processes) == 1


PATIENT = Grace(shutdown_s=0.2, end_of_input_s=30, terminate_s=30, kill_s=30)
STOLID = Grace(shutdown_s=0.2, end_of_input_s=0.2, terminate_s=30, kill_s=30)


@pytest.mark.parametrize(
    ("scenario", "grace", "status"),
    [
        ({}, PATIENT, 0),
        ({"ignore_shutdown": True}, PATIENT, 0),
        ({"ignore_shutdown": True, "ignore_eof": True}, STOLID, -15),
        ({"ignore_shutdown": True, "ignore_eof": True, "ignore_term": True}, QUICK, -9),
    ],
    ids=["asked", "end-of-input", "terminated", "killed"],
)
async def test_CL16_the_way_out_goes_only_as_far_as_it_must(
    make: Make, scenario: dict[str, Any], grace: Grace, status: int
) -> None:
    client = make(grace=grace, **scenario)
    await client.start()
    process = client._process
    assert process is not None
    await client.close()
    assert process.exit_code == status


async def test_CL17_close_may_come_twice_before_start_and_after_death(make: Make) -> None:
    never, dead = make(), make([{"exit": 1}])
    with pytest.raises(ServerDiedError):
        await dead.prompt("hi", session_id="s")
    for client in (never, dead):
        for _ in range(2):
            await client.close()
        with pytest.raises(ClientClosedError):
            await client.start()


async def test_CL17_each_of_two_closes_at_once_returns_only_when_the_process_is_gone(
    make: Make, processes: list[ServerProcess]
) -> None:
    client = make()
    await client.start()

    async def close() -> int | None:
        await client.close()
        return processes[0].exit_code

    assert list(await asyncio.gather(close(), close())) == [0, 0]


async def test_a_close_fails_the_subscriptions_that_wait(make: Make) -> None:
    client = make()
    await client.start()
    subscription = client.subscribe(lambda told: True)
    waiting = asyncio.ensure_future(subscription.next())
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(ClientClosedError):
        await waiting


async def test_CL18_a_relative_folder_is_sent_absolute_once(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    client = make(cwd="inner")
    await client.start()
    lines = await lines_of(client)
    assert json.loads(lines[0])["params"]["cwd"] == str(tmp_path / "inner")


async def test_a_program_that_does_not_exist_says_so(tmp_path: Path) -> None:
    client = HarnessClient(Launch(cwd=tmp_path, provider="p", model="m", command=("/no/such/program",)))
    with pytest.raises(StartError, match="No such file"):
        await client.start()
    await client.close()


async def test_a_folder_that_is_not_there_is_named_and_not_the_program(tmp_path: Path) -> None:
    client = HarnessClient(Launch(cwd=tmp_path / "missing", provider="p", model="m"))
    with pytest.raises(StartError, match=f"there is no folder {tmp_path}/missing"):
        await client.start()
    await client.close()


async def test_CL13_a_server_that_takes_nothing_in_any_more_fails_calls_at_once(make: Make) -> None:
    client = make(prompts=[[{"deaf": True}, ANSWER]])
    await client.prompt("a", session_id="s")
    for text in ("b", "c"):
        with pytest.raises(ServerDiedError):
            await client.prompt(text, session_id="s")
    assert client.pending_calls == 0


async def test_CL22_what_many_send_at_once_arrives_as_whole_lines(make: Make) -> None:
    client = make(answer_all={"ok": True})
    await asyncio.gather(*(client.request(f"m{n}", {"text": "x" * 20_000}) for n in range(50)))
    lines = await lines_of(client)
    assert len({json.loads(line)["method"] for line in lines}) == 52


def test_the_blocking_client_does_the_same_from_any_thread(tmp_path: Path) -> None:
    given = {
        "PATH": os.environ["PATH"],
        "FAKE_SERVER": json.dumps(
            {"prompts": [[ANSWER, splice(), begun(), said("own"), ended(), idle()]], "answer_all": {}}
        ),
    }
    command = (sys.executable, FAKE)
    launch = Launch(cwd=tmp_path, provider="p", model="m", command=command, environment=given, grace=QUICK)
    with BlockingHarnessClient(launch) as client:
        result = client.run("hi", session_id="s", timeout_s=10)
        assert (result.final_response, client.cancel("s")) == ("own", "None")
    client.close()
    with pytest.raises(ClientClosedError):
        client.prompt("hi", session_id="s")


# small rooms ------------------------------------------------------------------------------------------------------


def test_CL06_a_child_goes_with_its_latest_parent_and_a_late_end_moves_it_nowhere() -> None:
    tree = SessionTree()
    tree.learn("subagent.started", {"parentSessionId": "old", "childSessionId": "c"})
    tree.learn("subagent.started", {"parentSessionId": "new", "childSessionId": "c"})
    late = {"parentSessionId": "old", "childSessionId": "c"}
    tree.learn("subagent.finished", late)
    assert tree.belongs("new", "session.event", {"sessionId": "c"})
    assert not tree.belongs("old", "session.event", {"sessionId": "c"})
    assert (tree.belongs("old", "subagent.finished", late), tree.belongs("new", "subagent.finished", late)) == (
        True, False,
    )  # fmt: skip


def test_CL07_loops_and_empty_ids_are_ignored_and_never_hang() -> None:
    tree = SessionTree()
    for parent, child in (("a", "a"), ("", "b"), ("b", ""), ("x", "y"), ("y", "x"), (5, "z")):
        tree.learn("subagent.started", {"parentSessionId": parent, "childSessionId": child})
    assert tree.belongs("x", "session.event", {"sessionId": "y"})
    assert not tree.belongs("a", "session.event", {"sessionId": "x"})
    assert not tree.belongs("a", "session.event", {})


def test_CL21_the_tail_keeps_the_newest_lines_and_the_unfinished_one() -> None:
    tail = Tail()
    for number in range(1000):
        tail.add(f"line {number}\n".encode())
    tail.add(b"half")
    lines = tail.text().split("\n")
    assert (len(lines), lines[0], lines[-2:]) == (TAIL_LINES, "line 601", ["line 999", "half"])
    tail.add(b"x" * 1_000_000)
    assert len(tail.text()) == 64 << 10


def test_a_clean_environment_holds_no_key_and_no_setting_of_others() -> None:
    environ = {"PATH": "p", "OPENAI_API_KEY": "k", "GH_TOKEN": "t", "DSH_HOME": "d", "LANG": "C"}
    assert clean_environment(environ, {"OPENAI_API_KEY": "own"}) == {"PATH": "p", "LANG": "C", "OPENAI_API_KEY": "own"}
