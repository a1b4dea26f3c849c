"""Requests, retries and streams: what is asked again, what is kept, and that the log can rebuild every request."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from harness.errors import ProviderError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Cause,
    LlmRetry,
    LlmRetryStarted,
    Replace,
    RequestConfig,
    RequestContext,
    RequestHeader,
    StepStart,
    ToolCall,
    TurnStart,
    UserMessage,
)
from harness.log.interval import fold_usage
from harness.loop.decide import Enter
from harness.loop.hooks import Hooks, Overflow, StepProposal, TurnStopping
from harness.loop.prompt import Section
from harness.loop.request import rebuild_request
from harness.loop.retry import RetryPolicy
from harness.loop.tools import ToolOutput
from harness.model.chunks import BlockStart, Chunk, Failure, Finish, TextDelta, Usage, UsageChunk
from harness.model.messages import ModelSource, text_of
from harness.wire.openai_chat import encode_body, encode_request
from lanes.unit.loop.rig import ROUTE, Rig, message, output, texts, tool
from lanes.unit.loop.scripted_model import Gated, Throw, calls, failing, open_text, reasoning, text

Make = Callable[..., Rig]


async def test_R01_every_request_rebuilds_byte_for_byte_from_the_log_before_it(make_rig: Make) -> None:
    """Two turns with whatever may tempt a wrapper to add a line: tools that fail, a retry, changing facts."""
    hours = itertools.count(1)
    rig = make_rig(
        calls(("c1", "lok", "{}"), ("c2", "look", "")), failing("SERVER", *open_text("ha")), reasoning("hm", "one"),
        text("two"),
        tools=[tool("look")], system=[Section("rules", 1, "be brief")], volatile=lambda: f"hour {next(hours)}",
    )  # fmt: skip
    await rig.run("a", "b")
    rebuilt = [rebuild_request(rig.log[:length]) for length in rig.asked_at]
    sent, again = ([encode_body(encode_request(each)) for each in found] for found in (rig.model.requests, rebuilt))
    assert (len(sent), sent) == (4, again)


async def test_R02_each_request_extends_the_one_before_it(make_rig: Make) -> None:
    hours = itertools.count(1)
    rig = make_rig(
        calls(("c1", "look", "{}"), said="let me see"), text("done"), reasoning("hm", "two"), text("three"),
        tools=[tool("look")], volatile=lambda: f"hour {next(hours)}",
    )  # fmt: skip
    await rig.run("a")
    await rig.run("b", "c")
    requests = rig.model.requests
    for earlier, later in itertools.pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert len(later.messages) > len(earlier.messages)


async def test_R03_the_header_is_logged_once_while_it_stays_and_whole_when_it_changes(make_rig: Make) -> None:
    rules = ["be brief"]
    rig = make_rig(
        text("1"), text("2"), text("3"), tools=[tool("look")], system=[Section("rules", 1, lambda: rules[0])]
    )
    await rig.run("a")
    rig.tools["look"] = tool("look")  # equal, and another object
    await rig.run("b")
    rules[0] = "be long"
    await rig.run("c")
    assert [(payload.reason, payload.header.system) for payload in rig.payloads(RequestHeader)] == [
        ("initial", "be brief"),
        ("change", "be long"),
    ]
    assert len(rig.payloads(RequestContext)) == 1


async def test_R03_a_tool_that_gives_way_to_another_of_its_name_changes_the_header(make_rig: Make) -> None:
    rig = make_rig(text("1"), text("2"), text("3"), tools=[tool("look")])
    await rig.run("a")
    rig.tools["look"] = tool("look", parameters={"type": "object", "required": ["path"]})
    await rig.run("b")
    await rig.run("c")
    found = [(payload.reason, payload.header.tools[0].parameters) for payload in rig.payloads(RequestHeader)]
    assert found == [("initial", {"type": "object"}), ("change", {"type": "object", "required": ("path",)})]


async def test_R03_the_first_request_after_resume_logs_the_header_even_when_it_is_the_same(make_rig: Make) -> None:
    first = make_rig(text("1"))
    await first.run("a")
    rig = make_rig(text("2"), seed=tuple(first.log))
    await rig.run("b")
    one, two = rig.payloads(RequestHeader)
    assert (one.header == two.header, two.reason) == (True, "resume")
    assert len(rig.payloads(RequestContext)) == 1


async def test_R03_tools_stand_in_one_order_whoever_registered_first(make_rig: Make) -> None:
    tools = [tool(name) for name in ("b", "ä", "a", "B")]
    one = make_rig(text("1"), tools=tools)
    two = make_rig(text("1"), tools=reversed(tools))
    await one.run("a")
    await two.run("a")
    assert one.model.requests[0].tools == two.model.requests[0].tools
    assert [schema.name for schema in one.model.requests[0].tools] == ["B", "a", "b", "ä"]


async def test_R04_a_switch_during_assembly_applies_to_the_next_step_prompt_and_route_together(make_rig: Make) -> None:
    def switching() -> str:
        if not rig.model.requests:
            rig.agent.select_model(RequestConfig("scripted", "model-2"))
        return "you are {{model}}"

    rig = make_rig(calls(("c1", "look", "{}")), text("ok"), system=[Section("who", 1, switching)], tools=[tool("look")])
    await rig.run("hi")
    assert [(request.model, request.system) for request in rig.model.requests] == [
        ("model-1", "you are model-1"),
        ("model-2", "you are model-2"),
    ]


@pytest.mark.parametrize("opened", [TurnStart, StepStart], ids=["turn", "step"])
async def test_R04_a_switch_whose_step_is_cancelled_before_it_asks_holds_for_the_next(
    make_rig: Make, opened: type[object]
) -> None:
    rig = make_rig(text("1"), text("2"), text("3"), system=[Section("who", 1, "you are {{model}}")])
    await rig.run("one")
    rig.agent.select_model(RequestConfig("scripted", "model-2"))
    rig.observe(opened, lambda: rig.agent.cancel(Cause("user")))
    await rig.run("cancelled")
    await rig.run("two")
    await rig.run("three")
    assert [(request.model, request.system) for request in rig.model.requests] == [
        ("model-1", "you are model-1"),
        ("model-2", "you are model-2"),
        ("model-2", "you are model-2"),
    ]


async def test_R04_a_switch_holds_though_the_pre_step_of_its_step_was_cancelled_and_a_hook_failed(
    make_rig: Make,
) -> None:
    trouble = ["cancel", "raise"]

    async def relieve(proposal: StepProposal) -> Enter:
        if rig.model.requests and trouble and trouble[0] == "cancel":
            trouble.pop(0)
            rig.agent.cancel(Cause("user"))
        return Enter(proposal.messages)

    async def change(config: RequestConfig) -> RequestConfig:
        if rig.model.requests and trouble == ["raise"]:
            trouble.pop()
            raise ValueError("no")
        return config

    rig = make_rig(text("1"), text("2"), hooks=Hooks(pre_step=(relieve,), request=(change,)))
    rig.expected_failures = None
    await rig.run("one")
    rig.agent.select_model(RequestConfig("scripted", "model-2"))
    await rig.run("cancelled")
    await rig.run("failed")
    await rig.run("two")
    assert [request.model for request in rig.model.requests] == ["model-1", "model-2"]


async def test_R04_a_request_hook_may_replace_options_and_its_change_stays_in_the_log(make_rig: Make) -> None:
    async def warmer(config: RequestConfig) -> RequestConfig:
        return RequestConfig(config.provider, config.model, temperature=(config.temperature or 0.0) + 0.5)

    rig = make_rig(text("1"), text("2"), hooks=Hooks(request=(warmer,)))
    await rig.run("a", "b")
    assert [request.temperature for request in rig.model.requests] == [0.5, 1.0]


async def test_R04_a_stored_effort_is_reused_for_the_identical_model_only(make_rig: Make) -> None:
    first = make_rig(text("1"), route=RequestConfig("scripted", "model-1", reasoning_effort="high"))
    await first.run("a")
    seed = tuple(first.log)
    same = make_rig(text("2"), text("3"), seed=seed)
    other = make_rig(text("2"), seed=seed, route=RequestConfig("scripted", "model-2"))
    await same.run("b")
    same.agent.select_model(ROUTE)
    await same.run("c")
    await other.run("b")
    assert [request.reasoning_effort for request in same.model.requests] == ["high", None]
    assert [request.reasoning_effort for request in other.model.requests] == [None]


async def test_R05_two_retries_then_failure_with_doubling_waits(make_rig: Make) -> None:
    rig = make_rig(failing("SERVER"), failing("TIMEOUT"), failing("TRANSPORT"))
    await rig.run("hi")
    assert [(p.retry, p.delay_ms, p.max_retries, p.failure.code) for p in rig.payloads(LlmRetry)] == [
        (1, 500, 2, "SERVER"),
        (2, 1000, 2, "TIMEOUT"),
    ]
    assert rig.naps.delays == [0.5, 1.0]
    failure = rig.reasons[0].failure
    assert failure is not None
    assert (rig.outcomes, failure.code) == (["error"], "TRANSPORT")


async def test_R05_the_budget_is_counted_for_each_step_anew(make_rig: Make) -> None:
    rig = make_rig(
        failing("SERVER"), failing("SERVER"), calls(("c1", "look", "{}")),
        failing("SERVER"), failing("SERVER"), text("ok"),
        tools=[tool("look")],
    )  # fmt: skip
    await rig.run("hi")
    assert [(p.step, p.retry) for p in rig.payloads(LlmRetry)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert rig.outcomes == ["completed"]


async def test_R05_the_budget_is_counted_for_each_provider_anew(make_rig: Make) -> None:
    async def second_provider_after_two(config: RequestConfig) -> RequestConfig:
        return RequestConfig("other", config.model) if len(rig.model.requests) >= 2 else config

    rig = make_rig(*[failing("SERVER")] * 4, text("ok"), hooks=Hooks(request=(second_provider_after_two,)))
    await rig.run("hi")
    assert [(p.provider, p.retry) for p in rig.payloads(LlmRetry)] == [
        ("scripted", 1), ("scripted", 2), ("other", 1), ("other", 2),
    ]  # fmt: skip


async def test_R05_a_retry_after_up_to_the_cap_is_obeyed_and_above_it_given_up(make_rig: Make) -> None:
    obeyed = make_rig(failing("RATE_LIMIT", status=429, retry_after_ms=7321), text("ok"))
    await obeyed.run("hi")
    assert obeyed.naps.delays == [7.321]
    given_up = make_rig(failing("RATE_LIMIT", status=429, retry_after_ms=10_001))
    await given_up.run("hi")
    assert (given_up.naps.delays, given_up.outcomes) == ([], ["error"])


async def test_R05_always_goes_on_beyond_the_budget(make_rig: Make) -> None:
    rig = make_rig(*[failing("SERVER")] * 6, text("ok"), retry=RetryPolicy(mode="always"))
    await rig.run("hi")
    assert (rig.outcomes, rig.naps.delays) == (["completed"], [0.5, 1, 2, 4, 8, 10])
    assert {payload.max_retries for payload in rig.payloads(LlmRetry)} == {None}


@pytest.mark.parametrize("before", [(), open_text("half of ")], ids=["before-first-chunk", "after-chunks"])
async def test_R06_a_retry_stays_in_its_step_and_failed_chunks_stay_uncited(
    make_rig: Make, before: list[Chunk]
) -> None:
    rig = make_rig(failing("TRANSPORT", *before), text("whole"))
    await rig.run("hi")
    assert (len(rig.payloads(TurnStart)), len(rig.payloads(StepStart))) == (1, 1)
    assert rig.shape[5:] == [
        "request/header", "request/context", "assistant/chunk", "llm/retry", "llm/retry-started",
        "assistant/chunk", "assistant/message", "step/end", "turn/end",
    ]  # fmt: skip
    started = rig.log.last(LlmRetryStarted)
    committed = rig.log.last(AssistantMessage)
    assert started is not None
    assert committed is not None
    assert committed.source_event_seqs == tuple(range(started.seq + 1, committed.seq))
    assert rig.model.requests[0] == rig.model.requests[1]
    assert rig.trace == ["running", "idle"]


async def test_R06_a_failure_after_a_tool_round_does_not_run_the_tool_again(make_rig: Make) -> None:
    rig = make_rig(
        calls(("c1", "look", "{}")), failing("TRANSPORT", *open_text("ha")), text("ok"), tools=[tool("look")]
    )
    await rig.run("hi")
    assert len(rig.payloads(ToolCall)) == 1


async def test_R06_usage_of_a_failed_attempt_is_still_counted(make_rig: Make) -> None:
    rig = make_rig(failing("TRANSPORT", UsageChunk(Usage(10, 2))), text("ok", usage=Usage(10, 5)), check_chunks=True)
    await rig.run("hi")
    assert fold_usage(rig.log) == Usage(20, 7)


async def test_R07_an_exception_of_a_request_hook_is_not_retried(make_rig: Make) -> None:
    async def broken(config: RequestConfig) -> RequestConfig:
        raise ConnectionError("not the provider's")

    rig = make_rig(hooks=Hooks(request=(broken,)))
    rig.expected_failures = 1
    await rig.run("hi")
    assert (rig.outcomes, rig.payloads(LlmRetry), rig.model.requests) == (["error"], [], [])
    assert rig.shape[-2:] == ["step/end", "turn/end"]


async def test_R07_a_chunk_the_log_refuses_is_not_retried(make_rig: Make) -> None:
    rig = make_rig([UsageChunk(Usage(-1, 0)), Finish("stop")])
    rig.expected_failures = 1
    await rig.run("hi")
    assert (rig.outcomes, rig.payloads(LlmRetry)) == (["error"], [])


async def test_R07_a_stream_out_of_order_is_not_retried_and_says_which_chunk(make_rig: Make) -> None:
    rig = make_rig([TextDelta(0, "no start"), Finish("stop")])
    rig.expected_failures = 1
    await rig.run("hi")
    failure = rig.reasons[0].failure
    assert failure is not None
    assert "chunk 0, TextDelta: no text block is open under index 0 [BAD_CHUNK]" in failure.message
    assert rig.payloads(LlmRetry) == []


@pytest.mark.parametrize(
    "said",
    [
        failing("EMPTY_RESPONSE"),
        [Finish("stop")],
        [BlockStart(0, "text"), *text("")[2:]],
        [Finish("tool-calls")],
    ],
    ids=["reported", "stop", "empty-block", "tool-calls"],
)
async def test_R08_an_empty_response_is_retried_and_never_completes_a_turn(make_rig: Make, said: list[Chunk]) -> None:
    rig = make_rig(said, text("ok"))
    await rig.run("a")
    assert [payload.failure.code for payload in rig.payloads(LlmRetry)] == ["EMPTY_RESPONSE"]
    rig.model.add(said, said, said)
    await rig.run("b")
    assert rig.outcomes == ["completed", "error"]


async def test_R08_reasoning_alone_is_a_success(make_rig: Make) -> None:
    rig = make_rig([*reasoning("hm", "x")[:3], Finish("stop")])
    await rig.run("hi")
    assert rig.outcomes == ["completed"]


async def test_R09_an_overflow_is_tried_again_only_when_the_surface_changed(make_rig: Make) -> None:
    async def nothing(overflow: Overflow) -> None:
        return None

    rig = make_rig(failing("CONTEXT_WINDOW_EXCEEDED", status=400), hooks=Hooks(shrink=nothing))
    await rig.run("hi")
    assert (len(rig.model.requests), rig.outcomes, rig.payloads(LlmRetry)) == (1, ["error"], [])


async def test_R09_a_shrunken_surface_gets_one_more_try_in_the_same_step(make_rig: Make) -> None:
    shrunk: list[tuple[int, int]] = []

    async def shrink(overflow: Overflow) -> None:
        shrunk.append((overflow.turn, overflow.step))
        surface = rig.log.surface()
        rig.log.append(
            UserMessage(message("in short", f"summary-{len(rig.log)}")),
            surface_op=Replace(surface[0], surface[-1]),
            source_event_seqs=surface,
        )

    rig = make_rig(
        text("long answer"),
        failing("CONTEXT_WINDOW_EXCEEDED"),
        text("ok"),
        failing("CONTEXT_WINDOW_EXCEEDED"),
        failing("CONTEXT_WINDOW_EXCEEDED"),
        hooks=Hooks(shrink=shrink),
    )
    await rig.run("a", "b", "c")
    assert texts(rig.model.requests[2]) == ["in short"]
    assert shrunk == [(2, 1), (3, 1)]
    assert rig.outcomes == ["completed", "completed", "error"]
    assert len(rig.payloads(StepStart)) == 3


async def test_S11_a_stream_without_a_finish_is_a_failure_that_is_retried(make_rig: Make) -> None:
    rig = make_rig(open_text("half"), text("whole"))
    await rig.run("hi")
    assert [payload.failure.code for payload in rig.payloads(LlmRetry)] == ["STREAM_CLOSED"]
    assert rig.payloads(AssistantChunk)[2].chunk.failure.code == "STREAM_CLOSED"
    assert text_of(rig.payloads(AssistantMessage)[0].message) == "whole"


async def test_S11_nothing_after_a_finish_is_read(make_rig: Make) -> None:
    rig = make_rig([*text("ok"), TextDelta(0, "more")])
    await rig.run("hi")
    assert [payload.chunk for payload in rig.payloads(AssistantChunk)] == text("ok")


class _HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ValueError("boom"), Failure("ValueError: boom", "UNKNOWN")),
        (_HostileError(), Failure("_HostileError", "UNKNOWN")),
        (ProviderError("no key", code="AUTH", status=401, request_id="r1"), Failure("no key", "AUTH", 401, None, "r1")),
        (asyncio.CancelledError(), Failure("CancelledError", "UNKNOWN")),
    ],
    ids=["plain", "hostile", "provider", "cancelled-within"],
)
async def test_S08_whatever_an_adapter_raises_becomes_one_terminal_finish(
    make_rig: Make, error: BaseException, failure: Failure
) -> None:
    rig = make_rig(Throw(error, open_text("ha")))
    await rig.run("hi")
    assert [payload.chunk for payload in rig.payloads(AssistantChunk)] == [*open_text("ha"), Finish("error", failure)]
    assert rig.reasons[0].failure == failure


async def test_S08_an_adapter_that_says_aborted_without_being_asked_ends_in_error_and_is_not_retried(
    make_rig: Make,
) -> None:
    rig = make_rig([Finish("aborted", Failure("gone", "ABORTED"))], retry=RetryPolicy(codes=frozenset({"ABORTED"})))
    await rig.run("hi")
    assert (rig.outcomes, rig.payloads(LlmRetry)) == (["error"], [])


async def test_S08_an_adapter_that_fails_before_its_stream_exists_is_a_failure_like_any_other(make_rig: Make) -> None:
    class Broken:
        def stream(self, request: object, cancel: object) -> AsyncIterator[Chunk]:
            raise ProviderError("connection refused", code="TRANSPORT")

    rig = make_rig(text("ok"))
    scripted = rig.agent._driver._parts.model
    object.__setattr__(rig.agent._driver._parts, "model", Broken())
    rig.observe(LlmRetry, lambda: object.__setattr__(rig.agent._driver._parts, "model", scripted))
    await rig.run("hi")
    assert rig.outcomes == ["completed"]


async def test_S07_a_slow_log_slows_the_adapter_and_loses_nothing(make_rig: Make) -> None:
    pieces = [f"{number} " for number in range(500)]
    rig = make_rig(text(*pieces))
    await rig.run("hi")
    assert text_of(rig.payloads(AssistantMessage)[0].message) == "".join(pieces)
    assert len(rig.payloads(AssistantChunk)) == 503


async def test_a_chunk_is_in_the_log_as_soon_as_it_arrived(make_rig: Make) -> None:
    answer = Gated(open_text("now"), text("now")[2:])
    rig = make_rig(answer)
    rig.agent.followup(message("hi"))
    await rig.until(lambda: len(rig.payloads(AssistantChunk)) == 2)
    assert answer.reached.is_set()
    answer.gate.set()
    await rig.idle()


async def test_the_message_names_its_provider_model_and_replay_state(make_rig: Make) -> None:
    rig = make_rig([*text("ok")[:-1], Finish("stop", replay_state={"id": "r1", "entries": ["e"]})])
    await rig.run("hi")
    source = rig.payloads(AssistantMessage)[0].message.source
    assert source == ModelSource("scripted", "model-1", {"id": "r1", "entries": ("e",)})


async def test_context_is_logged_with_the_window_and_again_when_it_changes(make_rig: Make) -> None:
    windows = iter([1000, 1000, 2000])
    rig = make_rig(text("1"), text("2"), text("3"), context_window=lambda config: next(windows))
    await rig.run("a", "b", "c")
    assert [payload.context_window for payload in rig.payloads(RequestContext)] == [1000, 2000]


async def test_B4_a_request_that_would_hold_an_open_call_is_never_sent(make_rig: Make) -> None:
    """The request builder is the last fence: a surface somebody cut between a call and its result ends in error."""

    async def cut(stopping: TurnStopping) -> None:
        result = next(event for event in rig.log if event.type == "tool/result")
        rig.log.append(
            UserMessage(message("cut", "cut")),
            surface_op=Replace(result.seq, result.seq),
            source_event_seqs=(result.seq,),
        )

    rig = make_rig(calls(("c1", "look", "{}")), text("ok"), tools=[tool("look")], hooks=Hooks(stopping=(cut,)))
    await rig.run("a")
    rig.expected_failures = 1
    await rig.run("b")
    failure = rig.reasons[1].failure
    assert failure is not None
    assert "call 'c1' has no result before this message" in failure.message
    assert len(rig.model.requests) == 2


async def test_a_cleanup_that_fails_after_a_whole_answer_is_reported_and_the_answer_stands(make_rig: Make) -> None:
    class Untidy:
        def __init__(self) -> None:
            self.chunks = iter(text("ok"))

        def stream(self, request: object, cancel: object) -> Untidy:
            return self

        def __aiter__(self) -> Untidy:
            return self

        async def __anext__(self) -> Chunk:
            return next(self.chunks)

        async def aclose(self) -> None:
            raise OSError("socket already gone")

    rig = make_rig()
    object.__setattr__(rig.agent._driver._parts, "model", Untidy())
    rig.expected_failures = 1
    await rig.run("hi")
    assert rig.outcomes == ["completed"]


async def test_a_tool_may_be_added_between_steps(make_rig: Make) -> None:
    async def grow(arguments: object, context: object) -> ToolOutput:
        rig.tools["second"] = tool("second")
        return output("grown")

    rig = make_rig(calls(("c1", "first", "{}")), calls(("c2", "second", "{}")), text("ok"), tools=[tool("first", grow)])
    await rig.run("hi")
    assert [len(request.tools) for request in rig.model.requests] == [1, 2, 2]
    assert [is_error for _, is_error, *_ in rig.results()] == [False, False]
