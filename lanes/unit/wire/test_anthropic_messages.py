"""Message streams and message requests in the Messages form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.model.call import ModelRequest, ToolSchema
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ContentBlock,
    ImageBlock,
    JsonObject,
    Message,
    MessageId,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)
from harness.wire.anthropic_messages import MessageStream, encode_body, encode_request
from harness.wire.chat_request import NO_OUTPUT
from harness.wire.json_text import MAX_DEPTH
from harness.wire.messages_request import EMPTY_TEXT, MAX_TOKENS

CASES = Path(__file__).parents[2] / "cases" / "sse"
CLOSED = Failure("the stream ended before a finish reason and before its end mark", "STREAM_CLOSED")


def nested(levels: int) -> str:
    """The arguments of a call: one object around that many lists within each other."""
    return '{"a":' + "[" * levels + "]" * levels + "}"


def play(*pieces: bytes) -> tuple[Chunk, ...]:
    stream = MessageStream()
    chunks = [chunk for piece in pieces for chunk in stream.feed(piece)]
    return (*chunks, *stream.end())


def case(name: str) -> tuple[Chunk, ...]:
    return play((CASES / name).read_bytes())


def event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def start(index: int, block_type: str, **fields: object) -> bytes:
    return event("content_block_start", index=index, content_block={"type": block_type, **fields})


def grow(index: int, delta_type: str, **fields: object) -> bytes:
    return event("content_block_delta", index=index, delta={"type": delta_type, **fields})


def ended(stop_reason: str | None, **usage: int) -> bytes:
    return event("message_delta", delta={"stop_reason": stop_reason}, usage=usage) + event("message_stop")


def blocks(chunks: Iterable[Chunk]) -> list[object]:
    return [chunk.block for chunk in chunks if isinstance(chunk, BlockEnd)]


def streamed_text(chunks: Iterable[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


def code_of(chunks: tuple[Chunk, ...]) -> str:
    last = chunks[-1]
    assert isinstance(last, Finish)
    return last.failure.code if last.failure else ""


# the field's cases ---------------------------------------------------------------------------------------------------


def test_case_B05_unicode_separators_are_text() -> None:
    chunks = case("B05-separators-anthropic.sse")
    assert chunks == (
        BlockStart(0, "text"),
        TextDelta(0, "left\u2028right\u0085end"),
        BlockEnd(0, TextBlock("left\u2028right\u0085end")),
        UsageChunk(Usage(5, 9)),
        Finish("stop"),
    )


def test_case_B08e_text_cut_by_a_polite_end_is_no_answer() -> None:
    chunks = case("B08e-anthropic-eof.sse")
    assert (streamed_text(chunks), blocks(chunks), chunks[-1]) == ("The answer is", [], Finish("error", CLOSED))


def test_case_B08f_arguments_cut_by_a_polite_end_give_no_call() -> None:
    chunks = case("B08f-anthropic-eof-mid-tool.sse")
    assert (blocks(chunks), chunks[-1]) == ([], Finish("error", CLOSED))


def test_case_B09a_an_overloaded_service_after_text_is_not_an_answer() -> None:
    chunks = case("B09a-anthropic-overloaded-after-text.sse")
    assert (streamed_text(chunks), blocks(chunks), chunks[-1]) == (
        "Partial",
        [],
        Finish("error", Failure("overloaded_error: busy, try later", "SERVER")),
    )


def test_case_B09c_an_error_without_an_event_line_is_seen() -> None:
    assert case("B09c-anthropic-error-without-event-line.sse") == (
        Finish("error", Failure("rate_limit_error: slow down", "RATE_LIMIT")),
    )


def test_case_B09d_a_request_that_can_never_succeed_is_told_apart() -> None:
    assert case("B09d-invalid-request-only.sse") == (
        Finish("error", Failure("invalid_request_error: unknown field: colour", "INVALID_REQUEST")),
    )


# the chunk sequence --------------------------------------------------------------------------------------------------

RICH = b"".join(
    [
        event(
            "message_start", message={"usage": {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 7}}
        ),
        event("ping"),
        start(0, "thinking", thinking="", signature=""),
        grow(0, "thinking_delta", thinking="h🧪"),
        grow(0, "signature_delta", signature="sig"),
        grow(0, "signature_delta", signature="ned"),
        event("content_block_stop", index=0),
        start(1, "redacted_thinking", data="opaque"),
        start(2, "text", text=""),
        grow(2, "text_delta", text="So"),
        start(3, "server_tool_use", id="srv", name="web_search", input={}),
        grow(3, "input_json_delta", partial_json="{}"),
        start(4, "tool_use", id="toolu_1", name="f", input={}),
        grow(4, "input_json_delta", partial_json=""),
        grow(4, "input_json_delta", partial_json='{"a":'),
        grow(4, "input_json_delta", partial_json="1}"),
        start(5, "tool_use", id="toolu_2", name="g", input={"whole": True}),
        ended("tool_use", output_tokens=9, cache_creation_input_tokens=3),
        event("content_block_delta", index=2, delta={"type": "text_delta", "text": "after"}),
    ]
)


def test_thinking_text_and_calls_in_wire_order_with_what_the_service_wants_back() -> None:
    assert play(RICH) == (
        BlockStart(0, "reasoning"),
        ReasoningDelta(0, "h🧪"),
        BlockStart(1, "reasoning"),
        BlockStart(2, "text"),
        TextDelta(2, "So"),
        BlockStart(3, "tool-call"),
        ToolCallDelta(3, CallId("toolu_1"), "", "f"),
        ToolCallDelta(3, CallId("toolu_1"), '{"a":'),
        ToolCallDelta(3, CallId("toolu_1"), "1}"),
        BlockStart(4, "tool-call"),
        ToolCallDelta(4, CallId("toolu_2"), '{"whole":true}', "g"),
        BlockEnd(0, ReasoningBlock("h🧪")),
        BlockEnd(1, ReasoningBlock("")),
        BlockEnd(2, TextBlock("So")),
        BlockEnd(3, ToolCallBlock(CallId("toolu_1"), "f", '{"a":1}')),
        BlockEnd(4, ToolCallBlock(CallId("toolu_2"), "g", '{"whole":true}')),
        UsageChunk(Usage(5, 9, cache_read_tokens=7, cache_write_tokens=3)),
        Finish("tool-calls", replay_state={"entries": [{"signature": "signed"}, {"data": "opaque"}, None, None, None]}),
    )


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, len(RICH)), max_size=12), end=st.integers(0, len(RICH)))
def test_S02_any_split_of_any_beginning_gives_the_same_chunks(cuts: list[int], end: int) -> None:
    body = RICH[:end]
    places = sorted({0, end, *(cut for cut in cuts if cut < end)})
    assert play(*(body[begin:stop] for begin, stop in pairwise(places))) == play(body)


def test_a_thinking_block_may_hold_a_signature_and_nothing_else() -> None:
    chunks = play(
        start(0, "thinking", thinking="", signature="s"),
        start(1, "text"),
        grow(1, "text_delta", text="x"),
        ended("end_turn"),
    )
    assert (blocks(chunks), chunks[-1]) == (
        [ReasoningBlock(""), TextBlock("x")],
        Finish("stop", replay_state={"entries": [{"signature": "s"}, None]}),
    )


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [
        ("end_turn", Finish("stop")),
        ("stop_sequence", Finish("stop")),
        ("tool_use", Finish("tool-calls")),
        ("max_tokens", Finish("max-tokens")),
        ("model_context_window_exceeded", Finish("max-tokens")),
        (None, Finish("stop")),
        ("refusal", Finish("error", Failure("the answer ended with finish reason 'refusal'", "REFUSAL"))),
        ("pause_turn", Finish("error", Failure("the answer ended with finish reason 'pause_turn'", "PAUSE_TURN"))),
    ],
)
def test_S06_stop_reasons(stop_reason: str | None, expected: Finish) -> None:
    assert play(start(0, "text", text="x"), ended(stop_reason))[-1] == expected


def test_case_B08_a_stop_reason_without_the_closing_event_is_complete() -> None:
    chunks = play(start(0, "text", text="x"), event("message_delta", delta={"stop_reason": "end_turn"}))
    assert (blocks(chunks), chunks[-1]) == ([TextBlock("x")], Finish("stop"))


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        pytest.param([ended("end_turn")], "EMPTY_RESPONSE", id="nothing"),
        pytest.param(
            [start(0, "text"), grow(0, "text_delta", text=""), ended("end_turn")], "EMPTY_RESPONSE", id="empty"
        ),
        pytest.param([ended("max_tokens")], "", id="at-the-limit"),
        pytest.param([], "STREAM_CLOSED", id="empty-body"),
        pytest.param([event("ping")], "STREAM_CLOSED", id="pings-only"),
        pytest.param([b"data: {\n\n"], "MALFORMED_RESPONSE", id="no-json"),
        pytest.param([event("content_block_start", index=[], content_block={})], "MALFORMED_RESPONSE", id="odd-start"),
        pytest.param([event("content_block_delta", index={}, delta={})], "MALFORMED_RESPONSE", id="odd-delta"),
        pytest.param([event("message_delta", delta=1)], "MALFORMED_RESPONSE", id="odd-message"),
        pytest.param(
            [grow(7, "text_delta", text="x"), ended("end_turn")], "EMPTY_RESPONSE", id="delta-without-a-start"
        ),
        pytest.param(
            [event("of_tomorrow", x=1), start(0, "text", text="x"), ended("end_turn")], "", id="unknown-event"
        ),
    ],
)
def test_S11_ends_of_a_stream(pieces: list[bytes], code: str) -> None:
    assert code_of(play(*pieces)) == code


def test_S05_usage_needs_both_counts_and_a_failed_answer_is_accounted_too() -> None:
    begun = event("message_start", message={"usage": {"input_tokens": 5, "output_tokens": 1}})
    assert (play(begun), play(event("message_start", message={"usage": {"input_tokens": 5}}))) == (
        (UsageChunk(Usage(5, 1)), Finish("error", CLOSED)),
        (Finish("error", CLOSED),),
    )


def test_S05_a_count_no_log_can_hold_counts_as_absent_and_the_answer_is_kept() -> None:
    counts = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 10**20}
    chunks = play(event("message_start", message={"usage": counts}), start(0, "text", text="x"), ended("end_turn"))
    assert [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)] == [Usage(5, 1)]
    assert (blocks(chunks), chunks[-1]) == ([TextBlock("x")], Finish("stop"))


def test_B12_a_ping_is_a_sign_of_life_and_no_payload() -> None:
    stream = MessageStream()
    stream.feed(event("ping") + start(0, "text") + event("ping"))
    assert stream.payloads == 1


# requests ------------------------------------------------------------------------------------------------------------


def user(*content: ContentBlock | str) -> Message:
    made = tuple(TextBlock(block) if isinstance(block, str) else block for block in content)
    return Message(MessageId("u"), "user", made, UserSource())


def assistant(*content: ContentBlock, provider: str = "anthropic", replay: JsonObject | None = None) -> Message:
    return Message(MessageId("a"), "assistant", content, ModelSource(provider, "m", replay))


def result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    block = ToolResultBlock(CallId(call_id), (TextBlock(text),), is_error)
    return Message(MessageId(f"r{call_id}"), "user", (block,), ToolSource(CallId(call_id)))


def sent(*messages: Message) -> list[Any]:
    body: dict[str, Any] = json.loads(encode_body(encode_request(ModelRequest("anthropic", "m", messages))))
    listed: list[Any] = body["messages"]
    return listed


def test_a_bare_request_holds_what_the_wire_demands_and_nothing_else() -> None:
    assert encode_request(ModelRequest("anthropic", "m", (user("hi"),))) == {
        "model": "m",
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


def test_a_full_request_carries_every_option_under_its_wire_name() -> None:
    full = ModelRequest(
        "anthropic",
        "m",
        (user("hi"),),
        system="be brief",
        tools=(ToolSchema("f", "does it", {"type": "object"}),),
        temperature=0.5,
        max_tokens=7,
        stop=("END",),
        reasoning_effort="low",
    )
    assert {
        key: value for key, value in encode_request(full).items() if key not in ("messages", "model", "stream")
    } == {
        "max_tokens": 7,
        "system": "be brief",
        "tools": [{"name": "f", "description": "does it", "input_schema": {"type": "object"}}],
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "output_config": {"effort": "low"},
    }


def test_results_of_all_calls_stand_in_one_message_directly_behind_them_and_before_text() -> None:
    calls = (
        ToolCallBlock(CallId("call_a"), "read_text", '{"path":"a.txt"}'),
        ToolCallBlock(CallId("call_b"), "read_text", '{"path":"b.txt"}'),
    )
    history = (
        user("compare a.txt and b.txt"),
        assistant(*calls),
        result("call_a", "AAA"),
        user("meanwhile"),
        result("call_b", "interrupted", is_error=True),
        user("continue"),
    )
    assert sent(*history) == [
        {"role": "user", "content": [{"type": "text", "text": "compare a.txt and b.txt"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_a", "name": "read_text", "input": {"path": "a.txt"}},
                {"type": "tool_use", "id": "call_b", "name": "read_text", "input": {"path": "b.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_a", "content": "AAA"},
                {"type": "tool_result", "tool_use_id": "call_b", "content": "interrupted", "is_error": True},
                {"type": "text", "text": "meanwhile"},
                {"type": "text", "text": "continue"},
            ],
        },
    ]


def test_thinking_goes_back_with_its_signature_in_the_form_in_which_it_came() -> None:
    chunks = play(RICH)
    last = chunks[-1]
    assert isinstance(last, Finish)
    content = [chunk.block for chunk in chunks if isinstance(chunk, BlockEnd)]
    assert sent(user("go"), assistant(*content, replay=last.replay_state))[1]["content"] == [
        {"type": "thinking", "thinking": "h🧪", "signature": "signed"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "text", "text": "So"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {"whole": True}},
    ]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(assistant(ReasoningBlock("r"), TextBlock("x")), id="unsigned"),
        pytest.param(
            assistant(
                ReasoningBlock("r"), TextBlock("x"), provider="other", replay={"entries": [{"signature": "s"}, None]}
            ),
            id="of-another-provider",
        ),
        pytest.param(
            assistant(ReasoningBlock("r"), TextBlock("x"), replay={"entries": [{"signature": "s"}]}),
            id="entries-do-not-match",
        ),
        pytest.param(
            assistant(ReasoningBlock("r"), TextBlock("x"), replay={"entries": [{"other": 1}, None]}), id="unknown-entry"
        ),
    ],
)
def test_thinking_that_its_service_would_refuse_stays_here(message: Message) -> None:
    assert sent(user("go"), message)[1]["content"] == [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param('{"a":1}', {"a": 1}, id="object"),
        pytest.param("[1]", {"invalid_arguments": "[1]"}, id="no-object"),
        pytest.param("{not json", {"invalid_arguments": "{not json"}, id="no-json"),
        pytest.param(nested(MAX_DEPTH - 1), json.loads(nested(MAX_DEPTH - 1)), id="as-deep-as-a-call-may-be"),
        pytest.param(nested(MAX_DEPTH), {"invalid_arguments": nested(MAX_DEPTH)}, id="too-deep"),
        pytest.param(nested(970), {"invalid_arguments": nested(970)}, id="too-deep-to-be-written"),
    ],
)
def test_arguments_are_always_an_object_on_this_wire(arguments: str, expected: object) -> None:
    call = ToolCallBlock(CallId("c"), "f", arguments)
    assert sent(user("go"), assistant(call))[1]["content"][0]["input"] == expected


def test_X02_a_history_with_arguments_too_deep_can_still_be_sent() -> None:
    call = ToolCallBlock(CallId("c"), "f", nested(970))
    assert encode_body(encode_request(ModelRequest("anthropic", "m", (user("go"), assistant(call), result("c", "no")))))


def test_ids_and_texts_that_the_wire_refuses_are_replaced_on_both_sides() -> None:
    call = ToolCallBlock(CallId("functions.f:0"), "f", "{}")
    history = (user(), assistant(TextBlock(""), call), result("functions.f:0", ""), assistant(), user(""))
    assert sent(*history) == [
        {"role": "user", "content": [{"type": "text", "text": EMPTY_TEXT}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "functions_f_0", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "functions_f_0", "content": NO_OUTPUT},
                {"type": "text", "text": EMPTY_TEXT},
            ],
        },
    ]


def test_a_system_message_in_the_history_speaks_as_the_user() -> None:
    notice = Message(MessageId("s"), "system", (TextBlock("notice"),), PluginSource("p"))
    assert sent(notice) == [{"role": "user", "content": [{"type": "text", "text": "notice"}]}]


@pytest.mark.parametrize("role", ["user", "assistant", "result"])
def test_pictures_are_refused_and_never_left_out(role: str) -> None:
    picture = ImageBlock(AttachmentRef("sha256-1", "image/png", 1, 1, 1))
    message = {
        "user": user(picture),
        "assistant": assistant(picture),
        "result": user(ToolResultBlock(CallId("c"), (picture,))),
    }[role]
    with pytest.raises(UsageError) as caught:
        sent(message)
    assert caught.value.error_code == "UNSUPPORTED_CONTENT"


@pytest.mark.parametrize("text", ["half \ud83d end", "\udcb2", "whole 🧪"], ids=ascii)
def test_case_B16_every_string_can_be_sent_and_parses_to_itself(text: str) -> None:
    call = ToolCallBlock(CallId("c"), "f", json.dumps({"text": text}))
    messages = sent(user(text), assistant(call), result("c", text))
    assert [
        messages[0]["content"][0]["text"],
        messages[1]["content"][0]["input"],
        messages[2]["content"][0]["content"],
    ] == [
        text,
        {"text": text},
        text,
    ]
