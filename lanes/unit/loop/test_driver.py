"""The turn: golden sequences, how turns end, and what a failure leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    RequestConfig,
    RequestHeader,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.inbox import Fate, fate_of
from harness.loop.decide import Enter, Reject
from harness.loop.hooks import Hooks, StepProposal, TurnStopping
from harness.loop.prompt import Section
from harness.model.chunks import Failure, Finish
from harness.model.messages import MessageId, text_of
from lanes.unit.loop.rig import Rig, message, output, texts, tool
from lanes.unit.loop.scripted_model import Gated, calls, failing, open_text, text

Make = Callable[..., Rig]

SIMPLE = [
    "inbox+",
    "turn/start",
    "inbox-",
    "step/start",
    "user/message",
    "request/header",
    "request/context",
    "assistant/chunk",
    "assistant/message",
    "step/end",
    "turn/end",
]


async def test_T01_a_simple_turn_writes_the_golden_sequence(make_rig: Make) -> None:
    rig = make_rig(text("hel", "lo"))
    await rig.run("hi")
    assert rig.shape == SIMPLE
    assert rig.reasons == [TurnReason("completed")]


async def test_T01_a_tool_round_writes_the_golden_sequence(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", "{}")), text("done"), tools=[tool("look")])
    await rig.run("hi")
    assert rig.shape == [
        *SIMPLE[:-2],
        "tool/call",
        "tool/result",
        "step/end",
        "step/start",
        "assistant/chunk",
        "assistant/message",
        "step/end",
        "turn/end",
    ]


async def test_T01_everything_is_durable_before_each_next_thing_that_counts(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", "{}")), text("done"), tools=[tool("look")])
    await rig.run("hi")
    flushed_after = [rig.shape_at(length) for length in rig.writer.flushed_at]
    assert flushed_after == [
        "inbox-",  # D1: the claim, before assembly and pre-step
        "request/context",  # D2: the request's envelope, before the adapter
        "tool/call",  # D3: the call, before its body
        "step/end",  # D1 of the second step: the results
        "step/start",  # D2 of the second step, whose header has not changed
        "turn/end",  # D6: the end, before idle
    ]


async def test_T01_turns_are_numbered_on_and_the_second_logs_no_header(make_rig: Make) -> None:
    rig = make_rig(text("one"), text("two"))
    await rig.run("a")
    await rig.run("b")
    assert [payload.turn for payload in rig.payloads(TurnStart)] == [1, 2]
    assert rig.shape == [*SIMPLE, *(kind for kind in SIMPLE if not kind.startswith("request/"))]


async def test_T02_a_rejected_first_step_ends_blocked_and_the_input_is_gone(make_rig: Make) -> None:
    async def refuse(proposal: StepProposal) -> Reject:
        return Reject()

    rig = make_rig(hooks=Hooks(pre_step=(refuse,)))
    await rig.run("hi")
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "turn/end"]
    assert rig.reasons == [TurnReason("blocked")]
    assert (rig.agent.pending, rig.model.requests) == (0, [])


async def test_T02_a_rejection_later_ends_blocked_and_keeps_the_earlier_steps(make_rig: Make) -> None:
    async def refuse_second(proposal: StepProposal) -> Enter | Reject:
        return Reject() if proposal.step == 2 else Enter(proposal.messages)

    rig = make_rig(calls(("c1", "look", "{}")), tools=[tool("look")], hooks=Hooks(pre_step=(refuse_second,)))
    await rig.run("hi")
    assert rig.outcomes == ["blocked"]
    assert len(rig.payloads(StepStart)) == 1
    assert rig.results() == [("c1", False, None, "done")]


async def test_T03_a_first_batch_rewritten_to_nothing_completes_without_a_step(make_rig: Make) -> None:
    async def empty(proposal: StepProposal) -> Enter:
        return Enter(())

    rig = make_rig(hooks=Hooks(pre_step=(empty,)))
    await rig.run("hi")
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "turn/end"]
    assert rig.outcomes == ["completed"]


async def test_T03_pre_step_hooks_rewrite_one_after_the_other_and_only_the_last_batch_is_logged(make_rig: Make) -> None:
    async def add(proposal: StepProposal) -> Enter:
        return Enter((*proposal.messages, message("added")))

    async def drop_first(proposal: StepProposal) -> Enter:
        return Enter(proposal.messages[1:])

    rig = make_rig(text("ok"), hooks=Hooks(pre_step=(add, drop_first)))
    await rig.run("hi")
    assert [text_of(payload.message) for payload in rig.payloads(UserMessage)] == ["added"]


async def test_T04_steering_from_a_turn_stopping_observer_adds_a_step_to_the_same_turn(make_rig: Make) -> None:
    asked: list[int] = []

    async def object_once(stopping: TurnStopping) -> None:
        asked.append(len(rig.model.requests))
        if len(asked) == 1:
            await asyncio.sleep(0)
            stopping.agent.steer(message("not yet"))

    rig = make_rig(text("one"), text("two"), hooks=Hooks(stopping=(object_once,)))
    await rig.run("hi")
    assert asked == [1, 2]
    assert len(rig.payloads(TurnStart)) == 1
    assert texts(rig.model.requests[1]) == ["hi", "one", "not yet"]


async def test_T05_a_raising_turn_stopping_observer_ends_in_error_and_the_next_prompt_works(make_rig: Make) -> None:
    async def fail(stopping: TurnStopping) -> None:
        if stopping.turn == 1:
            raise ValueError("no")

    rig = make_rig(text("one"), text("two"), hooks=Hooks(stopping=(fail,)))
    rig.expected_failures = 1
    await rig.run("a")
    await rig.run("b")
    assert rig.outcomes == ["error", "completed"]
    assert rig.reasons[0].failure is not None
    assert (rig.reasons[0].failure.code, rig.reasons[0].failure.message) == ("UNKNOWN", "ValueError: no")


async def test_T05_a_raising_pre_step_ends_in_error_and_its_input_waits_at_the_head(make_rig: Make) -> None:
    async def fail_first(proposal: StepProposal) -> Enter:
        if proposal.turn == 1:
            raise ValueError("no") from KeyError("inner")
        return Enter(proposal.messages)

    rig = make_rig(text("one"), text("two"), hooks=Hooks(pre_step=(fail_first,)))
    rig.expected_failures = 1
    rig.agent.followup(message("a"))
    await rig.idle()
    assert rig.shape == ["inbox+", "turn/start", "inbox-", "inbox+", "turn/end"]
    assert rig.reasons[0].failure is not None
    assert rig.reasons[0].failure.message == "ValueError: no caused by KeyError: 'inner'"
    assert [m.id for m in rig.agent.inbox.next_turn] == ["a"]
    assert rig.statuses[-1].pending == 1
    assert fate_of(rig.log, MessageId("a")) == Fate("pending")
    await rig.run("b")
    assert [texts(request)[-1] for request in rig.model.requests] == [
        "a",
        rig.model.requests[1].messages[-1].content[0].text,
    ]
    assert rig.outcomes == ["error", "completed", "completed"]


async def test_T05_a_prompt_that_cannot_be_filled_in_names_section_and_variable_and_the_loop_survives(
    make_rig: Make,
) -> None:
    texts_of_rules = iter(["use {{modle}}", "use {{model}}"])
    rig = make_rig(text("ok"), system=[Section("rules", 1, lambda: next(texts_of_rules))])
    rig.expected_failures = 1
    await rig.run("hi")
    failure = rig.reasons[0].failure
    assert failure is not None
    assert "section 'rules'" in failure.message
    assert "'modle' is unknown; did you mean 'model'?" in failure.message
    assert rig.agent.wake()
    await rig.idle()
    assert rig.outcomes == ["error", "completed"]
    assert rig.model.requests[0].system == "use model-1"


async def test_T05_a_missing_model_ends_in_error_that_says_exactly_that(make_rig: Make) -> None:
    rig = make_rig(route=RequestConfig("scripted", ""))
    rig.expected_failures = 1
    await rig.run("hi")
    failure = rig.reasons[0].failure
    assert failure is not None
    assert "no model is set" in failure.message
    assert rig.model.requests == []


async def test_T06_max_tokens_stays_the_outcome_when_a_later_step_completes_and_not_in_the_next_turn(
    make_rig: Make,
) -> None:
    async def once(stopping: TurnStopping) -> None:
        if len(rig.model.requests) == 1:
            stopping.agent.steer(message("go on"))

    rig = make_rig(text("half", kind="max-tokens"), text("rest"), text("new"), hooks=Hooks(stopping=(once,)))
    await rig.run("a")
    await rig.run("b")
    assert rig.outcomes == ["max-tokens", "completed"]


async def test_T07_a_tool_call_cut_at_the_ceiling_is_neither_run_nor_kept_and_the_text_is(make_rig: Make) -> None:
    ran: list[object] = []

    async def body(arguments: object, context: object) -> object:
        ran.append(arguments)
        return output("no")

    rig = make_rig(calls(("c1", "look", '{"a": 1'), said="wait", kind="max-tokens"), tools=[tool("look", body)])
    await rig.run("hi")
    (committed,) = rig.payloads(AssistantMessage)
    assert [type(block).__name__ for block in committed.message.content] == ["TextBlock"]
    assert (ran, rig.outcomes, "tool/call" in rig.shape) == ([], ["max-tokens"], False)


async def test_T07_an_answer_that_was_only_a_cut_call_is_logged_empty_and_sent_to_nobody(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", '{"a": 1'), kind="max-tokens"), text("again"))
    await rig.run("a")
    await rig.run("b")
    assert len(rig.payloads(AssistantMessage)) == 2
    assert [m.role for m in rig.model.requests[1].messages] == ["user", "user"]


async def test_T08_a_concluding_tool_ends_the_turn_after_one_request(make_rig: Make) -> None:
    async def body(arguments: object, context: object) -> object:
        return output("bye", conclude=True)

    rig = make_rig(calls(("c1", "finish", "{}")), tools=[tool("finish", body)])
    await rig.run("hi")
    assert rig.outcomes == ["completed"]
    assert rig.results() == [("c1", False, None, "bye")]


async def test_T08_steering_that_waits_still_runs_after_a_concluding_tool(make_rig: Make) -> None:
    async def body(arguments: object, context: object) -> object:
        rig.agent.steer(message("one more"))
        return output("bye", conclude=True)

    rig = make_rig(calls(("c1", "finish", "{}")), text("ok"), tools=[tool("finish", body)])
    await rig.run("hi")
    assert len(rig.payloads(TurnStart)) == 1
    assert texts(rig.model.requests[1])[-1] == "one more"


async def test_T11_the_step_budget_ends_the_turn_with_every_call_answered(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", "{}")), calls(("c2", "look", "{}")), tools=[tool("look")], max_steps=2)
    await rig.run("hi")
    assert rig.outcomes == ["step-limit"]
    assert [call_id for call_id, *_ in rig.results()] == ["c1", "c2"]


async def test_T11_a_turn_that_ends_within_its_budget_completes(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", "{}")), text("ok"), tools=[tool("look")], max_steps=2)
    await rig.run("hi")
    assert rig.outcomes == ["completed"]


async def test_T11_a_turn_out_of_time_stops_its_stream_and_says_step_limit(make_rig: Make) -> None:
    stalled = Gated(open_text("so far"), [])
    rig = make_rig(stalled, turn_timeout_s=30.0)
    rig.naps.holds = True
    rig.agent.followup(message("hi"))
    await stalled.reached.wait()
    await rig.until_event(AssistantChunk)
    rig.naps.release.set()
    await rig.idle()
    assert (rig.outcomes, rig.naps.delays) == (["step-limit"], [30.0])
    assert rig.payloads(AssistantMessage) == []


async def test_T11_a_turn_that_ends_in_time_leaves_no_timer_behind(make_rig: Make) -> None:
    rig = make_rig(text("ok"), turn_timeout_s=30.0)
    rig.naps.holds = True
    await rig.run("a")
    await rig.naps.woken.wait()
    assert (rig.naps.release.is_set(), rig.outcomes) == (False, ["completed"])


async def test_T01_injected_input_while_a_step_runs_costs_another_request_in_the_same_turn(make_rig: Make) -> None:
    answer = Gated(open_text("hel"), text("hello")[2:])
    rig = make_rig(answer, text("two"))
    rig.agent.followup(message("hi"))
    await answer.reached.wait()
    rig.agent.inject(message("note"))
    answer.gate.set()
    await rig.idle()
    assert len(rig.payloads(TurnStart)) == 1
    assert texts(rig.model.requests[1]) == ["hi", "hello", "note"]


async def test_T01_a_failed_provider_call_ends_in_its_own_failure(make_rig: Make) -> None:
    rig = make_rig(failing("AUTH", status=401))
    await rig.run("hi")
    failure = rig.reasons[0].failure
    assert failure is not None
    assert (failure.code, failure.status) == ("AUTH", 401)
    assert rig.shape[-3:] == ["assistant/chunk", "step/end", "turn/end"]


async def test_P10_a_flush_that_fails_before_the_request_means_no_request_and_no_retry(make_rig: Make) -> None:
    rig = make_rig()
    rig.expected_failures = 1
    rig.writer.is_broken = lambda log: log.last(RequestHeader) is not None and log.last(TurnEnd) is None
    await rig.run("hi")
    assert rig.model.requests == []
    assert rig.outcomes == ["error"]
    assert rig.reasons[0].failure == Failure("session.jsonl: the disk is full", "LOG_WRITE_FAILED")
    assert rig.shape[-2:] == ["step/end", "turn/end"]


async def test_P10_a_flush_that_fails_before_the_step_ends_in_error_and_the_input_waits(make_rig: Make) -> None:
    rig = make_rig()
    rig.expected_failures = 1
    rig.writer.is_broken = lambda log: log.last(TurnEnd) is None
    await rig.run("hi")
    assert (rig.outcomes, rig.agent.pending) == (["error"], 1)


async def test_D6_an_end_that_cannot_be_made_durable_is_reported_and_the_agent_still_goes_idle(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    rig.expected_failures = 1
    rig.writer.is_broken = lambda log: log.last(TurnEnd) is not None
    await rig.run("hi")
    assert (rig.outcomes, rig.trace) == (["completed"], ["running", "idle"])


async def test_D6_idle_is_announced_once_the_end_is_durable(make_rig: Make) -> None:
    rig = make_rig(text("ok"))
    durable: list[tuple[str, int, int]] = []
    rig.agent.observe_status(lambda change: durable.append((change.status, rig.writer.durable, len(rig.log))))
    await rig.run("hi")
    assert durable[-1] == ("idle", len(rig.log), len(rig.log))


async def test_volatile_facts_reach_the_model_as_a_snapshot_only_when_they_changed(make_rig: Make) -> None:
    facts = iter(["it is noon", "it is noon", None, None])
    rig = make_rig(text("1"), text("2"), text("3"), text("4"), volatile=lambda: next(facts))
    for prompt in "abcd":
        await rig.run(prompt)
    assert texts(rig.model.requests[3]) == ["it is noon", "a", "1", "b", "2", "(none)", "c", "3", "d"]


async def test_a_turn_whose_end_could_not_be_appended_is_reported_and_closed_before_the_next(make_rig: Make) -> None:
    rig = make_rig(text("one"), text("two"))
    rig.expected_failures = 1
    check = rig.log._check
    armed = [True]

    def refuse_once(log: object, event: object) -> None:
        if armed and isinstance(event.payload, TurnEnd):  # type: ignore[attr-defined]
            armed.clear()
            raise OSError("veto")
        assert check is not None
        check(log, event)  # type: ignore[arg-type]

    rig.log._check = refuse_once  # type: ignore[assignment]
    await rig.run("a")
    assert rig.shape[-1] == "step/end"
    await rig.run("b")
    assert rig.outcomes == ["error", "completed"]


async def test_a_step_whose_end_could_not_be_appended_is_closed_before_the_next_turn(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "look", "{}")), text("two"), tools=[tool("look")])
    rig.expected_failures = None
    check = rig.log._check
    broken = [True]

    def refuse(log: object, event: object) -> None:
        if broken and rig.log.last(AssistantMessage) is not None:
            raise OSError("veto")
        assert check is not None
        check(log, event)  # type: ignore[arg-type]

    rig.log._check = refuse  # type: ignore[assignment]
    await rig.run("a")
    assert (rig.shape[-1], rig.agent.status) == ("assistant/message", "idle")
    broken.clear()
    await rig.run("b")
    assert [code for *_, code, _ in rig.results()] == ["TOOL_NOT_STARTED"]
    assert rig.outcomes == ["error", "completed"]


async def test_chunks_carry_the_whole_stream_in_order(make_rig: Make) -> None:
    rig = make_rig(text("a", "b", "c"))
    await rig.run("hi")
    assert [payload.chunk for payload in rig.payloads(AssistantChunk)] == text("a", "b", "c")
    (event,) = [event for event in rig.log if isinstance(event.payload, AssistantMessage)]
    cited = [rig.log[seq].payload for seq in event.source_event_seqs or ()]
    assert [payload.chunk for payload in cited if isinstance(payload, AssistantChunk)][-1] == Finish("stop")
    assert rig.log.last(StepEnd) is not None
