"""Cancel in every window of a turn: what stays, what goes, and what runs next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Cause,
    LlmRetry,
    LlmRetryStarted,
    StepEnd,
    StepStart,
    ToolCall,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.loop.agent import CancelOutcome
from harness.loop.decide import Enter
from harness.loop.hooks import Hooks, StepProposal, TurnStopping
from harness.loop.prompt import Section
from harness.loop.tools import ToolContext, ToolOutput
from harness.model.messages import MessageId, text_of
from lanes.unit.loop.rig import Rig, message, output, texts, tool
from lanes.unit.loop.scripted_model import Gated, Hang, LateHang, calls, failing, open_text, text

Make = Callable[..., Rig]
USER = Cause("user")
ABORTED = TurnReason("aborted", cause=USER)


async def test_C01_an_idle_cancel_leaves_no_trace_and_the_next_prompt_runs(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    assert rig.agent.cancel(USER) == CancelOutcome(None, ())
    assert len(rig.log) == 0
    await rig.run("hi")
    assert rig.outcomes == ["completed"]


async def test_C01_a_cancel_after_a_turn_does_not_reach_the_next_one(make_rig: Make) -> None:
    rig = make_rig(text("one"), text("two"))
    await rig.run("a")
    rig.agent.cancel(USER)
    await rig.run("b")
    assert rig.outcomes == ["completed", "completed"]


async def test_C01_an_idle_cancel_discards_parked_items_without_a_turn(make_rig: Make) -> None:
    rig = make_rig()
    rig.agent.inject(message("note"))
    rig.agent.send(message("prompt"), "next-turn", wakeup=False)
    assert rig.agent.cancel(USER) == CancelOutcome(None, (MessageId("note"), MessageId("prompt")))
    assert (rig.shape, rig.agent.pending) == (["inbox+", "inbox+", "inbox-", "inbox-"], 0)


async def test_C02_a_cancel_right_after_followup_means_no_turn_at_all(make_rig: Make) -> None:
    rig = make_rig()
    rig.agent.followup(message("hi"))
    assert rig.agent.status == "running"
    assert rig.agent.cancel(USER) == CancelOutcome(None, (MessageId("hi"),))
    await rig.idle()
    assert (rig.shape, rig.trace) == (["inbox+", "inbox-"], ["running", "idle"])


async def test_C02_a_prompt_sent_after_that_cancel_in_the_same_tick_runs(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.agent.followup(message("dropped"))
    rig.agent.cancel(USER)
    rig.agent.followup(message("kept"))
    await rig.idle()
    assert (texts(rig.model.requests[0]), rig.outcomes, rig.trace) == (["kept"], ["completed"], ["running", "idle"])


async def test_C03_a_cancel_during_assembly_ends_a_turn_without_step_and_its_input_is_lost(make_rig: Make) -> None:
    assembling, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        assembling.set()
        await go_on.wait()
        return "rules"

    async def unasked(proposal: StepProposal) -> Enter:
        raise AssertionError("asked after the cancel")

    rig = make_rig(system=[Section("rules", 1, slow)], hooks=Hooks(pre_step=(unasked,)))
    rig.agent.followup(message("hi"))
    await assembling.wait()
    assert rig.agent.cancel(USER, keep_inbox=True).turn == 1
    go_on.set()
    await rig.idle()
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "turn/end"]
    assert (rig.reasons, rig.agent.pending) == ([ABORTED], 0)


@pytest.mark.parametrize("answer", ["enters", "raises"])
async def test_C03_a_cancel_during_pre_step_ends_a_turn_without_step_whatever_the_hook_answers(
    make_rig: Make, answer: str
) -> None:
    asking, go_on = asyncio.Event(), asyncio.Event()

    async def slow(proposal: StepProposal) -> Enter:
        asking.set()
        await go_on.wait()
        if answer == "raises":
            raise ValueError("cancelled under me")
        return Enter(proposal.messages)

    rig = make_rig(hooks=Hooks(pre_step=(slow,)))
    rig.expected_failures = 1 if answer == "raises" else 0
    rig.agent.followup(message("hi"))
    await asking.wait()
    rig.agent.cancel(USER)
    go_on.set()
    await rig.idle()
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "turn/end"]
    assert (rig.reasons, rig.agent.pending) == ([ABORTED], 0)


async def test_C03_a_cancel_during_the_first_flush_asks_nobody(make_rig: Make) -> None:
    rig = make_rig(system=[Section("rules", 1, lambda: pytest.fail("assembled"))])
    rig.writer.on_flush = lambda: rig.agent.cancel(USER) if rig.log.last(TurnEnd) is None else None
    await rig.run("hi")
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "turn/end"]


@pytest.mark.parametrize("kind", [StepStart, UserMessage])
async def test_C03_a_cancel_from_an_observer_of_the_steps_start_closes_the_step_and_calls_nobody(
    make_rig: Make, kind: type[object]
) -> None:
    rig = make_rig()
    rig.observe(kind, lambda: rig.agent.cancel(USER))
    await rig.run("hi")
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "step/start", "user/message", "step/end", "turn/end"]
    assert rig.reasons == [ABORTED]


async def test_C03_a_cancel_during_the_flush_before_the_request_calls_nobody(make_rig: Make) -> None:
    rig = make_rig()
    rig.writer.on_flush = lambda: rig.agent.cancel(USER) if rig.log.last(StepStart) is not None else None
    await rig.run("hi")
    assert rig.shape[-3:] == ["request/context", "step/end", "turn/end"]


async def test_C04_a_cancel_mid_stream_keeps_the_chunks_and_commits_no_message(make_rig: Make) -> None:
    answer = Hang(open_text("so", " far"))
    rig = make_rig(answer, text("ok"))
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    await rig.until(lambda: len(rig.payloads(AssistantChunk)) == 3)
    rig.agent.cancel(USER)
    await rig.idle()
    assert rig.shape[-3:] == ["assistant/chunk", "step/end", "turn/end"]
    assert [payload.chunk for payload in rig.payloads(AssistantChunk)] == open_text("so", " far")
    assert (rig.reasons, rig.payloads(AssistantMessage)) == ([ABORTED], [])
    await rig.run("again")
    assert texts(rig.model.requests[1]) == ["hi", "again"]


async def test_C04_a_cancel_before_the_first_chunk_closes_the_stream_and_waits_for_its_cleanup(make_rig: Make) -> None:
    answer = LateHang()
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    rig.agent.cancel(USER)
    await answer.cancelled.wait()
    assert (rig.agent.status, rig.reasons) == ("running", [])
    answer.release.set()
    await rig.idle()
    assert (rig.reasons, "assistant/chunk" in rig.shape) == ([ABORTED], False)


async def test_C04_a_cancel_from_an_observer_of_a_chunk_appends_no_further_chunk(make_rig: Make) -> None:
    rig = make_rig(text("a", "b", "c"))
    rig.observe(AssistantChunk, lambda: rig.agent.cancel(USER))
    await rig.run("hi")
    assert [payload.chunk for payload in rig.payloads(AssistantChunk)] == text("a")[:1]
    assert rig.reasons == [ABORTED]


async def test_C05_the_first_cause_stands_over_a_later_cancel_and_over_disposal(make_rig: Make) -> None:
    answer = LateHang()
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    assert rig.agent.cancel(Cause("parent")).turn == 1
    assert rig.agent.cancel(Cause("hook", "late")).turn is None
    disposing = asyncio.ensure_future(rig.agent.dispose())
    answer.release.set()
    await disposing
    assert rig.reasons == [TurnReason("aborted", cause=Cause("parent"))]


async def test_C06_a_cancel_clears_the_queue_next_step_first_and_says_what_it_discarded(make_rig: Make) -> None:
    answer = Hang()
    rig = make_rig(answer)
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    rig.agent.followup(message("b"))
    rig.agent.steer(message("c"))
    assert rig.agent.cancel(USER) == CancelOutcome(1, (MessageId("c"), MessageId("b")))
    await rig.idle()
    assert rig.outcomes == ["aborted"]


async def test_C06_keep_inbox_parks_the_queue_and_it_runs_later_in_order(make_rig: Make) -> None:
    answer = Hang()
    rig = make_rig(answer, text("b"), text("c"), text("d"))
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    rig.agent.followup(message("b"))
    rig.agent.followup(message("c"))
    logged = len(rig.log)
    assert rig.agent.cancel(USER, keep_inbox=True) == CancelOutcome(1, ())
    assert len(rig.log) == logged
    await rig.idle()
    assert (rig.outcomes, rig.statuses[-1].pending) == (["aborted"], 2)
    await rig.run("d")
    assert [texts(request)[-1] for request in rig.model.requests] == ["a", "b", "c", "d"]


async def test_C07_a_wake_between_abort_and_idle_runs_once_after_the_aborted_turns_end(make_rig: Make) -> None:
    answer = LateHang()
    rig = make_rig(answer, text("ok"))
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    rig.agent.cancel(USER)
    rig.agent.steer(message("b"))
    assert [item.id for item in rig.agent.inbox.next_turn] == ["b"]
    answer.release.set()
    await rig.idle()
    assert (rig.outcomes, rig.trace) == (["aborted", "completed"], ["running", "idle"])
    ends = [event.seq for event in rig.log if isinstance(event.payload, TurnEnd)]
    starts = [event.seq for event in rig.log if isinstance(event.payload, TurnStart)]
    assert starts[0] < ends[0] < starts[1] < ends[1]


@pytest.mark.parametrize("how", ["removed", "cleared"])
async def test_C07_a_wake_that_is_taken_back_meanwhile_opens_no_empty_turn(make_rig: Make, how: str) -> None:
    answer = LateHang()
    rig = make_rig(answer)
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    rig.agent.cancel(USER)
    rig.agent.followup(message("b"))
    if how == "removed":
        assert rig.agent.cancel_message(MessageId("b"))
    else:
        assert rig.agent.cancel(USER).discarded == ("b",)
    answer.release.set()
    await rig.idle()
    assert rig.outcomes == ["aborted"]


async def test_C07_an_inject_between_abort_and_idle_opens_no_turn(make_rig: Make) -> None:
    answer = LateHang()
    rig = make_rig(answer)
    rig.agent.followup(message("a"))
    await answer.reached.wait()
    rig.agent.cancel(USER)
    rig.agent.inject(message("note"))
    answer.release.set()
    await rig.idle()
    assert (rig.outcomes, rig.agent.pending) == (["aborted"], 1)


async def test_C09_a_cancel_cuts_the_back_off_and_no_attempt_follows(make_rig: Make) -> None:
    rig = make_rig(failing("SERVER"))
    rig.naps.holds = True
    rig.agent.followup(message("hi"))
    await rig.naps.asleep.wait()
    rig.agent.cancel(USER)
    for _ in range(50):
        await asyncio.sleep(0)
    assert (rig.naps.woken.is_set(), rig.naps.release.is_set()) == (True, False)
    await rig.idle()
    assert rig.shape[-3:] == ["llm/retry", "step/end", "turn/end"]
    assert (rig.reasons, len(rig.model.requests)) == ([ABORTED], 1)


async def test_C09_a_cancel_beats_a_retry_that_was_already_decided(make_rig: Make) -> None:
    rig = make_rig(failing("SERVER"))
    rig.observe(LlmRetry, lambda: rig.agent.cancel(USER))
    await rig.run("hi")
    assert (rig.payloads(LlmRetryStarted), len(rig.model.requests)) == ([], 1)
    assert rig.reasons == [ABORTED]


async def test_C09_a_cancel_during_recovery_beats_its_answer(make_rig: Make) -> None:
    async def shrink(overflow: object) -> None:
        rig.agent.cancel(USER)

    rig = make_rig(failing("CONTEXT_WINDOW_EXCEEDED"), hooks=Hooks(shrink=shrink))
    await rig.run("hi")
    assert (rig.reasons, len(rig.model.requests)) == ([ABORTED], 1)


async def test_C10_a_cancel_between_admission_and_enqueue_never_produces_a_request(make_rig: Make) -> None:
    """The admission of a surface: the last check and the enqueue stand in one tick, so a cancel is before or after."""
    rig = make_rig()
    admitted = asyncio.Event()
    is_cancelled = False

    async def admit() -> None:
        await admitted.wait()
        if not is_cancelled:
            rig.agent.followup(message("hi"))

    def cancel() -> None:
        nonlocal is_cancelled
        is_cancelled = True
        rig.agent.cancel(USER)

    for order in ("before", "after"):
        is_cancelled = False
        admitted.clear()
        admission = asyncio.ensure_future(admit())
        await asyncio.sleep(0)
        if order == "before":
            cancel()
            admitted.set()
            await admission
        else:
            admitted.set()
            await admission
            cancel()
        await rig.idle()
    assert rig.model.requests == []


async def test_C11_cancelling_one_queued_message_leaves_the_active_turn_alone(make_rig: Make) -> None:
    answer = Gated(open_text("o"), text("one")[2:])
    rig = make_rig(answer, text("three"))
    for name in ("a", "b", "c"):
        rig.agent.followup(message(name))
    await answer.reached.wait()
    assert rig.agent.cancel_message(MessageId("b"))
    answer.gate.set()
    await rig.idle()
    assert rig.outcomes == ["completed", "completed"]
    assert [text_of(payload.message) for payload in rig.payloads(UserMessage)] == ["a", "c"]


async def test_C12_a_cancel_between_the_message_and_its_calls_answers_them_all_before_dispatch(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", "{}"), ("c2", "look", "{}")), tools=[tool("look")])
    rig.observe(AssistantMessage, lambda: rig.agent.cancel(USER))
    await rig.run("hi")
    after = rig.shape[rig.shape.index("assistant/message") + 1 :]
    assert after == ["tool/call", "tool/result", "tool/call", "tool/result", "step/end", "turn/end"]
    assert [(call_id, code) for call_id, _, code, _ in rig.results()] == [
        ("c1", "ABORTED_BEFORE_DISPATCH"),
        ("c2", "ABORTED_BEFORE_DISPATCH"),
    ]
    assert rig.reasons == [ABORTED]


async def test_C12_a_cancel_in_the_observers_of_the_turns_end_aborts_without_another_step(make_rig: Make) -> None:
    async def object_and_cancel(stopping: TurnStopping) -> None:
        stopping.agent.steer(message("more"))
        stopping.agent.cancel(USER)

    rig = make_rig(text("one"), hooks=Hooks(stopping=(object_and_cancel,)))
    await rig.run("hi")
    assert (rig.reasons, rig.agent.pending) == ([ABORTED], 0)


async def test_C12_a_cancel_after_the_last_check_aborts_nothing_and_clears_the_queue(make_rig: Make) -> None:
    rig = make_rig(text("one"))

    def queue_and_cancel() -> None:
        rig.agent.followup(message("b"))
        assert rig.agent.cancel(USER) == CancelOutcome(None, (MessageId("b"),))

    rig.observe(TurnEnd, queue_and_cancel)
    await rig.run("a")
    assert (rig.outcomes, rig.agent.pending) == (["completed"], 0)


async def test_C12_a_cancel_at_the_end_of_a_step_that_owes_nothing_is_still_an_abort(make_rig: Make) -> None:
    rig = make_rig(text("one"))
    rig.observe(StepEnd, lambda: rig.agent.cancel(USER))
    await rig.run("a")
    assert rig.reasons == [ABORTED]


async def test_P11_a_cancel_during_the_flush_of_a_call_skips_its_body(make_rig: Make) -> None:
    ran: list[str] = []

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        ran.append(context.call_id)
        return output("no")

    rig = make_rig(calls(("c1", "look", "{}")), tools=[tool("look", body)])
    rig.writer.on_flush = lambda: rig.agent.cancel(USER) if rig.log.last(ToolCall) is not None else None
    await rig.run("hi")
    assert (ran, [code for *_, code, _ in rig.results()]) == ([], ["ABORTED_BEFORE_DISPATCH"])
