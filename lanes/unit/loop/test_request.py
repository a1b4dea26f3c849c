"""Headers, requests and the pairing of calls with results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import InternalError
from harness.log.events import Header, RequestConfig, RequestContext
from harness.loop.request import (
    build_header,
    build_request,
    check_pairing,
    context_change,
    header_reason,
    rebuild_request,
    seed_config,
    stored_effort,
)
from harness.model.call import ModelRequest, ToolSchema
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
)
from lanes.unit.loop.rig import message

CONFIG = RequestConfig("p", "m", 0.5, 100, ("stop",), "low")
TOOL = ToolSchema("look", "looks", {"type": "object"})


def asks(*call_ids: str) -> Message:
    blocks = tuple(ToolCallBlock(CallId(call_id), "look", "{}") for call_id in call_ids)
    return Message(MessageId("a"), "assistant", blocks, ModelSource("p", "m"))


def answers(call_id: str) -> Message:
    block = ToolResultBlock(CallId(call_id), (TextBlock("ok"),))
    return Message(MessageId("r"), "user", (block,), ToolSource(CallId(call_id)))


def test_an_empty_system_text_and_an_empty_tool_list_are_absent() -> None:
    assert build_header(CONFIG, "", []) == Header(CONFIG, None, ())


@pytest.mark.parametrize(
    ("config", "missing"), [(RequestConfig("", "m"), "provider"), (RequestConfig("p", ""), "model")]
)
def test_a_missing_provider_or_model_is_named(config: RequestConfig, missing: str) -> None:
    with pytest.raises(InternalError, match=f"no {missing} is set"):
        build_header(config, None, [])


def test_a_request_is_its_header_and_the_messages() -> None:
    header = Header(CONFIG, "be brief", (TOOL,))
    assert build_request(header, (message("hi"),)) == ModelRequest(
        "p", "m", (message("hi"),), "be brief", (TOOL,), 0.5, 100, ("stop",), "low"
    )


def test_a_log_without_a_header_rebuilds_no_request() -> None:
    with pytest.raises(InternalError, match="no request header is logged"):
        rebuild_request(())


@pytest.mark.parametrize(
    ("previous", "current", "is_first", "expected"),
    [
        (None, Header(CONFIG), True, "initial"),
        (None, Header(CONFIG), False, "initial"),
        (Header(CONFIG), Header(CONFIG), True, "resume"),
        (Header(CONFIG), Header(CONFIG, "new"), True, "resume"),
        (Header(CONFIG), Header(CONFIG), False, None),
        (Header(CONFIG, None, (TOOL,)), Header(CONFIG, None, (replace(TOOL),)), False, None),
        (Header(CONFIG), Header(CONFIG, "new"), False, "change"),
        (Header(CONFIG, None, (TOOL,)), Header(CONFIG), False, "change"),
    ],
)
def test_R03_a_header_is_logged_when_it_is_first_resumed_or_different(
    previous: Header | None, current: Header, is_first: bool, expected: str | None
) -> None:
    assert header_reason(previous, current, is_first=is_first) == expected


def test_a_context_is_logged_when_route_or_capacity_changes() -> None:
    context = RequestContext("p", "m", 1000)
    assert context_change(context, RequestContext("p", "m", 1000)) is None
    assert context_change(context, RequestContext("p", "m", 2000)) == RequestContext("p", "m", 2000)
    assert context_change(None, context) == context


def test_options_start_from_the_logged_ones_unless_the_route_was_selected_anew() -> None:
    selected, logged = RequestConfig("p", "m"), RequestConfig("p", "m", 0.9)
    assert seed_config(selected, logged, is_fresh=False) == logged
    assert seed_config(selected, logged, is_fresh=True) == selected
    assert seed_config(selected, None, is_fresh=False) == selected


@pytest.mark.parametrize(
    ("selected", "previous", "effort"),
    [
        (RequestConfig("p", "m"), CONFIG, "low"),
        (RequestConfig("p", "m", reasoning_effort="high"), CONFIG, "high"),
        (RequestConfig("p", "other"), CONFIG, None),
        (RequestConfig("other", "m"), CONFIG, None),
        (RequestConfig("p", "m"), RequestConfig("p", "m"), None),
        (RequestConfig("p", "m"), None, None),
    ],
)
def test_R04_a_stored_effort_counts_for_the_identical_model_only(
    selected: RequestConfig, previous: RequestConfig | None, effort: str | None
) -> None:
    assert stored_effort(selected, previous).reasoning_effort == effort


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [message("hi")],
        [message("hi"), asks("a", "b"), answers("b"), answers("a"), message("go on")],
        [asks("a"), answers("a"), asks("a"), answers("a")],
    ],
    ids=["empty", "plain", "any-order-of-results", "same-id-in-another-step"],
)
def test_B4_paired_messages_pass(messages: list[Message]) -> None:
    check_pairing(messages)


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ([asks("a")], r"messages\[1\]: call 'a' has no result"),
        ([asks("a"), message("hi"), answers("a")], r"messages\[1\]: call 'a' has no result before this message"),
        ([asks("a", "b"), answers("a"), asks("c")], r"messages\[2\]: call 'b' has no result before this message"),
        ([asks("a"), answers("a"), answers("a")], r"messages\[2\]: a result for call 'a', which is not open"),
        ([answers("a")], r"messages\[0\]: a result for call 'a', which is not open"),
        ([asks("a", "a"), answers("a")], r"messages\[0\]: call id 'a' stands twice"),
    ],
    ids=["no-result", "late-result", "one-of-two", "twice", "orphan", "double-id"],
)
def test_B4_a_call_not_answered_exactly_once_is_refused(messages: list[Message], what: str) -> None:
    with pytest.raises(InternalError, match=what):
        check_pairing(messages)


def test_B4_messages_of_an_earlier_request_are_not_looked_at_again_and_places_stay_right() -> None:
    check_pairing([asks("a"), message("hi")], 2)
    with pytest.raises(InternalError, match=r"messages\[3\]: call 'b' has no result"):
        check_pairing([message("hi"), message("ho"), asks("b")], 2)
