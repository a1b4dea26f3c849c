"""What holds of every request of any script: the log gives it again, and each call in it has its one result."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.log.invariants import Invariants
from harness.log.load import encode_events, encode_header
from harness.log.repair import repair
from harness.log.session_log import SessionLog
from harness.loop.request import build_header, build_request, rebuild_request
from harness.loop.tools import ToolContext, ToolOutput
from harness.model.messages import CallId, Json, Message, MessageId, ModelSource, ToolCallBlock
from lanes.unit.loop.reply_kinds import ANSWERS, FAILURES, reply_of
from lanes.unit.loop.request_checks import check_each_call_has_one_result
from lanes.unit.loop.rig import ROUTE, Rig, output, tool

KINDS = st.sampled_from(ANSWERS) | st.sampled_from(list(FAILURES))
SCRIPTS = st.lists(KINDS, max_size=8)


async def telling(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
    return output("done", context=(f"{context.call_id} says",))


async def ending(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
    return output("that is all", conclude=True)


async def played(script: list[str], prompts: int) -> Rig:
    """A session of these replies, and of plain text once they are used up."""
    kinds, numbers, gate = iter(script), itertools.count(1), asyncio.Event()
    gate.set()
    tools = [
        tool("r", read_only=True),
        tool("s", read_only=True),
        tool("w"),
        tool("n", telling),
        tool("end", ending),
    ]
    rig = Rig(endless=lambda request: reply_of(next(kinds, "text"), next(numbers), gate), tools=tools, max_steps=4)
    rig.expected_failures = None  # an adapter may raise after its last chunk
    for number in range(prompts):
        await rig.run(f"prompt {number}")
    return rig


@settings(max_examples=60, deadline=None, derandomize=True)
@given(script=SCRIPTS, prompts=st.integers(1, 4))
async def test_R01_R02_every_request_is_the_logs_extends_the_one_before_and_answers_each_call_once(
    script: list[str], prompts: int
) -> None:
    rig = await played(script, prompts)
    events = tuple(rig.log)
    requests = rig.model.requests
    assert len(requests) >= prompts
    assert [rebuild_request(events[:length]) for length in rig.asked_at] == requests
    for request in requests:
        check_each_call_has_one_result(request.messages)
    for earlier, later in itertools.pairwise(requests):
        assert later.messages[: len(earlier.messages)] == tuple(earlier.messages)
    rig.check()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(script=SCRIPTS)
async def test_the_same_script_gives_the_same_log_byte_for_byte(script: list[str]) -> None:
    logs = [(await played(script, 2)).log for _ in range(2)]
    one, other = (encode_header(log.header) + encode_events(tuple(log)) for log in logs)
    assert one == other


@settings(max_examples=40, deadline=None, derandomize=True)
@given(script=SCRIPTS, share=st.floats(0, 1))
async def test_P06_a_log_cut_at_any_event_repairs_to_one_whose_next_request_answers_each_call_once(
    script: list[str], share: float
) -> None:
    rig = await played(script, 2)
    kept = round(share * len(rig.log))
    cut = SessionLog(rig.log.header, clock=lambda: 0, check=Invariants())
    for event in rig.log[:kept]:
        cut.restore(event)
    repair(cut)
    request = build_request(build_header(ROUTE, None, ()), cut.messages())
    check_each_call_has_one_result(request.messages)
    for length, sent in zip(rig.asked_at, rig.model.requests, strict=True):
        if length <= kept:
            assert rebuild_request(tuple(cut)[:length]) == sent


def test_the_check_of_requests_itself_finds_a_call_without_its_result() -> None:
    call = ToolCallBlock(CallId("c1"), "r", "{}")
    asked = Message(MessageId("a"), "assistant", (call,), ModelSource("scripted", "model-1"))
    with pytest.raises(AssertionError):
        check_each_call_has_one_result([asked])
