"""Tool calls of a step: what runs side by side, what is answered, and in which order it stands in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

import pytest

from harness.log.events import (
    AssistantMessage,
    Cause,
    StepEnd,
    ToolCall,
    ToolResult,
    TurnReason,
)
from harness.loop.hooks import GateAnswer, Hooks, ToolProposal
from harness.loop.redaction import Secrets
from harness.loop.scope import CancelScope
from harness.loop.tools import PreparedCall, ToolContext, ToolOutput, _body, mode_of_call
from harness.model.messages import CallId, Json, TextBlock
from lanes.unit.loop.rig import Rig, message, output, texts, tool
from lanes.unit.loop.scripted_model import calls, text

Make = Callable[..., Rig]
USER = Cause("user")
ABORTED = TurnReason("aborted", cause=USER)


class Bodies:
    """Tool bodies that note when they begin and end when the test says so."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.peak = 0
        self.ended: list[str] = []
        self._begun = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        self.outputs: dict[str, ToolOutput | Exception] = {}

    async def __call__(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        self.running.append(context.call_id)
        self.peak = max(self.peak, len(self.running))
        self._begun.set()
        await asyncio.sleep(0)  # so that bodies whose gate is open overlap too
        await self._gates.setdefault(context.call_id, asyncio.Event()).wait()
        self.running.remove(context.call_id)
        self.ended.append(context.call_id)
        answer = self.outputs.get(context.call_id, output(f"{context.call_id} done"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _is_free(self, call_id: str) -> bool:
        return call_id in self._gates and self._gates[call_id].is_set()

    def release(self, *call_ids: str) -> None:
        for call_id in call_ids:
            self._gates.setdefault(call_id, asyncio.Event()).set()

    async def until_running(self, *call_ids: str) -> None:
        """Wait until these run and no other; one that may not run and that nobody lets go fails at once."""
        async with asyncio.timeout(20):
            while self.running != list(call_ids):
                held = [call_id for call_id in self.running if call_id not in call_ids and not self._is_free(call_id)]
                assert held == [], f"beside {call_ids}"
                self._begun.clear()
                await self._begun.wait()


def order(rig: Rig) -> list[str]:
    """Calls and results as they stand in the log: `call c1`, `result c1`."""
    found = []
    for event in rig.log:
        if isinstance(event.payload, ToolCall):
            found.append(f"call {event.payload.call_id}")
        elif isinstance(event.payload, ToolResult):
            found.append(f"result {event.payload.message.source.call_id}")  # type: ignore[union-attr]
    return found


def ask(*names: str) -> list[object]:
    """One call of the named tool each, with ids c1, c2, …"""
    return list(calls(*[(f"c{number}", name, "{}") for number, name in enumerate(names, 1)]))


async def test_X01_an_unknown_tool_gets_an_error_result_and_later_calls_still_run(make_rig: Make) -> None:
    rig = make_rig(ask("lok", "look"), text("ok"), tools=[tool("look")])
    await rig.run("hi")
    assert rig.results() == [
        ("c1", True, "UNKNOWN_TOOL", "Error: there is no tool 'lok', did you mean 'look'; tools: look"),
        ("c2", False, None, "done"),
    ]
    assert texts(rig.model.requests[1])[2:] == [said for *_, said in rig.results()]


async def test_X01_a_denied_call_gets_an_error_result_its_body_does_not_run_and_later_calls_do(make_rig: Make) -> None:
    ran: list[str] = []

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        ran.append(context.call_id)
        return output("ran")

    async def deny_first(proposal: ToolProposal) -> GateAnswer:
        return GateAnswer("deny", "not here") if proposal.call.id == "c1" else GateAnswer("allow")

    rig = make_rig(ask("look", "look"), text("ok"), tools=[tool("look", body)], hooks=Hooks(gates=(deny_first,)))
    await rig.run("hi")
    assert rig.results() == [("c1", True, "TOOL_DENIED", "Error: not here"), ("c2", False, None, "ran")]
    assert ran == ["c2"]


@pytest.mark.parametrize(("answerer", "ran"), [(None, False), ("deny", False), ("ask", False), ("allow", True)])
async def test_X01_asking_without_somebody_who_allows_is_a_denial(
    make_rig: Make, answerer: str | None, ran: bool
) -> None:
    async def gate(proposal: ToolProposal) -> GateAnswer:
        return GateAnswer("ask")

    async def allow(proposal: ToolProposal) -> GateAnswer:
        return GateAnswer("allow")

    async def answer(proposal: ToolProposal) -> GateAnswer:
        return GateAnswer(answerer)  # type: ignore[arg-type] # the parameter is one of the verdicts

    hooks = Hooks(gates=(gate, allow), ask=answer if answerer is not None else None)
    rig = make_rig(ask("look"), text("ok"), tools=[tool("look")], hooks=hooks)
    await rig.run("hi")
    assert [is_error for _, is_error, *_ in rig.results()] == [not ran]


async def test_X02_empty_arguments_are_an_empty_object(make_rig: Make) -> None:
    got: list[Mapping[str, Json]] = []

    async def body(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        got.append(arguments)
        return output("ok")

    rig = make_rig(calls(("c1", "look", "")), text("ok"), tools=[tool("look", body)])
    await rig.run("hi")
    assert got == [{}]
    assert rig.payloads(ToolCall)[0].arguments == ""


async def test_X02_arguments_that_are_no_json_reach_the_check_as_text_and_the_body_does_not_run(make_rig: Make) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        raise AssertionError("ran")

    rig = make_rig(calls(("c1", "look", '{"a": ')), text("ok"), tools=[tool("look", body)])
    await rig.run("hi")
    ((_, is_error, code, said),) = rig.results()
    assert (is_error, code, rig.outcomes) == (True, "INVALID_ARGS", ["completed"])
    assert said.startswith("Error: invalid arguments for look: arguments: expected a JSON object, got text that is not")
    assert rig.payloads(ToolCall)[0].arguments == '{"a": '


async def test_X03_parallel_calls_overlap_and_results_keep_the_models_order(make_rig: Make) -> None:
    bodies = Bodies()
    gated: list[str] = []
    reviewed: list[str] = []

    async def gate(proposal: ToolProposal) -> GateAnswer:
        gated.append(proposal.call.id)
        return GateAnswer("allow")

    async def review(proposal: ToolProposal, answer: ToolOutput) -> ToolOutput:
        reviewed.append(proposal.call.id)
        return answer

    hooks = Hooks(gates=(gate,), results=(review,))
    rig = make_rig(ask("r", "r", "r"), text("ok"), tools=[tool("r", bodies, read_only=True)], hooks=hooks)
    rig.agent.followup(message("hi"))
    await bodies.until_running("c1", "c2", "c3")
    bodies.release("c3")
    await asyncio.sleep(0)
    bodies.release("c2")
    await asyncio.sleep(0)
    assert rig.payloads(ToolResult) == []
    bodies.release("c1")
    await rig.idle()
    assert bodies.ended == ["c3", "c2", "c1"]
    assert order(rig) == [f"{what} c{n}" for what in ("call", "result") for n in (1, 2, 3)]
    assert gated == reviewed == ["c1", "c2", "c3"]


async def test_X04_an_exclusive_call_waits_for_the_pool_and_blocks_later_ones(make_rig: Make) -> None:
    bodies = Bodies()
    rig = make_rig(ask("r", "r", "w", "r"), text("ok"), tools=[tool("r", bodies, read_only=True), tool("w", bodies)])
    rig.agent.followup(message("hi"))
    await bodies.until_running("c1", "c2")
    bodies.release("c2")
    await asyncio.sleep(0)
    bodies.release("c1")
    await bodies.until_running("c3")
    bodies.release("c3")
    await bodies.until_running("c4")
    bodies.release("c4")
    await rig.idle()
    assert order(rig) == [
        "call c1", "call c2", "result c1", "result c2", "call c3", "result c3", "call c4", "result c4",
    ]  # fmt: skip


@pytest.mark.parametrize(("cap", "peak"), [(1, 1), (2, 2), (10, 4)])
async def test_X05_the_cap_is_kept_and_the_pool_refilled(make_rig: Make, cap: int, peak: int) -> None:
    bodies = Bodies()
    bodies.release("c1", "c2", "c3", "c4")
    rig = make_rig(ask("r", "r", "r", "r"), text("ok"), tools=[tool("r", bodies, read_only=True)], parallel_cap=cap)
    await rig.run("hi")
    assert bodies.peak == peak
    assert [call_id for call_id, *_ in rig.results()] == ["c1", "c2", "c3", "c4"]


async def test_X05_a_pool_of_two_starts_the_third_as_soon_as_one_ends(make_rig: Make) -> None:
    bodies = Bodies()
    rig = make_rig(ask("r", "r", "r"), text("ok"), tools=[tool("r", bodies, read_only=True)], parallel_cap=2)
    rig.agent.followup(message("hi"))
    await bodies.until_running("c1", "c2")
    bodies.release("c2")
    await bodies.until_running("c1", "c3")
    bodies.release("c1", "c3")
    await rig.idle()


def _raising(arguments: Mapping[str, Json]) -> bool:
    raise ValueError("classifier")


def _truthy(arguments: Mapping[str, Json]) -> bool:
    return 1  # type: ignore[return-value] # the point of the test


@pytest.mark.parametrize("classify", [False, _raising, _truthy], ids=["missing", "raising", "truthy"])
async def test_X06_a_classifier_that_does_not_answer_true_makes_the_call_exclusive(
    make_rig: Make, classify: bool | Callable[[Mapping[str, Json]], bool]
) -> None:
    bodies = Bodies()
    bodies.release("c1", "c2")
    rig = make_rig(ask("r", "r"), text("ok"), tools=[tool("r", bodies, read_only=classify)])
    await rig.run("hi")
    assert bodies.peak == 1
    assert order(rig) == ["call c1", "result c1", "call c2", "result c2"]


async def test_X06_invalid_arguments_and_unknown_tools_are_exclusive(make_rig: Make) -> None:
    bodies = Bodies()
    bodies.release("c1", "c3")
    rig = make_rig(
        calls(("c1", "r", "{}"), ("c2", "r", "[]"), ("c3", "r", "{}"), ("c4", "x", "{}")),
        text("ok"),
        tools=[tool("r", bodies, read_only=True)],
    )
    await rig.run("hi")
    assert order(rig) == [f"{what} c{n}" for n in (1, 2, 3, 4) for what in ("call", "result")]


async def test_X07_a_cancel_waits_for_started_bodies_and_answers_the_unstarted_in_order(make_rig: Make) -> None:
    bodies = Bodies()
    rig = make_rig(ask("r", "r", "w", "r"), tools=[tool("r", bodies, read_only=True), tool("w", bodies)])
    rig.agent.followup(message("hi"))
    await bodies.until_running("c1", "c2")
    rig.agent.cancel(USER)
    bodies.release("c2")
    await asyncio.sleep(0)
    assert rig.agent.status == "running"
    bodies.release("c1")
    await rig.idle()
    assert [(call_id, code) for call_id, _, code, _ in rig.results()] == [
        ("c1", "ABORTED"),
        ("c2", "ABORTED"),
        ("c3", "ABORTED_BEFORE_DISPATCH"),
        ("c4", "ABORTED_BEFORE_DISPATCH"),
    ]
    assert bodies.ended == ["c2", "c1"]
    assert rig.reasons == [ABORTED]


async def test_X07_a_cancel_while_a_gate_thinks_runs_no_body(make_rig: Make) -> None:
    async def gate(proposal: ToolProposal) -> GateAnswer:
        rig.agent.cancel(USER)
        return GateAnswer("allow")

    rig = make_rig(ask("look", "look"), tools=[tool("look")], hooks=Hooks(gates=(gate,)))
    await rig.run("hi")
    assert [code for _, _, code, _ in rig.results()] == ["ABORTED_BEFORE_DISPATCH"] * 2


async def test_X08_a_body_that_fails_by_itself_after_the_abort_keeps_its_error(make_rig: Make) -> None:
    bodies = Bodies()
    bodies.outputs = {"c1": output("Error: mine", is_error=True, code="MINE"), "c2": ValueError("broke")}
    bodies.release("c1", "c2", "c3")

    started: list[str] = []
    all_started = asyncio.Event()

    async def body(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        started.append(context.call_id)
        if len(started) == 3:
            all_started.set()
        await context.cancel.wait()
        return await bodies(arguments, context)

    rig = make_rig(ask("r", "r", "r"), tools=[tool("r", body, read_only=True)])
    rig.agent.followup(message("hi"))
    await all_started.wait()
    rig.agent.cancel(USER)
    await rig.idle()
    assert [(is_error, code, said) for _, is_error, code, said in rig.results()] == [
        (True, "MINE", "Error: mine"),
        (True, None, "Error: ValueError: broke"),
        (True, "ABORTED", "Error: the call was cancelled while it ran; what it did until then stays done"),
    ]


async def test_X09_a_time_limit_that_runs_out_first_is_a_timeout_after_the_body_settled(make_rig: Make) -> None:
    told, settle = asyncio.Event(), asyncio.Event()

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        await context.cancel.wait()
        told.set()
        await settle.wait()
        return output("finished anyway")

    rig = make_rig(ask("slow"), text("ok"), tools=[tool("slow", body, timeout_s=5)])
    rig.agent.followup(message("hi"))
    await told.wait()
    for _ in range(50):  # as many passes of the event loop as an answer needs that waits for nobody
        await asyncio.sleep(0)
    assert rig.payloads(ToolResult) == []
    settle.set()
    await rig.idle()
    assert rig.results() == [("c1", True, "TOOL_TIMEOUT", "Error: slow was stopped after its time limit of 5 s")]
    assert (rig.naps.delays, rig.outcomes) == ([5], ["completed"])


async def test_X09_a_cancel_that_comes_first_stays_an_abort(make_rig: Make) -> None:
    started = asyncio.Event()

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        started.set()
        await context.cancel.wait()
        rig.naps.release.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return output("finished anyway")

    rig = make_rig(ask("slow"), tools=[tool("slow", body, timeout_s=5)])
    rig.naps.holds = True
    rig.agent.followup(message("hi"))
    await started.wait()
    await rig.naps.asleep.wait()
    rig.agent.cancel(USER)
    await rig.idle()
    assert [code for _, _, code, _ in rig.results()] == ["ABORTED"]


async def test_X10_a_failing_scheduler_starts_nothing_new_drains_and_answers_every_call(make_rig: Make) -> None:
    bodies = Bodies()

    async def broken(proposal: ToolProposal) -> GateAnswer:
        if proposal.call.id == "c2":
            bodies.release("c1")
            raise RuntimeError("plug-in reloaded")
        return GateAnswer("allow")

    rig = make_rig(
        ask("r", "r", "r"), text("ok"), tools=[tool("r", bodies, read_only=True)], hooks=Hooks(gates=(broken,))
    )
    rig.expected_failures = 1
    await rig.run("hi")
    assert bodies.ended == ["c1"]
    assert [(call_id, code) for call_id, _, code, _ in rig.results()] == [
        ("c1", "TOOL_OUTCOME_UNKNOWN"),
        ("c2", "TOOL_OUTCOME_UNKNOWN"),
        ("c3", "TOOL_NOT_STARTED"),
    ]
    assert rig.outcomes == ["error"]
    await rig.run("go on")
    assert rig.outcomes == ["error", "completed"]


async def test_X11_missing_and_repeated_call_ids_get_ids_of_their_own_and_are_answered_once(make_rig: Make) -> None:
    rig = make_rig(
        calls(("", "look", "{}"), ("same", "look", "{}"), ("same", "look", "{}")),
        calls(("same", "look", "{}")),
        text("ok"),
        tools=[tool("look")],
    )
    await rig.run("hi")
    assert [call_id for call_id, *_ in rig.results()] == ["call-1-1-1", "same", "call-1-1-3", "call-1-2-1"]


async def test_X11_a_call_without_a_name_gets_one_clear_error(make_rig: Make) -> None:
    rig = make_rig(calls(("c1", "", "{}")), text("ok"), tools=[tool("look")])
    await rig.run("hi")
    assert rig.results() == [("c1", True, "UNKNOWN_TOOL", "Error: the call names no tool; tools: look")]


@pytest.mark.parametrize(
    "answer",
    [
        "just text",
        None,
        ToolOutput([TextBlock("a list")]),  # type: ignore[arg-type] # the point of the test
        ToolOutput(("bare text",)),  # type: ignore[arg-type] # the point of the test
        ToolOutput((TextBlock("x"),), meta={"set": {1, 2}}),  # type: ignore[dict-item] # the point of the test
        ToolOutput((TextBlock("x"),), meta={"nan": float("nan")}),
        ToolOutput((TextBlock(b"bytes"),)),  # type: ignore[arg-type] # the point of the test
        ToolOutput((TextBlock("x"),), context=("",)),
    ],
    ids=["string", "none", "list", "bare-block", "set-meta", "nan-meta", "bytes-text", "empty-context"],
)
async def test_X12_an_output_no_log_can_hold_becomes_an_error_and_touches_nothing(
    make_rig: Make, answer: object
) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        return cast("ToolOutput", answer)

    rig = make_rig(ask("odd"), text("ok"), tools=[tool("odd", body)])
    await rig.run("hi")
    ((_, is_error, code, said),) = rig.results()
    assert (is_error, code, rig.outcomes) == (True, "INVALID_TOOL_OUTPUT", ["completed"])
    assert said.startswith("Error: the tool answered with something that is not an output: ")
    cleaned = make_rig(ask("odd"), text("ok"), tools=[Secrets(("example-key-1",)).tool(tool("odd", body))])
    await cleaned.run("hi")
    assert cleaned.results() == rig.results()


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit("no"), BaseException("base")], ids=repr)
async def test_X01_a_body_that_raises_what_ends_programs_fails_alone_and_the_turn_goes_on(
    make_rig: Make, error: BaseException
) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        raise error

    for odd in (tool("odd", body), Secrets(("example-key-1",)).tool(tool("odd", body))):
        rig = make_rig(calls(("c1", "odd", "{}"), ("c2", "look", "{}")), text("ok"), tools=[odd, tool("look")])
        await rig.run("hi")
        (one, two) = rig.results()
        assert one == ("c1", True, None, f"Error: {type(error).__name__}: {error}")
        assert (two[:2], rig.outcomes) == (("c2", False), ["completed"])


async def test_X01_a_body_interrupted_by_the_person_at_the_keyboard_is_not_held_up() -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        raise KeyboardInterrupt

    odd = tool("odd", body)
    for each in (odd, Secrets(("example-key-1",)).tool(odd)):
        with pytest.raises(KeyboardInterrupt):
            await _body(PreparedCall(CallId("c"), each, {}), CancelScope())


def test_X06_a_classifier_that_ends_programs_is_exclusive() -> None:
    def classify(arguments: object) -> bool:
        raise SystemExit

    prepared = PreparedCall(CallId("c"), tool("odd", read_only=classify), {})
    assert mode_of_call(prepared) == "exclusive"


async def test_an_ordinary_exception_of_a_body_carries_its_text_and_no_code(make_rig: Make) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        raise FileNotFoundError("notes.txt")

    rig = make_rig(ask("read"), text("ok"), tools=[tool("read", body)])
    await rig.run("hi")
    assert rig.results() == [("c1", True, None, "Error: FileNotFoundError: notes.txt")]


async def test_a_body_cancelled_from_within_is_an_error_and_the_turn_goes_on(make_rig: Make) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        raise asyncio.CancelledError

    rig = make_rig(ask("read"), text("ok"), tools=[tool("read", body)])
    await rig.run("hi")
    assert rig.results() == [("c1", True, None, "Error: the call was cancelled from within")]
    assert rig.outcomes == ["completed"]


async def test_a_result_hook_may_replace_or_block_an_output(make_rig: Make) -> None:
    async def block(proposal: ToolProposal, answer: ToolOutput) -> ToolOutput:
        return output("Error: blocked", is_error=True, code="BLOCKED")

    rig = make_rig(ask("look"), text("ok"), tools=[tool("look")], hooks=Hooks(results=(block,)))
    await rig.run("hi")
    assert rig.results() == [("c1", True, "BLOCKED", "Error: blocked")]


async def test_D3_a_call_that_cannot_be_made_durable_is_not_run_and_the_turn_goes_on(make_rig: Make) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        raise AssertionError("ran")

    rig = make_rig(ask("look"), text("ok"), tools=[tool("look", body)])
    rig.writer.is_broken = lambda log: log.last(ToolCall) is not None and log.last(ToolResult) is None
    await rig.run("hi")
    ((_, is_error, code, said),) = rig.results()
    assert (is_error, code, rig.outcomes) == (True, "LOG_WRITE_FAILED", ["completed"])
    assert "was not run" in said


async def test_D3_calls_that_start_together_are_durable_before_any_body_runs(make_rig: Make) -> None:
    seen: list[tuple[int, bool]] = []

    async def body(arguments: object, context: object) -> ToolOutput:
        seen.append((len(rig.payloads(ToolCall)), rig.writer.durable == len(rig.log)))
        return output("ok")

    rig = make_rig(ask("r", "r", "r"), text("ok"), tools=[tool("r", body, read_only=True)])
    await rig.run("hi")
    assert seen == [(3, True)] * 3


async def test_B4_no_path_out_of_a_step_leaves_a_call_open(make_rig: Make) -> None:
    """Whatever raises after the assistant message: the step is closed with every call answered."""
    rig = make_rig(ask("look", "look"), text("ok"), tools=[tool("look")])
    rig.expected_failures = 1
    numbers = iter(range(100))

    def broken_ids(prefix: str) -> str:
        if rig.log.last(ToolCall) is not None and rig.log.last(StepEnd) is None:
            raise OSError("out of entropy")
        return f"{prefix}-{next(numbers)}"

    object.__setattr__(rig.agent._driver._parts, "ids", broken_ids)
    await rig.run("hi")
    assert rig.outcomes == ["error"]
    assert [code for _, _, code, _ in rig.results()] == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]
    await rig.run("go on")
    assert len(rig.payloads(AssistantMessage)) == 2


async def test_a_host_that_cancels_the_driver_while_a_gate_thinks_tells_the_running_bodies(make_rig: Make) -> None:
    thinking = asyncio.Event()

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        await context.cancel.wait()
        return output("told")

    async def gate(proposal: ToolProposal) -> GateAnswer:
        if proposal.call.id == "c2":
            thinking.set()
            await asyncio.Event().wait()
        return GateAnswer("allow")

    rig = make_rig(ask("r", "r"), tools=[tool("r", body, read_only=True)], hooks=Hooks(gates=(gate,)))
    rig.agent.followup(message("hi"))
    await thinking.wait()
    assert rig.agent._activity is not None
    rig.agent._activity.cancel()
    await rig.idle()
    assert rig.reasons == [TurnReason("aborted", cause=Cause("disposed"))]
    assert [code for _, _, code, _ in rig.results()] == ["TOOL_OUTCOME_UNKNOWN"] * 2


async def test_a_host_that_cancels_the_driver_while_tools_run_waits_for_them(make_rig: Make) -> None:
    ended: list[str] = []
    started = asyncio.Event()

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        started.set()
        await context.cancel.wait()
        ended.append(context.call_id)
        return output("late")

    rig = make_rig(ask("slow", "slow"), tools=[tool("slow", body)])
    rig.agent.followup(message("hi"))
    await started.wait()
    assert rig.agent._activity is not None
    rig.agent._activity.cancel()
    await rig.idle()
    assert ended == ["c1"]
    assert rig.reasons == [TurnReason("aborted", cause=Cause("disposed"))]
    assert [code for _, _, code, _ in rig.results()] == ["ABORTED", "ABORTED_BEFORE_DISPATCH"]
