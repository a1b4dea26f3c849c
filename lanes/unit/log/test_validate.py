"""What may enter a log and what may not."""

from __future__ import annotations

import dataclasses

import pytest

from harness.errors import InvalidEventError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Cause,
    EndSeed,
    Event,
    ForeignPayload,
    InboxSpliced,
    RemovedItem,
    Replace,
    SessionHeader,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.validate import CHECKS, check_header
from harness.model.chunks import Failure, Finish, TextDelta, Usage
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
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
    before = (log.since(0), log.surface(), log.messages())
    payload = UserMessage(make.user("new", "new")) if payload == "user" else payload
    with pytest.raises(InvalidEventError):
        log.append(payload, surface_op=operation, source_event_seqs=sources)
    assert (log.since(0), log.surface(), log.messages()) == before


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
