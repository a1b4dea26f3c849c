"""What may enter a log and what may not."""

from __future__ import annotations

import dataclasses

import pytest

from harness.errors import InvalidEventError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Cause,
    CompactionSummary,
    EndSeed,
    Event,
    ForeignPayload,
    Header,
    InboxSpliced,
    RemovedItem,
    Replace,
    RequestConfig,
    RequestHeader,
    SessionHeader,
    SubagentDescriptor,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.validate import CHECKS, check_header
from harness.model.chunks import BlockEnd, Failure, Finish, TextDelta, Usage
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ImageBlock,
    Message,
    MessageId,
    ModelSource,
    ReasoningBlock,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

CYCLE: dict[str, object] = {}
CYCLE["self"] = CYCLE

UNWRITABLE = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus_zero": -0.0,
    "cycle": CYCLE,
    "set": {1},
    "bytes": b"x",
    "object": object(),
    "ellipsis": ...,
    "integer_past_2_53": 2**53,
    "key_that_is_no_string": {1: "a"},
    "integer_subclass": __import__("enum").IntEnum("Color", "RED").RED,
}


@pytest.mark.parametrize("value", UNWRITABLE.values(), ids=UNWRITABLE.keys())
@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
def test_L02_a_value_json_cannot_hold_is_refused_and_the_log_is_unchanged(make, value, nested):
    log = make.log()
    log.append(EndSeed())
    before = log.since(0)
    with pytest.raises(InvalidEventError):
        log.append(make.result(meta={"value": [value]} if nested else {"value": value}))
    assert (log.since(0), log.surface()) == (before, ())


def test_L02_the_refusal_names_the_place(make):
    with pytest.raises(InvalidEventError) as caught:
        make.log().append(make.result(meta={"rows": [1, {"speed": float("nan")}]}))
    assert str(caught.value) == "tool/result.meta.rows[1].speed: number nan does not survive JSON [INVALID_EVENT]"


def _message(**changes: object) -> Message:
    whole = Message(MessageId("m1"), "user", (TextBlock("hi"),), UserSource())
    return dataclasses.replace(whole, **changes)


REFUSED = {
    "empty_message_id": UserMessage(_message(id="")),
    "content_list": UserMessage(_message(content=[TextBlock("hi")])),
    "text_not_a_string": UserMessage(_message(content=(TextBlock(7),))),
    "text_a_string_subclass": UserMessage(_message(content=(TextBlock(type("Name", (str,), {})("x")),))),
    "user_message_of_assistant": UserMessage(_message(role="assistant")),
    "user_message_from_model": UserMessage(_message(source=ModelSource("p", "m"))),
    "user_message_with_result": UserMessage(_message(content=(ToolResultBlock(CallId("c"), ()),))),
    "turn_zero": TurnStart(0),
    "turn_true": TurnStart(True),
    "reason_unknown": TurnEnd(1, TurnReason("finished")),
    "reason_aborted_without_cause": TurnEnd(1, TurnReason("aborted")),
    "reason_completed_with_cause": TurnEnd(1, TurnReason("completed", cause=Cause("user"))),
    "reason_user_cause_with_reason": TurnEnd(1, TurnReason("aborted", cause=Cause("user", "why"))),
    "reason_error_without_failure": TurnEnd(1, TurnReason("error")),
    "failure_status_600": TurnEnd(1, TurnReason("error", failure=Failure("m", "C", 600))),
    "failure_retry_zero": TurnEnd(1, TurnReason("error", failure=Failure("m", "C", None, 0))),
    "chunk_index_negative": AssistantChunk(1, 1, TextDelta(-1, "x")),
    "finish_error_without_failure": AssistantChunk(1, 1, Finish("error")),
    "finish_stop_with_failure": AssistantChunk(1, 1, Finish("stop", Failure("m", "C"))),
    "assistant_from_user_source": AssistantMessage(1, 1, _message(role="assistant")),
    "assistant_call_without_id": AssistantMessage(
        1, 1, Message(MessageId("a"), "assistant", (ToolCallBlock(CallId(""), "n", ""),), ModelSource("p", "m"))
    ),
    "assistant_call_id_twice": AssistantMessage(
        1,
        1,
        Message(MessageId("a"), "assistant", (ToolCallBlock(CallId("c"), "n", ""),) * 2, ModelSource("p", "m")),
    ),
    "usage_negative": AssistantMessage(
        1, 1, Message(MessageId("a"), "assistant", (), ModelSource("p", "m")), Usage(-1, 0)
    ),
    "splice_of_nothing": InboxSpliced("next-turn", 0),
    "splice_negative_start": InboxSpliced("next-turn", -1, inserted=(_message(),)),
    "splice_unknown_list": InboxSpliced("later", 0, inserted=(_message(),)),
    "splice_claim_called_canceled": InboxSpliced(
        "next-turn", 0, (RemovedItem(MessageId("m"), "claimed", 1),), outcome="canceled"
    ),
    "splice_cancel_without_outcome": InboxSpliced("next-turn", 0, (RemovedItem(MessageId("m"), "canceled"),)),
    "splice_claim_without_turn": InboxSpliced("next-turn", 0, (RemovedItem(MessageId("m"), "claimed"),)),
    "splice_quiet_removal": InboxSpliced("next-turn", 0, (RemovedItem(MessageId("m"), "claimed", 1),), wakes=False),
    "foreign_with_a_type_of_ours": ForeignPayload("turn/start", {"turn": 1}),
    "not_a_payload": "turn/start",
}


def _assistant_with(*blocks: object) -> AssistantMessage:
    return AssistantMessage(1, 1, Message(MessageId("a"), "assistant", blocks, ModelSource("p", "m")))


def _result_with(source: object = ToolSource(CallId("c")), error: object = None, **block: object) -> ToolResult:
    whole = dataclasses.replace(ToolResultBlock(CallId("c"), ()), **block)
    return ToolResult(1, 1, Message(MessageId("r"), "user", (whole,), source), error)


def _header_with(**changes: object) -> RequestHeader:
    config = {key: changes.pop(key) for key in ("stop", "temperature", "max_tokens") if key in changes}
    return RequestHeader(dataclasses.replace(Header(RequestConfig("p", "m", **config)), **changes), "initial")


def _image(**changes: object) -> UserMessage:
    reference = dataclasses.replace(AttachmentRef("sha256:0", "image/png", 1, 1, 1), **changes)
    return UserMessage(_message(content=(ImageBlock(reference),)))


WRONG_SHAPES = {
    "reason_a_word": TurnEnd(1, "completed"),
    "cause_a_word": TurnEnd(1, TurnReason("aborted", cause="user")),
    "failure_a_word": TurnEnd(1, TurnReason("error", failure="boom")),
    "assistant_with_result": _assistant_with(ToolResultBlock(CallId("c"), ())),
    "assistant_with_a_word": _assistant_with("hello"),
    "assistant_content_none": AssistantMessage(1, 1, Message(MessageId("a"), "assistant", None, ModelSource("p", "m"))),
    "assistant_message_a_word": AssistantMessage(1, 1, "hello"),
    "assistant_usage_a_number": AssistantMessage(1, 1, _assistant_with().message, 7),
    "source_a_word": UserMessage(_message(source="user")),
    "result_from_user": _result_with(UserSource()),
    "result_error_a_word": _result_with(error="boom", is_error=True),
    "result_error_on_success": _result_with(error=ToolErrorInfo("E", "CODE")),
    "result_is_error_a_number": _result_with(is_error=1),
    "result_with_reasoning": _result_with(content=(ReasoningBlock("hm"),)),
    "image_a_word": UserMessage(_message(content=(ImageBlock("sha256:0"),))),
    "image_negative_size": _image(bytes=-1),
    "image_without_id": _image(attachment_id=""),
    "image_name_a_number": _image(name=7),
    "header_a_word": RequestHeader("header", "initial"),
    "header_stop_empty_word": _header_with(stop=("",)),
    "header_temperature_eleven": _header_with(temperature=11),
    "header_temperature_minus_zero": _header_with(temperature=-0.0),
    "header_temperature_true": _header_with(temperature=True),
    "header_max_tokens_zero": _header_with(max_tokens=0),
    "header_tool_a_word": _header_with(tools=("read_file",)),
    "header_system_empty": _header_with(system=""),
    "chunk_a_word": AssistantChunk(1, 1, "x"),
    "chunk_block_with_number": AssistantChunk(1, 1, BlockEnd(0, ToolCallBlock(CallId("c"), "n", 5))),
    "chunk_block_unknown": AssistantChunk(1, 1, BlockEnd(0, "x")),
    "splice_inserted_a_list": InboxSpliced("next-turn", 0, inserted=[_message()]),
    "splice_removed_a_word": InboxSpliced("next-turn", 0, removed=("m1",)),
    "splice_wakes_a_number": InboxSpliced("next-turn", 0, inserted=(_message(),), wakes=1),
    "descriptor_a_list": SubagentDescriptor([1]),
    "summary_none": CompactionSummary("k", None),
    "foreign_data_a_word": ForeignPayload("other/x", "data"),
}


@pytest.mark.parametrize("payload", WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys())
def test_a_part_of_the_wrong_type_is_refused_and_never_stored(make, payload):
    log = make.log()
    with pytest.raises(InvalidEventError):
        log.append(payload, ignorable=True)
    assert len(log) == 0


LISTS = {
    "result_content": _result_with(content=[]),
    "header_stop": _header_with(stop=["END"]),
    "header_tools": _header_with(tools=[]),
    "message_content": UserMessage(_message(content=[])),
}


@pytest.mark.parametrize("payload", LISTS.values(), ids=LISTS.keys())
def test_a_list_where_a_tuple_belongs_is_frozen_on_append_and_refused_as_it_is(make, payload):
    log = make.log()
    stored = log.append(payload)
    assert "[" not in repr(stored.payload)
    with pytest.raises(InvalidEventError):
        make.log().restore(dataclasses.replace(stored, payload=payload))


@pytest.mark.parametrize("changes", [{"ignorable": 1}, {"time": 1.0}, {"time": 2**53}, {"seq": True}], ids=str)
def test_an_envelope_of_the_wrong_type_is_refused(make, changes):
    log = make.log()
    log.append(EndSeed())
    with pytest.raises(InvalidEventError):
        log.restore(dataclasses.replace(Event(1, 1, EndSeed()), **changes))


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED.keys())
def test_an_event_that_breaks_its_type_is_refused(make, payload):
    log = make.log()
    with pytest.raises(InvalidEventError):
        log.append(payload, ignorable=True)
    assert len(log) == 0


@pytest.mark.parametrize("call_id", ["", "other"], ids=["empty", "of_another_call"])
def test_a_tool_result_names_its_call_in_source_and_block(make, call_id):
    message = Message(MessageId("r"), "user", (ToolResultBlock(CallId(call_id), ()),), ToolSource(CallId("c1")))
    with pytest.raises(InvalidEventError):
        make.log().append(dataclasses.replace(make.result(), message=message))


def test_every_sample_of_every_type_is_accepted(make):
    log = make.log()
    for payload in make.samples():
        make.append(log, payload)
    assert {type(event.payload) for event in log} == set(CHECKS)


def _surface_log(make):
    log = make.log()
    for name in ("a", "b", "c"):
        log.append(UserMessage(make.user(name, name)))
    return log


BAD_SURFACE = {
    "log_only_with_operation": (EndSeed(), "append", None),
    "log_only_with_citation": (EndSeed(), None, (0,)),
    "operation_unknown": ("user", "prepend", None),
    "range_not_on_surface": ("user", Replace(0, 9), (0, 1, 2)),
    "range_reversed": ("user", Replace(2, 0), (0, 1, 2)),
    "range_partly_cited": ("user", Replace(0, 2), (0, 2)),
    "range_uncited": ("user", Replace(0, 0), None),
    "citation_of_itself": ("user", "append", (3,)),
    "citation_twice": ("user", "append", (1, 1)),
    "citation_negative": ("user", "append", (-1,)),
    "citation_empty_on_user": ("user", "append", ()),
    "citation_no_tuple": ("user", "append", [0]),
    "range_of_booleans": ("user", Replace(False, True), (0, 1)),
}


@pytest.mark.parametrize(("payload", "operation", "sources"), BAD_SURFACE.values(), ids=BAD_SURFACE.keys())
def test_L05_a_surface_operation_that_does_not_fit_is_refused_and_changes_nothing(make, payload, operation, sources):
    log = _surface_log(make)
    before, messages = (log.since(0), log.surface()), log.messages()
    payload = UserMessage(make.user("new", "new")) if payload == "user" else payload
    with pytest.raises(InvalidEventError):
        log.append(payload, surface_op=operation, source_event_seqs=sources)
    assert (log.since(0), log.surface()) == before
    assert log.messages() == messages


def test_L05_a_stored_surface_event_without_operation_is_refused(make):
    log = make.log()
    with pytest.raises(InvalidEventError):
        log.restore(Event(0, 1, UserMessage(make.user())))
    assert len(log) == 0


def test_L05_a_range_may_stand_in_falling_seqs_once_a_replace_has_moved_them(make):
    log = _surface_log(make)
    log.append(UserMessage(make.user("ab", "ab")), surface_op=Replace(0, 1), source_event_seqs=(0, 1))
    assert log.surface() == (3, 2)
    log.append(UserMessage(make.user("abc", "abc")), surface_op=Replace(3, 2), source_event_seqs=(2, 3))
    assert (log.surface(), [message.id for message in log.messages()]) == ((4,), ["abc"])


def _result_log(make):
    log = make.log()
    log.append(make.result("c1", "first", meta={"exit": 0}))
    log.append(make.result("c2", "second"))
    return log


def test_L06_a_result_may_replace_a_result_with_other_content(make):
    log = _result_log(make)
    shorter = make.result("c1", "[cleared]", meta={"exit": 0})
    log.append(shorter, surface_op=Replace(0, 0), source_event_seqs=(0,))
    assert log.messages() == (shorter.message, make.result("c2", "second").message)


L06_CHANGES = {
    "another_call": lambda make: make.result("c2", "x", meta={"exit": 0}, message_id="r-1-1-c1"),
    "another_message_id": lambda make: make.result("c1", "x", meta={"exit": 0}, message_id="r9"),
    "another_step": lambda make: dataclasses.replace(make.result("c1", "x", meta={"exit": 0}), step=2),
    "another_meta": lambda make: make.result("c1", "x", meta={"exit": 1}),
    "meta_dropped": lambda make: make.result("c1", "x"),
}


@pytest.mark.parametrize("build", L06_CHANGES.values(), ids=L06_CHANGES.keys())
def test_L06_a_result_that_replaces_a_result_may_change_nothing_but_its_content(make, build):
    log = _result_log(make)
    with pytest.raises(InvalidEventError):
        log.append(build(make), surface_op=Replace(0, 0), source_event_seqs=(0,))
    assert log.surface() == (0, 1)


def test_L06_a_result_may_replace_one_result_only(make):
    log = _result_log(make)
    with pytest.raises(InvalidEventError):
        log.append(make.result("c1", "x", meta={"exit": 0}), surface_op=Replace(0, 1), source_event_seqs=(0, 1))


def test_L06_a_result_may_not_replace_a_message(make):
    log = _surface_log(make)
    with pytest.raises(InvalidEventError):
        log.append(make.result(), surface_op=Replace(0, 0), source_event_seqs=(0,))


def test_L09_an_unknown_type_enters_only_when_it_is_ignorable(make):
    log = make.log()
    with pytest.raises(InvalidEventError):
        log.append(ForeignPayload("other/thing", {}))
    assert log.append(ForeignPayload("other/thing", {}), ignorable=True).type == "other/thing"


BAD_HEADERS = {
    "empty_id": {"id": SessionId("")},
    "negative_time": {"created_at": -1},
    "relative_cwd": {"cwd": "work"},
    "origin_unknown": {"origin": "human"},
    "depth_negative": {"delegation_depth": -1},
    "seed_length_true": {"seed_length": True},
}


@pytest.mark.parametrize("changes", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_a_header_with_a_field_out_of_range_is_refused(changes):
    with pytest.raises(InvalidEventError):
        check_header(dataclasses.replace(SessionHeader(SessionId("s"), 1), **changes))
