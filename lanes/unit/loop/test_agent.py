"""The handle: what comes in, in which order it runs, status, maintenance, disposal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from harness.errors import InvalidEventError, LogWriteError, UsageError
from harness.log.events import (
    AssistantMessage,
    Cause,
    InboxSpliced,
    RequestConfig,
    RequestHeader,
    SessionHeader,
    StepStart,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.inbox import Fate, fate_of
from harness.log.session_log import SessionLog
from harness.loop.agent import CancelOutcome, StatusChange
from harness.loop.decide import Enter
from harness.loop.hooks import Hooks, StepProposal
from harness.model.call import CancelSignal
from harness.model.messages import MessageId, PluginSource, SessionId, text_of
from lanes.unit.loop.rig import Rig, message, output, texts, tool
from lanes.unit.loop.scripted_model import Gated, Hang, LateHang, calls, open_text, text

Make = Callable[..., Rig]
USER = Cause("user")


async def test_I01_the_first_event_is_the_insertion_with_the_callers_id(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.agent.followup(message("hi", "mine-1"))
    first = rig.log[0].payload
    assert isinstance(first, InboxSpliced)
    assert [item.id for item in first.inserted] == ["mine-1"]
    await rig.idle()


async def test_I02_a_duplicate_id_is_refused_in_either_list_and_nothing_changes(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.agent.inject(message("waits", "one"))
    before = (len(rig.log), rig.agent.inbox, rig.agent.status)
    for send in (rig.agent.followup, rig.agent.steer, rig.agent.inject):
        with pytest.raises(InvalidEventError):
            send(message("again", "one"))
    assert (len(rig.log), rig.agent.inbox, rig.agent.status) == before
    await rig.run("go")


async def test_I02_a_message_the_log_refuses_is_the_senders_error_and_nothing_runs(make_rig: Make) -> None:
    rig = make_rig()
    with pytest.raises(InvalidEventError):
        rig.agent.followup(message("no id", "").__class__(MessageId(""), "user", (), PluginSource("p")))
    assert (len(rig.log), rig.agent.status, rig.trace) == (0, "idle", [])


def test_I02_waking_without_a_running_event_loop_writes_nothing() -> None:
    rig = Rig()
    with pytest.raises(RuntimeError):
        rig.agent.followup(message("hi"))
    assert (len(rig.log), rig.agent.status) == (0, "idle")


@pytest.mark.parametrize("count", [1, 2, 7])
async def test_I03_prompts_of_one_tick_get_a_turn_each_in_order_within_one_running_interval(
    make_rig: Make, count: int
) -> None:
    rig = make_rig(*[text(f"answer {number}") for number in range(count)])
    prompts = [f"prompt {number}" for number in range(count)]
    await rig.run(*prompts)
    assert [text_of(payload.message) for payload in rig.payloads(UserMessage)] == prompts
    assert [payload.turn for payload in rig.payloads(TurnStart)] == list(range(1, count + 1))
    assert rig.statuses == [StatusChange("running", 1), StatusChange("idle", 0)]


async def test_I04_a_turn_takes_next_step_items_first_and_then_one_prompt(make_rig: Make) -> None:
    rig = make_rig(text("1"), text("2"))
    rig.agent.inject(message("context"))
    await rig.run("prompt", "later")
    assert texts(rig.model.requests[0]) == ["context", "prompt"]


async def test_I05_an_idle_inject_is_stored_and_runs_nothing(make_rig: Make) -> None:
    rig = make_rig()
    rig.agent.inject(message("note"))
    await rig.idle()
    assert (rig.shape, rig.agent.pending, rig.trace) == (["inbox+"], 1, [])
    assert rig.agent.wake() is False


async def test_I05_an_idle_steer_opens_a_turn_by_itself(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.agent.steer(message("now"))
    await rig.idle()
    assert [texts(request) for request in rig.model.requests] == [["now"]]


async def test_I05_a_late_inject_never_costs_a_model_call_by_itself(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.observe(TurnEnd, lambda: rig.agent.inject(message("late")))
    await rig.run("hi")
    assert (len(rig.model.requests), rig.agent.pending) == (1, 1)
    assert rig.statuses[-1] == StatusChange("idle", 1)


async def test_I06_a_steer_while_running_enters_the_next_step_of_the_same_turn(make_rig: Make) -> None:
    answer = Gated(open_text("o"), text("one")[2:])
    rig = make_rig(answer, text("two"))
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    rig.agent.steer(message("left"))
    answer.gate.set()
    await rig.idle()
    assert [(payload.turn, payload.step) for payload in rig.payloads(StepStart)] == [(1, 1), (1, 2)]
    assert texts(rig.model.requests[1]) == ["hi", "one", "left"]


async def test_I07_context_of_results_and_injections_come_after_all_results_in_call_order(make_rig: Make) -> None:
    async def with_context(arguments: object, context: object) -> object:
        return output("first", context=("about first",))

    async def injecting(arguments: object, context: object) -> object:
        rig.agent.inject(message("injected"))
        return output("second", context=("about second",))

    rig = make_rig(
        calls(("c1", "a", "{}"), ("c2", "b", "{}")), text("ok"), tools=[tool("a", with_context), tool("b", injecting)]
    )
    await rig.run("hi")
    assert [texts(request)[2:] for request in rig.model.requests[1:]] == [
        ["first", "second", "about first", "injected", "about second"]
    ]


async def test_I08_input_during_pre_step_waits_for_the_following_step(make_rig: Make) -> None:
    async def send_more(proposal: StepProposal) -> Enter:
        if proposal.step == 1:
            proposal.agent.steer(message("more"))
            await asyncio.sleep(0)
        return Enter(proposal.messages)

    rig = make_rig(text("1"), text("2"), hooks=Hooks(pre_step=(send_more,)))
    await rig.run("hi")
    assert [texts(request) for request in rig.model.requests] == [["hi"], ["hi", "1", "more"]]


async def test_I09_a_waiting_message_can_be_removed_and_replaced_in_place_and_not_once_it_is_claimed(
    make_rig: Make,
) -> None:
    answer = Hang()
    rig = make_rig(answer, text("b"), text("d"))
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    for name in "bcd":
        rig.agent.followup(message(name))
    rig.agent.inject(message("note"))
    assert rig.agent.replace_message(MessageId("b"), message("b instead", "b2"))
    assert rig.agent.cancel_message(MessageId("c"))
    assert rig.agent.cancel_message(MessageId("note"))
    assert not rig.agent.cancel_message(MessageId("a"))
    assert not rig.agent.replace_message(MessageId("c"), message("x"))
    assert [item.id for item in rig.agent.inbox.next_turn] == ["b2", "d"]
    rig.agent.cancel(USER, keep_inbox=True)
    rig.agent.wake()
    await rig.idle()
    assert [texts(request)[-1] for request in rig.model.requests] == ["a", "b instead", "d"]


async def test_I09_what_replaces_a_parked_message_is_parked_too(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.agent.followup(message("a"))
    rig.agent.cancel(USER, keep_inbox=True)
    assert rig.agent.replace_message(MessageId("a"), message("b"))
    await rig.idle()
    assert (rig.model.requests, rig.agent.pending) == ([], 1)
    assert rig.agent.wake()
    await rig.idle()
    assert texts(rig.model.requests[0]) == ["b"]


async def test_I10_the_fate_of_every_message_is_in_the_log(make_rig: Make) -> None:
    answer = Hang()
    rig = make_rig(answer)
    rig.agent.followup(message("claimed"))
    await answer.reached.wait()
    rig.agent.followup(message("removed"))
    rig.agent.followup(message("old"))
    rig.agent.replace_message(MessageId("old"), message("new"))
    rig.agent.cancel(USER)
    await rig.idle()
    names = ("claimed", "removed", "old", "new")
    assert [fate_of(rig.log, MessageId(name)) for name in names] == [
        Fate("claimed", 1),
        Fate("canceled"),
        Fate("replaced"),
        Fate("canceled"),
    ]


async def test_B18_sending_from_an_observer_of_the_log_works_and_keeps_the_order(make_rig: Make) -> None:
    rig = make_rig(text("1"), text("2"), text("3"))
    rig.observe(InboxSpliced, lambda: rig.agent.followup(message("from the observer")))
    rig.agent.followup(message("first"))
    rig.agent.followup(message("last"))
    await rig.idle()
    assert [text_of(payload.message) for payload in rig.payloads(UserMessage)] == ["first", "from the observer", "last"]


async def test_B9_input_left_by_a_failed_turn_stays_parked_until_a_wake(make_rig: Make) -> None:
    async def fail_first(proposal: StepProposal) -> Enter:
        if proposal.turn == 1:
            raise ValueError("no")
        return Enter(proposal.messages)

    rig = make_rig(text("a"), text("b"), hooks=Hooks(pre_step=(fail_first,)))
    rig.expected_failures = 1
    await rig.run("a", "b")
    assert rig.statuses[-1] == StatusChange("idle", 2)
    assert rig.agent.wake() is True
    await rig.idle()
    assert rig.outcomes == ["error", "completed", "completed"]
    assert rig.agent.wake() is False


async def test_B9_what_an_observer_of_a_failed_end_sends_is_a_wake(make_rig: Make) -> None:
    async def fail_first(proposal: StepProposal) -> Enter:
        if proposal.turn == 1:
            raise ValueError("no")
        return Enter(proposal.messages)

    rig = make_rig(text("a"), text("b"), hooks=Hooks(pre_step=(fail_first,)))
    rig.expected_failures = 1
    rig.observe(TurnEnd, lambda: rig.agent.followup(message("again")))
    await rig.run("a")
    assert rig.outcomes == ["error", "completed", "completed"]
    assert rig.trace == ["running", "idle"]


async def test_T09_when_idle_returns_at_once_when_idle_and_waits_for_work_an_idle_observer_queues(
    make_rig: Make,
) -> None:
    rig = make_rig(text("1"), text("2"))
    await rig.agent.when_idle()
    queued: list[str] = []

    def queue_more(change: StatusChange) -> None:
        if change.status == "idle" and not queued:
            queued.append("more")
            rig.agent.followup(message("more"))

    rig.agent.observe_status(queue_more)
    late: list[str] = []
    rig.agent.observe_status(lambda change: late.append(change.status))
    await rig.run("hi")
    assert len(rig.payloads(AssistantMessage)) == 2
    assert rig.trace == late == ["running", "idle", "running", "idle"]


async def test_T09_a_raising_status_observer_is_reported_and_starves_nobody(make_rig: Make) -> None:
    rig = make_rig(text("1"))
    rig.expected_failures = 2

    def fail(change: StatusChange) -> None:
        raise ValueError(change.status)

    seen: list[str] = []
    detach = rig.agent.observe_status(fail)
    rig.agent.observe_status(lambda change: seen.append(change.status))
    await rig.run("hi")
    assert seen == ["running", "idle"]
    detach()
    detach()


async def test_T10_maintenance_is_refused_while_a_turn_runs(make_rig: Make) -> None:
    answer = Hang()
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await answer.reached.wait()

    async def task(cancel: CancelSignal) -> None:
        raise AssertionError("ran")

    with pytest.raises(UsageError) as refused:
        await rig.agent.run_maintenance(task)
    assert refused.value.error_code == "NOT_IDLE"
    rig.agent.cancel(USER)
    await rig.idle()


async def test_T10_maintenance_keeps_the_status_idle_and_what_wakes_meanwhile_runs_after_it(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    seen: list[object] = []
    started, go_on = asyncio.Event(), asyncio.Event()

    async def task(cancel: CancelSignal) -> str:
        started.set()
        await go_on.wait()
        seen.append((rig.agent.status, rig.agent.pending, len(rig.model.requests)))
        return "tidy"

    running = asyncio.ensure_future(rig.agent.run_maintenance(task))
    await started.wait()
    rig.agent.followup(message("hi"))
    waiting = asyncio.ensure_future(rig.idle())
    go_on.set()
    assert await running == "tidy"
    await waiting
    assert seen == [("idle", 1, 0)]
    assert rig.outcomes == ["completed"]


async def test_T10_cancel_reaches_maintenance_and_a_cancelled_wake_is_not_run(make_rig: Make) -> None:
    rig = make_rig()
    started = asyncio.Event()

    async def task(cancel: CancelSignal) -> bool:
        started.set()
        await cancel.wait()
        return cancel.cancelled

    running = asyncio.ensure_future(rig.agent.run_maintenance(task))
    await started.wait()
    rig.agent.followup(message("hi"))
    assert rig.agent.cancel(USER).discarded == ("hi",)
    assert await running is True
    await rig.idle()
    assert (rig.trace, rig.agent.pending) == ([], 0)


async def test_G03_dispose_during_a_stream_closes_the_turn_makes_all_durable_and_is_one_wait(make_rig: Make) -> None:
    answer = LateHang(open_text("so far"))
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    disposals = [asyncio.ensure_future(rig.agent.dispose()) for _ in range(2)]
    await answer.cancelled.wait()
    for _ in range(50):
        await asyncio.sleep(0)
    assert ([each.done() for each in disposals], rig.reasons) == ([False, False], [])
    answer.release.set()
    await asyncio.gather(*disposals)
    assert rig.reasons == [TurnReason("aborted", cause=Cause("disposed"))]
    assert rig.writer.durable == len(rig.log)
    with pytest.raises(UsageError) as refused:
        rig.agent.followup(message("too late"))
    assert refused.value.error_code == "AGENT_DISPOSED"


async def test_G03_dispose_leaves_what_waits_in_the_log_for_the_next_lifetime(make_rig: Make) -> None:
    answer = Hang()
    rig = make_rig(answer)
    await asyncio.sleep(0)
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    rig.agent.followup(message("b"))
    await rig.agent.dispose()
    later = make_rig(text("ok b"), text("ok c"), seed=tuple(rig.log))
    assert [item.id for item in later.agent.inbox.next_turn] == ["b"]
    await later.run("c")
    assert [texts(request)[-1] for request in later.model.requests] == ["b", "c"]


async def test_G03_a_cancel_that_comes_after_the_disposal_leaves_what_waits_where_it_is(make_rig: Make) -> None:
    rig = make_rig()
    rig.agent.inject(message("later"))
    await rig.agent.dispose()
    rig.log.seal()
    assert (rig.agent.cancel(Cause("user")), rig.agent.pending) == (CancelOutcome(None, ()), 1)


async def test_G03_a_last_flush_that_fails_is_the_disposers_error(make_rig: Make) -> None:
    rig = make_rig()
    rig.agent.inject(message("note"))
    rig.writer.is_broken = lambda log: True
    for _ in range(2):
        with pytest.raises(LogWriteError):
            await rig.agent.dispose()


async def test_C08_a_wake_after_disposal_began_is_kept_and_not_run(make_rig: Make) -> None:
    answer = Hang()
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    disposing = asyncio.ensure_future(rig.agent.dispose())
    rig.observe(TurnEnd, lambda: rig.agent.followup(message("late")))
    await disposing
    assert (len(rig.model.requests), rig.agent.pending, rig.agent.wake()) == (1, 1, False)
    assert rig.reasons == [TurnReason("aborted", cause=Cause("disposed"))]


async def test_C08_a_wake_in_the_tick_disposal_begins_flips_no_status(make_rig: Make) -> None:
    rig = make_rig()
    disposing = asyncio.ensure_future(rig.agent.dispose())
    await asyncio.sleep(0)
    rig.agent.followup(message("late"))
    await disposing
    assert (rig.trace, rig.agent.pending, rig.writer.durable) == ([], 1, 1)


async def test_G07_agents_in_one_process_never_see_each_others_events_or_cancels(make_rig: Make) -> None:
    answer = Hang()
    one = make_rig(answer)
    two = make_rig(text("ok"), header=SessionHeader(SessionId("session-2"), 0))
    one.agent.followup(message("hi"))
    await answer.reached.wait()
    await two.run("hi")
    two.agent.cancel(USER)
    assert (one.agent.status, two.outcomes) == ("running", ["completed"])
    one.agent.cancel(USER)
    await one.idle()
    assert one.outcomes == ["aborted"]


async def test_F01_a_resumed_agent_continues_history_turns_and_queue_and_starts_nothing_by_itself(
    make_rig: Make,
) -> None:
    first = make_rig(text("one"))
    await first.run("a")
    first.agent.inject(message("note"))
    first.agent.cancel(USER, keep_inbox=True)
    rig = make_rig(text("two"), seed=tuple(first.log))
    await asyncio.sleep(0)
    assert (rig.agent.status, rig.agent.pending, rig.log[-1].type) == ("idle", 1, "session/end-seed")
    await rig.run("b")
    assert texts(rig.model.requests[0]) == ["a", "one", "note", "b"]
    assert [payload.turn for payload in rig.payloads(TurnStart)] == [1, 2]
    assert [payload.reason for payload in rig.payloads(RequestHeader)] == ["initial", "resume"]


async def test_F04_a_forked_agent_does_not_inherit_queued_messages(make_rig: Make) -> None:
    parent = make_rig(text("one"))
    await parent.run("a")
    parent.agent.inject(message("the parent's"))
    header = SessionHeader(SessionId("child"), 0, parent_session=SessionId("session-1"), seed_length=len(parent.log))
    child = make_rig(text("two"), seed=tuple(parent.log), header=header)
    assert child.agent.pending == 0
    await child.run("b")
    assert texts(child.model.requests[0]) == ["a", "one", "b"]


async def test_send_can_queue_a_prompt_without_waking(make_rig: Make) -> None:
    rig = make_rig(text("1"), text("2"))
    rig.agent.send(message("quiet"), "next-turn", wakeup=False)
    assert rig.agent.status == "idle"
    await rig.run("loud")
    assert [texts(request)[-1] for request in rig.model.requests] == ["quiet", "loud"]


@pytest.mark.parametrize("limits", [{"max_steps": 0}, {"parallel_cap": 0}, {"parallel_cap": 1.5}])
def test_a_limit_that_is_no_limit_is_refused(limits: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Rig(**limits)


def test_two_sections_of_one_name_are_refused() -> None:
    from harness.loop.prompt import PromptError, Section

    with pytest.raises(PromptError):
        Rig(system=[Section("rules", 1, "a"), Section("rules", 2, "b")])


def test_the_agents_id_is_the_sessions() -> None:
    rig = Rig()
    assert (rig.agent.id, isinstance(rig.agent.log, SessionLog)) == ("session-1", True)


async def test_a_host_that_cancels_the_driver_gets_a_closed_turn_with_cause_disposed(make_rig: Make) -> None:
    answer = Hang(open_text("so far"))
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    rig.agent.followup(message("next"))
    assert rig.agent._activity is not None
    rig.agent._activity.cancel()
    await rig.idle()
    assert rig.reasons == [TurnReason("aborted", cause=Cause("disposed"))]
    assert (rig.agent.pending, answer.closed.is_set()) == (1, True)


async def test_the_route_can_be_read_from_the_log_after_a_switch(make_rig: Make) -> None:
    rig = make_rig(text("1"), text("2"))
    await rig.run("a")
    rig.agent.select_model(RequestConfig("scripted", "model-2"))
    await rig.run("b")
    assert [request.model for request in rig.model.requests] == ["model-1", "model-2"]
    assert [payload.reason for payload in rig.payloads(RequestHeader)] == ["initial", "change"]
