"""Children: what they inherit, how far down they go, what comes of their work, and that none is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import pytest

from harness.capabilities.subagents import SubagentFinished, SubagentStarted, depth_of
from harness.errors import LogWriteError, UsageError
from harness.log.events import (
    AssistantMessage,
    Cause,
    RequestConfig,
    SessionHeader,
    SubagentDescriptor,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
)
from harness.log.fold import latest_header
from harness.log.interval import final_text
from harness.loop.decide import Decision, Reject
from harness.loop.hooks import Hooks, StepProposal
from harness.loop.scope import CancelScope
from harness.loop.tools import ToolContext, ToolOutput
from harness.model.call import CancelSignal
from harness.model.messages import SessionId, TextBlock
from lanes.unit.capabilities.family import FIRST_CHILD, Family, delegates
from lanes.unit.loop.rig import PATIENCE_S, message, output, shape, texts, tool
from lanes.unit.loop.scripted_model import Hang, LateHang, calls, failing, open_text, reasoning, text

Make = Callable[..., Family]
USER = Cause("user")


async def test_a_child_does_the_task_in_a_session_of_its_own_and_its_last_words_are_the_result(
    make_family: Make,
) -> None:
    family = make_family(delegates("count"), text("thanks"), children=[[text("there are 4")]])
    await family.parent.run("go")
    child = family.children[0]
    assert family.parent.results() == [("d1", False, None, "there are 4")]
    assert [texts(request) for request in child.model.requests] == [["count"]]
    assert (child.log.header.parent_session, child.log.header.origin, child.log.header.delegation_depth) == (
        SessionId("session-1"),
        "subagent",
        1,
    )


async def test_the_child_is_described_right_behind_the_start_of_its_first_turn(make_family: Make) -> None:
    route = RequestConfig("scripted", "model-1", temperature=0.5, max_tokens=77)
    family = make_family(delegates("a"), text("b"), children=[[text("c")]], route=route)
    await family.parent.run("go")
    child = family.children[0]
    assert shape(child.log)[:3] == ["inbox+", "turn/start", "subagent/descriptor"]
    assert child.payloads(SubagentDescriptor)[0].descriptor == {
        "mode": "spawn",
        "parentSession": "session-1",
        "parentCall": "d1",
        "delegationDepth": 1,
        "maxDelegationDepth": 1,
        "provider": "scripted",
        "model": "model-1",
        "maxTokens": 77,
    }


async def test_R04_provider_model_and_token_limit_are_those_of_the_parents_last_request(make_family: Make) -> None:
    before = RequestConfig("scripted", "model-1", max_tokens=5)
    after = RequestConfig("other", "model-2", temperature=0.1, max_tokens=9)
    family = make_family(delegates("a"), delegates("b"), text("c"), children=[[text("x")], [text("y")]], route=before)
    family.as_made = lambda child: family.parent.agent.select_model(after)
    await family.parent.run("go")
    found = [latest_header(child.log) for child in family.children]
    assert [header.config for header in found if header is not None] == [
        RequestConfig("scripted", "model-1", max_tokens=5),
        RequestConfig("other", "model-2", max_tokens=9),
    ]


async def test_a_route_may_be_chosen_for_one_child(make_family: Make) -> None:
    family = make_family(children=[[text("x")]])
    chosen = RequestConfig("scripted", "small")
    result = await family.subagents.run("task", CancelScope(), route=chosen)
    assert (result.text, family.plans[0].route, family.children[0].model.requests[0].model) == ("x", chosen, "small")


async def test_what_a_child_may_do_is_settled_before_anything_is_awaited(make_family: Make) -> None:
    family = make_family(delegates("a"), text("b"), children=[[text("c")]])
    family.before_child = lambda cancel: family.parent.agent.select_model(RequestConfig("late", "late"))
    await family.parent.run("go")
    assert family.children[0].payloads(SubagentDescriptor)[0].descriptor["model"] == "model-1"


# Depth


async def test_G04_the_cap_is_checked_before_anything_is_created(make_family: Make) -> None:
    family = make_family(delegates("a"), text("b"), max_depth=1, runtime_depth=1)
    await family.parent.run("go")
    (result,) = family.parent.results()
    assert result[:3] == ("d1", True, "DELEGATION_DEPTH")
    assert result[3] == "Error: no child was started: a child would stand 2 deep; expected: at most 1"
    assert (family.plans, family.drawn, family.seen) == ([], [], [])


async def test_G04_a_resumed_child_counts_from_its_header_and_a_deep_process_from_where_it_runs(
    make_family: Make,
) -> None:
    child_header = SessionHeader(SessionId("resumed"), 0, delegation_depth=2)
    root_header = SessionHeader(SessionId("root"), 0)
    assert [depth_of(child_header, 0), depth_of(root_header, 2), depth_of(child_header, 3)] == [2, 2, 3]
    refused = make_family(delegates("a"), text("b"), header=child_header, max_depth=2)
    await refused.parent.run("go")
    allowed = make_family(delegates("a"), text("b"), children=[[text("c")]], header=child_header, max_depth=3)
    await allowed.parent.run("go")
    assert (refused.plans, [plan.depth for plan in allowed.plans]) == ([], [3])


# Forks


async def test_G06_a_fork_begins_with_the_log_up_to_the_last_turn_end(make_family: Make) -> None:
    family = make_family(
        text("first"), delegates("go on", fork=True), text("done"), children=[[text("forked")]]
    )  # fmt: skip
    await family.parent.run("one")
    ended = family.parent.log.last(TurnEnd)
    await family.parent.run("two")
    assert ended is not None
    assert [plan.boundary for plan in family.plans] == [ended.seq]
    child = family.children[0]
    assert child.log.header.seed_length == ended.seq + 1
    assert [texts(request) for request in child.model.requests] == [["one", "first", "go on"]]
    assert child.payloads(SubagentDescriptor)[0].descriptor["mode"] == "fork"
    assert [turn.turn for turn in child.payloads(TurnStart)] == [1, 2]


async def test_G06_without_a_completed_turn_a_fork_is_a_fresh_child(make_family: Make) -> None:
    family = make_family(delegates("alone", fork=True), text("done"), children=[[text("fresh")]])
    await family.parent.run("one")
    child = family.children[0]
    assert (family.plans[0].boundary, texts(child.model.requests[0])) == (None, ["alone"])
    assert child.payloads(SubagentDescriptor)[0].descriptor["mode"] == "spawn"


async def test_F04_a_forked_child_inherits_no_queue(make_family: Make) -> None:
    family = make_family(
        text("first"), delegates("go on", fork=True), text("done"), text("queued"), children=[[text("forked")]]
    )  # fmt: skip
    await family.parent.run("one")
    family.parent.agent.followup(message("two"))
    family.parent.agent.followup(message("three"))
    await family.parent.idle()
    assert texts(family.children[0].model.requests[-1]) == ["one", "first", "go on"]
    assert family.children[0].agent.pending == 0


async def test_the_result_is_of_the_childs_own_events_and_never_of_inherited_ones(make_family: Make) -> None:
    family = make_family(
        text("inherited"), delegates("x", fork=True), text("done"), children=[[failing("BAD_REQUEST")]]
    )  # fmt: skip
    await family.parent.run("one")
    await family.parent.run("two")
    (result,) = family.parent.results()
    assert (result[2], "inherited" in result[3], "scripted BAD_REQUEST" in result[3]) == (
        "SUBAGENT_FAILED",
        False,
        True,
    )


# Results


async def judged(proposal: StepProposal) -> Decision:
    return Reject()


SAID = "Error: the child's work ended {}.\nWhat it had said until then:\n{}"
ENDINGS = {
    "completed": ([text("fine")], {}, ("completed", "ok"), (False, None, "fine")),
    "empty_last_message_erases_nothing": (
        [calls(("c", "look", "{}"), said="found"), reasoning("hm", "")],
        {},
        ("completed", "ok"),
        (False, None, "found"),
    ),
    "max_tokens": (
        [text("half", kind="max-tokens")],
        {},
        ("max-tokens", "error"),
        (True, "SUBAGENT_CUT", SAID.format("max-tokens", "half")),
    ),
    "blocked": (
        [],
        {"hooks": Hooks(pre_step=(judged,))},
        ("refusal", "error"),
        (True, "SUBAGENT_REFUSED", "Error: the child's work ended refusal.\nIt had said nothing until then."),
    ),
    "failed": (
        [failing("BAD_REQUEST", *open_text("so far"))],
        {},
        ("error", "error"),
        (
            True,
            "SUBAGENT_FAILED",
            SAID.format("error, scripted BAD_REQUEST [BAD_REQUEST]", "so far"),
        ),
    ),
    "step_limit": (
        [calls(("c", "look", "{}"), said="looking")],
        {"max_steps": 1},
        ("error", "error"),
        (
            True,
            "SUBAGENT_FAILED",
            SAID.format("error (step-limit)", "looking"),
        ),
    ),
    "silent": ([reasoning("hm", "")], {}, ("completed", "ok"), (False, None, "The child ended without a word.")),
}


@pytest.mark.parametrize(("replies", "options", "ending", "result"), ENDINGS.values(), ids=ENDINGS.keys())
async def test_the_end_of_a_child_is_told_in_one_word_and_what_it_said_survives(
    make_family: Make, replies: list[object], options: dict[str, object], ending: tuple[str, str], result: object
) -> None:
    family = make_family(
        delegates("x"), text("done"), children=[replies], child_options={"tools": [tool("look")], **options}
    )  # fmt: skip
    await family.parent.run("go")
    assert [(notice.stop, notice.status) for notice in family.finished] == [ending]
    assert family.parent.results() == [("d1", *result)]  # type: ignore[misc] # a tuple in each case
    assert family.parent.payloads(ToolResult)[0].meta == {"childSession": FIRST_CHILD, "stopReason": ending[0]}


async def test_of_a_message_streamed_twice_the_last_attempt_counts(make_family: Make) -> None:
    replies = [failing("SERVER", *open_text("first try")), failing("BAD_REQUEST", *open_text("second try"))]
    family = make_family(delegates("x"), text("done"), children=[replies])
    await family.parent.run("go")
    assert family.parent.results()[0][3].endswith("until then:\nsecond try")


async def test_processes_that_were_ended_with_the_child_are_named(make_family: Make) -> None:
    family = make_family(delegates("x"), text("done"), children=[[text("serving")]])
    family.as_made = lambda child: setattr(child, "on_close", lambda: ("sleep 100",))
    await family.parent.run("go")
    assert family.parent.results()[0][3] == ("serving\nEnded with the child, left in the background by it:\nsleep 100")


async def test_a_child_whose_log_cannot_be_kept_is_an_error_with_its_words(make_family: Make) -> None:
    def fail() -> None:
        raise LogWriteError("the disk is full", where="session.jsonl")

    family = make_family(delegates("x"), text("done"), children=[[text("the answer")]])
    family.as_made = lambda child: setattr(child, "on_close", fail)
    await family.parent.run("go")
    (result,) = family.parent.results()
    assert (result[1], "the disk is full [LOG_WRITE_FAILED]" in result[3], "the answer" in result[3]) == (
        True,
        True,
        True,
    )


# Cancels


async def test_G05_a_parents_abort_reaches_the_child_and_waits_for_its_end_and_its_partial_text_is_returned(
    make_family: Make,
) -> None:
    slow = LateHang(open_text("half an ", "answer"))
    family = make_family(delegates("x"), children=[[slow]])
    family.parent.agent.followup(message("go"))
    await slow.reached.wait()
    family.parent.agent.cancel(USER)
    await slow.cancelled.wait()
    for _ in range(50):
        await asyncio.sleep(0)
    assert (family.parent.agent.status, family.parent.payloads(ToolResult)) == ("running", [])
    slow.release.set()
    await family.parent.idle()
    child = family.children[0]
    assert child.reasons == [TurnReason("aborted", Cause("parent"))]
    assert family.parent.reasons == [TurnReason("aborted", USER)]
    assert family.parent.results() == [
        (
            "d1",
            True,
            "ABORTED",
            SAID.format("aborted", "half an answer"),
        )
    ]
    assert family.finished[0].last_message == (TextBlock("half an answer"),)


async def test_G05_the_result_of_an_aborted_child_knows_how_its_turn_ended(make_family: Make) -> None:
    hanging, scope = Hang(open_text("half")), CancelScope()
    family = make_family(children=[[hanging]])
    running = asyncio.ensure_future(family.subagents.run("x", scope, route=RequestConfig("scripted", "m")))
    await hanging.reached.wait()
    scope.cancel(USER)
    result = await running
    assert (result.stop, result.reason, result.text) == ("aborted", TurnReason("aborted", Cause("parent")), "half")


async def test_G05_an_abort_while_the_childs_tool_works_waits_for_the_tool(make_family: Make) -> None:
    working, release = asyncio.Event(), asyncio.Event()

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        working.set()
        await release.wait()
        return output("did it")

    replies = [calls(("c", "work", "{}"), said="I begin")]
    family = make_family(delegates("x"), children=[replies], child_options={"tools": [tool("work", body)]})
    family.parent.agent.followup(message("go"))
    await working.wait()
    family.parent.agent.cancel(USER)
    for _ in range(50):
        await asyncio.sleep(0)
    assert family.parent.payloads(ToolResult) == []
    release.set()
    await family.parent.idle()
    assert family.parent.results()[0][3].endswith("I begin")
    assert family.notes[-2:] == [f"{FIRST_CHILD} closed", f"{FIRST_CHILD} finished"]


async def test_G05_disposing_the_parent_ends_the_child_first(make_family: Make) -> None:
    hanging = Hang(open_text("so"))
    family = make_family(delegates("x"), children=[[hanging]])
    family.parent.agent.followup(message("go"))
    await hanging.reached.wait()
    with anyio.fail_after(PATIENCE_S):
        await family.parent.agent.dispose()
    assert family.children[0].reasons == [TurnReason("aborted", Cause("parent"))]
    assert family.parent.reasons == [TurnReason("aborted", Cause("disposed"))]
    assert hanging.closed.is_set()


async def test_a_cancel_that_comes_while_the_child_is_made_starts_no_request(make_family: Make) -> None:
    family = make_family(delegates("x"))
    family.as_made = lambda child: family.parent.agent.cancel(USER)
    await family.parent.run("go")
    child = family.children[0]
    assert (shape(child.log), family.notes) == (
        [],
        [f"{FIRST_CHILD} started", f"{FIRST_CHILD} closed", f"{FIRST_CHILD} finished"],
    )
    assert [(notice.stop, notice.last_message) for notice in family.finished] == [("aborted", None)]


async def test_a_child_that_cannot_be_made_is_an_error_result_and_nobody_hears_of_it(make_family: Make) -> None:
    def refuse(cancel: CancelSignal) -> None:
        raise UsageError("no room for another", code="NO_ROOM")

    family = make_family(delegates("x"), text("alone then"))
    family.before_child = refuse
    await family.parent.run("go")
    assert family.parent.results() == [("d1", True, "NO_ROOM", "Error: no child was started: no room for another")]
    assert (family.seen, family.parent.outcomes) == ([], ["completed"])


async def test_work_that_raises_still_closes_the_child_and_tells_its_end(make_family: Make) -> None:
    family = make_family(delegates("x"), text("done"))

    def break_it(child: object) -> None:
        def fail(message: object) -> None:
            raise RuntimeError("cannot be sent to")

        family.made[-1].agent.followup = fail  # type: ignore[method-assign] # the fault this test is about

    family.as_made = break_it
    await family.parent.run("go")
    assert family.parent.results()[0][3] == "Error: RuntimeError: cannot be sent to"
    assert family.notes == [f"{FIRST_CHILD} {what}" for what in ("started", "closed", "finished")]


# Order and neighbours


async def test_a_delegation_is_told_in_order(make_family: Make) -> None:
    family = make_family(delegates("x"), text("done"), children=[[text("fine")]])
    family.parent.log.observe(lambda event: family.notes.append(event.type))
    await family.parent.run("go")
    inside = [f"{FIRST_CHILD} {event.type}" for event in family.children[0].log]
    start = family.notes.index("tool/call")
    assert family.notes[start : family.notes.index("tool/result") + 1] == [
        "tool/call",
        f"{FIRST_CHILD} started",
        *inside,
        f"{FIRST_CHILD} closed",
        f"{FIRST_CHILD} finished",
        "tool/result",
    ]
    assert family.seen == [
        SubagentStarted(SessionId("session-1"), FIRST_CHILD, family.children[0].agent),
        SubagentFinished(
            provider="scripted",
            agent_id=FIRST_CHILD,
            parent=SessionId("session-1"),
            child=FIRST_CHILD,
            status="ok",
            stop="completed",
            last_message=(TextBlock("fine"),),
        ),
    ]


async def test_an_observer_that_raises_stops_no_work(make_family: Make) -> None:
    def fail(notice: object) -> None:
        raise ValueError("observer")

    family = make_family(delegates("x"), text("done"), children=[[text("fine")]])
    family.on_notice = fail
    await family.parent.run("go")
    assert (family.parent.results()[0][3], [str(error) for error in family.subagents.failures]) == (
        "fine",
        ["observer", "observer"],
    )


async def test_children_run_one_after_the_other_unless_declared_read_only(make_family: Make) -> None:
    for is_read_only in (False, True):
        family = make_family(
            delegates("a", "b"), text("done"), children=[[text("1")], [text("2")]], is_read_only=is_read_only
        )  # fmt: skip
        await family.parent.run("go")
        started = [note.split()[0] for note in family.notes if note.endswith("started")]
        order = [note.split()[1] for note in family.notes if note.split()[1] in ("started", "closed")]
        assert (order, len(started)) == (
            ["started", "started", "closed", "closed"] if is_read_only else ["started", "closed"] * 2,
            2,
        )
        assert [result[3] for result in family.parent.results()] == ["1", "2"]


async def test_G07_families_side_by_side_never_see_each_others_events_or_cancels(make_family: Make) -> None:
    hanging = Hang(open_text("left"))
    left = make_family(delegates("x"), children=[[hanging]])
    right = make_family(delegates("x"), text("done"), children=[[text("right")]])
    heard: list[str] = []
    right.parent.log.observe(lambda event: heard.append(event.type))
    left.parent.agent.followup(message("go"))
    await hanging.reached.wait()
    await right.parent.run("go")
    left.parent.agent.cancel(USER)
    await left.parent.idle()
    assert (left.parent.outcomes, right.parent.outcomes) == (["aborted"], ["completed"])
    assert heard == [event.type for event in right.parent.log]
    assert [final_text(family.parent.log) for family in (left, right)] == ["", "done"]
    assert left.parent.log.last(AssistantMessage) is not None
    assert len(left.seen) == len(right.seen) == 2


async def test_ending_now_reaches_the_running_children(make_family: Make) -> None:
    hanging = Hang()
    family = make_family(delegates("x"), children=[[hanging]])
    family.subagents.end_now()
    family.parent.agent.followup(message("go"))
    await hanging.reached.wait()
    family.subagents.end_now()
    family.parent.agent.cancel(USER)
    await family.parent.idle()
    family.subagents.end_now()
    assert family.made[0].killed
