"""Response streams and requests in the Responses form."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.log.frozen import freeze_object
from harness.loop.assembly import Assembler, ChunkGrammar, assemble_answer
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
from harness.wire.chat_request import NO_OUTPUT
from harness.wire.openai_responses import MAX_EVENT_BYTES, ResponseStream, authorization, encode_body, encode_request
from harness.wire.responses_request import MAX_CALL_ID_CHARS
from harness.wire.sse import MAX_EVENT_BYTES as USUAL_EVENT_BYTES

CLOSED = Failure("the stream ended before a finish reason and before its end mark", "STREAM_CLOSED")
PICTURE = ImageBlock(AttachmentRef("sha256:1", "image/png", 3, 1, 1))


def play(*pieces: bytes) -> tuple[Chunk, ...]:
    stream = ResponseStream()
    chunks = [chunk for piece in pieces for chunk in stream.feed(piece)]
    return (*chunks, *stream.end())


def event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def added(index: int, item_type: str, **fields: object) -> bytes:
    return event("response.output_item.added", output_index=index, item={"type": item_type, **fields})


def done(index: int, item_type: str, **fields: object) -> bytes:
    return event("response.output_item.done", output_index=index, item={"type": item_type, **fields})


def grow(index: int, kind: str, delta: str, **fields: object) -> bytes:
    return event(f"response.{kind}.delta", output_index=index, delta=delta, **fields)


def ended(kind: str = "completed", **response: object) -> bytes:
    return event(f"response.{kind}", response={"status": kind, "error": None, **response})


def message(index: int, text: str, **fields: object) -> bytes:
    return (
        added(index, "message", content=[])
        + grow(index, "output_text", text)
        + done(index, "message", content=[{"type": "output_text", "text": text}], **fields)
    )


def blocks(chunks: Iterable[Chunk]) -> list[object]:
    return [chunk.block for chunk in chunks if isinstance(chunk, BlockEnd)]


def finish_of(chunks: tuple[Chunk, ...]) -> Finish:
    last = chunks[-1]
    assert isinstance(last, Finish)
    return last


def code_of(chunks: tuple[Chunk, ...]) -> str:
    failure = finish_of(chunks).failure
    return failure.code if failure else ""


# the chunk sequence --------------------------------------------------------------------------------------------------

SEALED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look."}, {"type": "summary_text", "text": "Then h🧪"}],
    "encrypted_content": "gAAA==",
}
USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 7},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 21,
}
RICH = b"".join(
    [
        event("response.created", response={"status": "in_progress", "error": None, "output": []}, sequence_number=0),
        event("response.in_progress", response={"status": "in_progress"}, sequence_number=1),
        event("keepalive", sequence_number=2),
        added(0, "reasoning", id="rs_1", summary=[], encrypted_content="gAA"),
        event("response.reasoning_summary_part.added", output_index=0, summary_index=0, part={"text": ""}),
        grow(0, "reasoning_summary_text", "Look.", summary_index=0),
        grow(0, "reasoning_summary_text", "Then ", summary_index=1),
        grow(0, "reasoning_summary_text", "h🧪", summary_index=1),
        event("response.output_item.done", output_index=0, item={**SEALED, "status": "completed"}),
        message(1, "left\u2028right", phase="commentary"),
        added(2, "function_call", id="fc_1", call_id="call_1", name="read_file", arguments=""),
        grow(2, "function_call_arguments", '{"path":'),
        grow(2, "function_call_arguments", '"a"}'),
        event("response.function_call_arguments.done", output_index=2, arguments='{"path":"a"}'),
        done(2, "function_call", id="fc_1", call_id="call_1", name="read_file", arguments='{"path":"a"}'),
        ended(usage=USAGE, output=[]),
    ]
)
RICH_CHUNKS = (
    BlockStart(0, "reasoning"),
    ReasoningDelta(0, "Look."),
    ReasoningDelta(0, "\n\nThen "),
    ReasoningDelta(0, "h🧪"),
    BlockStart(1, "text"),
    TextDelta(1, "left\u2028right"),
    BlockStart(2, "tool-call"),
    ToolCallDelta(2, CallId("call_1"), "", "read_file"),
    ToolCallDelta(2, CallId("call_1"), '{"path":'),
    ToolCallDelta(2, CallId("call_1"), '"a"}'),
    BlockEnd(0, ReasoningBlock("Look.\n\nThen h🧪")),
    BlockEnd(1, TextBlock("left\u2028right")),
    BlockEnd(2, ToolCallBlock(CallId("call_1"), "read_file", '{"path":"a"}')),
    UsageChunk(Usage(5, 5, 7, None, 4)),
    Finish("tool-calls", replay_state={"entries": [{"item": SEALED}, {"phase": "commentary"}, None]}),
)


def test_reasoning_text_and_a_call_come_out_whole_and_in_order() -> None:
    assert play(RICH) == RICH_CHUNKS


def test_S02_a_split_at_any_byte_changes_no_chunk() -> None:
    changed = [at for at in range(len(RICH) + 1) if play(RICH[:at], RICH[at:]) != RICH_CHUNKS]
    assert changed == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(RICH)), max_size=12).map(sorted))
def test_S02_any_cut_into_pieces_changes_no_chunk(cuts: list[int]) -> None:
    assert play(*(RICH[a:b] for a, b in pairwise([0, *cuts, len(RICH)]))) == RICH_CHUNKS


def test_S02_line_ends_of_carriage_returns_change_no_chunk() -> None:
    assert play(RICH.replace(b"\n", b"\r\n")) == play(RICH.replace(b"\n", b"\r")) == RICH_CHUNKS


def test_the_kind_stands_in_the_payload_so_event_lines_may_be_missing() -> None:
    bare = b"".join(line + b"\n" for line in RICH.split(b"\n") if not line.startswith(b"event:"))
    assert play(bare) == RICH_CHUNKS


def test_what_comes_after_the_last_event_is_not_read() -> None:
    assert play(RICH + b"data: [DONE]\n\ndata: not json\n\n") == RICH_CHUNKS


def test_S11_a_stream_cut_before_its_last_event_is_no_answer() -> None:
    cut = (play(RICH[:end]) for end in range(len(RICH) - 1))
    assert {(len(blocks(chunks)), chunks[-1]) for chunks in cut} == {(0, Finish("error", CLOSED))}


def test_S01_a_last_event_without_its_blank_line_does_not_count() -> None:
    assert finish_of(play(RICH[:-1])) == Finish("error", CLOSED)


def test_an_end_mark_before_the_last_event_is_a_cut_stream() -> None:
    assert code_of(play(message(0, "half") + b"data: [DONE]\n\n" + ended())) == "STREAM_CLOSED"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(RICH.split(b"\n\n")[:-1]).map(lambda text: text + b"\n\n"), max_size=24))
def test_any_order_of_events_keeps_the_grammar_and_ends_once(events: list[bytes]) -> None:
    chunks = play(*events)
    grammar = ChunkGrammar()
    for chunk in chunks:
        grammar.feed(chunk)
    assert sum(isinstance(chunk, Finish) for chunk in chunks) == 1


# what items say ------------------------------------------------------------------------------------------------------


def test_an_answer_of_text_alone_has_nothing_to_give_back() -> None:
    assert play(message(0, "hi") + ended()) == (
        BlockStart(0, "text"),
        TextDelta(0, "hi"),
        BlockEnd(0, TextBlock("hi")),
        Finish("stop"),
    )


def test_S03_an_item_that_says_nothing_opens_nothing() -> None:
    stream = added(0, "message", content=[]) + grow(0, "output_text", "") + done(0, "message", content=[])
    assert code_of(play(stream + ended())) == "EMPTY_RESPONSE"


def test_sealed_reasoning_without_a_summary_is_kept_to_be_given_back() -> None:
    item = {"type": "reasoning", "summary": [], "id": "rs", "encrypted_content": "x"}
    chunks = play(event("response.output_item.done", output_index=0, item=item) + message(1, "hi") + ended())
    assert (blocks(chunks), finish_of(chunks).replay_state) == (
        [ReasoningBlock(""), TextBlock("hi")],
        {"entries": [{"item": item}, None]},
    )


def test_the_half_sealed_content_of_a_beginning_item_is_not_kept() -> None:
    stream = added(0, "reasoning", id="rs", summary=[], encrypted_content="half")
    stream += grow(0, "reasoning_text", "hm", content_index=0)
    assert finish_of(play(stream + message(1, "hi") + ended())).replay_state is None


def test_plain_reasoning_of_a_server_that_seals_nothing_is_read_and_kept() -> None:
    item = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hmm"}]}
    stream = grow(0, "reasoning_text", "h", content_index=0) + grow(0, "reasoning_text", "mm", content_index=0)
    stream += event("response.output_item.done", output_index=0, item=item) + message(1, "hi") + ended()
    chunks = play(stream)
    assert (blocks(chunks)[0], finish_of(chunks).replay_state) == (
        ReasoningBlock("hmm"),
        {"entries": [{"item": item}, None]},
    )


def test_a_refusal_is_the_text_the_person_reads() -> None:
    stream = added(0, "message") + grow(0, "refusal", "I will not.")
    stream += done(0, "message", content=[{"type": "refusal", "refusal": "I will not."}])
    assert blocks(play(stream + ended())) == [TextBlock("I will not.")]


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(done(0, "message", content=[{"type": "output_text", "text": "whole"}]) + ended(), id="item-end"),
        pytest.param(
            ended(output=[{"type": "message", "content": [{"type": "output_text", "text": "whole"}]}]), id="last-event"
        ),
        pytest.param(
            grow(0, "output_text", "wh") + done(0, "message", content=[{"text": "whole"}]) + ended(), id="the-rest"
        ),
        pytest.param(
            grow(0, "output_text", "hole") + done(0, "message", content=[{"text": "whole"}]) + ended(), id="corrected"
        ),
    ],
)
def test_the_end_of_an_item_says_what_its_deltas_did_not(stream: bytes) -> None:
    assert blocks(play(stream)) == [TextBlock("whole")]


@pytest.mark.parametrize(
    ("stream", "arguments"),
    [
        pytest.param(done(0, "function_call", call_id="c", name="f", arguments='{"a":1}'), '{"a":1}', id="item-end"),
        pytest.param(
            added(0, "function_call", call_id="c", name="f")
            + grow(0, "function_call_arguments", '{"a":')
            + event("response.function_call_arguments.done", output_index=0, arguments='{"a":1}'),
            '{"a":1}',
            id="arguments-end",
        ),
        pytest.param(
            added(0, "function_call", call_id="c", name="f")
            + grow(0, "function_call_arguments", '{"a":9}')
            + done(0, "function_call", call_id="c", name="f", arguments='{"a":1}'),
            '{"a":1}',
            id="corrected",
        ),
        pytest.param(
            added(0, "function_call", call_id="c", name="f")
            + grow(0, "function_call_arguments", "{}")
            + done(0, "function_call", call_id="c", name="f"),
            "{}",
            id="end-without-arguments",
        ),
        pytest.param(
            grow(0, "function_call_arguments", "{}") + done(0, "function_call", call_id="c", name="f"),
            "{}",
            id="no-beginning",
        ),
    ],
)
def test_a_call_runs_with_the_arguments_its_end_states(stream: bytes, arguments: str) -> None:
    chunks = play(stream + ended())
    assert (blocks(chunks), finish_of(chunks).kind) == ([ToolCallBlock(CallId("c"), "f", arguments)], "tool-calls")


def test_S04_interleaved_items_are_told_apart_by_their_index() -> None:
    stream = b"".join(added(at, "function_call", call_id=f"c{at}", name="f") for at in (0, 1))
    for fragment in ("{", "}"):
        stream += b"".join(grow(at, "function_call_arguments", fragment, item_id="same") for at in (0, 1))
    assert blocks(play(stream + ended())) == [
        ToolCallBlock(CallId("c0"), "f", "{}"),
        ToolCallBlock(CallId("c1"), "f", "{}"),
    ]


def test_items_of_the_service_s_own_tools_are_passed_over() -> None:
    own = added(0, "web_search_call", id="ws") + event("response.web_search_call.searching", output_index=0)
    own += done(0, "web_search_call", id="ws", status="completed")
    assert play(own + message(1, "hi") + ended()) == play(message(1, "hi") + ended())


def test_signs_of_life_are_no_progress() -> None:
    stream = ResponseStream()
    stream.feed(event("keepalive", sequence_number=3) + event("response.keep_alive"))
    assert stream.payloads == 0
    stream.feed(event("response.in_progress", response={}))
    assert stream.payloads == 1


# how it ends ---------------------------------------------------------------------------------------------------------


def test_an_answer_cut_at_its_ceiling_keeps_its_beginning() -> None:
    chunks = play(message(0, "begi") + ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert (blocks(chunks), finish_of(chunks)) == ([TextBlock("begi")], Finish("max-tokens"))


@pytest.mark.parametrize(
    ("details", "code"),
    [
        pytest.param({"reason": "content_filter"}, "CONTENT_FILTER", id="filtered"),
        pytest.param({"reason": "new word"}, "NEW_WORD", id="unknown"),
        pytest.param(None, "INCOMPLETE", id="no-reason"),
    ],
)
def test_S06_an_unknown_reason_is_an_error_with_that_code(details: object, code: str) -> None:
    assert code_of(play(message(0, "x") + ended("incomplete", incomplete_details=details))) == code


def test_S06_a_response_cancelled_elsewhere_is_no_answer() -> None:
    assert code_of(play(message(0, "x") + ended("cancelled"))) == "CANCELLED"


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        pytest.param(
            {"code": "server_error", "message": "oops"}, Failure("server_error: oops", "SERVER"), id="the-service"
        ),
        pytest.param(
            {"code": "rate_limit_exceeded", "message": "slow"},
            Failure("rate_limit_exceeded: slow", "RATE_LIMIT"),
            id="too-fast",
        ),
        pytest.param(
            {"code": "invalid_prompt", "message": "no"}, Failure("invalid_prompt: no", "INVALID_REQUEST"), id="refused"
        ),
        pytest.param(
            {"code": "image_parse_error", "message": "no"},
            Failure("image_parse_error: no", "INVALID_REQUEST"),
            id="a-picture",
        ),
        pytest.param(
            {"code": "insufficient_quota", "message": "pay"}, Failure("insufficient_quota: pay", "QUOTA"), id="no-money"
        ),
        pytest.param(
            {"code": "context_length_exceeded", "message": "too long"},
            Failure("context_length_exceeded: too long", "CONTEXT_WINDOW_EXCEEDED"),
            id="too-long",
        ),
        pytest.param(None, Failure("the response failed and does not say why", "SERVER"), id="silent"),
    ],
)
def test_S09_a_failed_response_says_why_and_its_tokens_count(error: object, failure: Failure) -> None:
    chunks = play(message(0, "half") + ended("failed", error=error, usage=USAGE))
    assert (blocks(chunks), chunks[-2:]) == (
        [],
        (UsageChunk(Usage(5, 5, 7, None, 4)), Finish("error", failure)),
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"code": "too_many_requests", "message": "slow", "param": None}, id="as-documented"),
        pytest.param(
            {"error": {"type": "too_many_requests", "code": "too_many_requests", "message": "slow"}}, id="as-sent"
        ),
    ],
)
def test_S09_an_error_event_is_read_in_both_its_forms(fields: dict[str, object]) -> None:
    """The nested form is the one seen in the field: openai/openai-dotnet issue 881."""
    assert play(message(0, "half") + event("error", sequence_number=4, **fields))[-1] == Finish(
        "error", Failure("too_many_requests: slow", "RATE_LIMIT")
    )


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"data: {\n\n", id="no-json"),
        pytest.param(b"data: []\n\n", id="no-object"),
        pytest.param(event("response.output_text.delta", delta="x"), id="no-index"),
        pytest.param(event("response.output_text.delta", output_index=True, delta="x"), id="index-a-truth-value"),
        pytest.param(grow(0, "output_text", "x") + grow(0, "function_call_arguments", "{"), id="item-changes-its-kind"),
        pytest.param(event("response.output_text.delta", output_index=0, delta=[]), id="delta-no-text"),
    ],
)
def test_an_event_that_breaks_the_form_is_malformed(stream: bytes) -> None:
    assert code_of(play(stream)) == "MALFORMED_RESPONSE"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param({"input_tokens": 3, "output_tokens": 2}, Usage(3, 2), id="bare"),
        pytest.param(USAGE, Usage(5, 5, 7, None, 4), id="shares-are-taken-out"),
        pytest.param(
            {
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4},
                "output_tokens": 1,
            },
            Usage(5, 1, 0, 4),
            id="written",
        ),
        pytest.param({"input_tokens": 3}, None, id="half"),
        pytest.param({"input_tokens": 10**20, "output_tokens": 1}, None, id="more-than-a-log-holds"),
        pytest.param(None, None, id="none"),
    ],
)
def test_S05_counts_are_disjoint_and_absent_ones_stay_absent(usage: object, expected: Usage | None) -> None:
    found = [chunk.usage for chunk in play(message(0, "x") + ended(usage=usage)) if isinstance(chunk, UsageChunk)]
    assert found == ([expected] if expected else [])


def test_the_last_event_may_be_longer_than_other_dialects_events() -> None:
    text = "x" * (USUAL_EVENT_BYTES + 1)
    stream = ended(output=[{"type": "message", "content": [{"type": "output_text", "text": text}]}])
    assert blocks(play(stream)) == [TextBlock(text)]


def test_an_event_without_end_is_refused_in_time() -> None:
    assert code_of(play(b"data: " + b"x" * MAX_EVENT_BYTES)) == "MALFORMED_RESPONSE"


def test_a_cancelled_answer_is_aborted_and_says_nothing_more() -> None:
    stream = ResponseStream()
    stream.feed(message(0, "half"))
    failure = Failure("cancelled by the caller", "ABORTED")
    assert (stream.aborted(failure), stream.feed(ended()), stream.end()) == ((Finish("aborted", failure),), (), ())


# what is sent --------------------------------------------------------------------------------------------------------


def user(*parts: ContentBlock | str) -> Message:
    content = tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)
    return Message(MessageId("u"), "user", content, UserSource())


def assistant(*parts: ContentBlock, state: JsonObject | None = None, model: str = "m") -> Message:
    return Message(MessageId("a"), "assistant", parts, ModelSource("openai", model, state))


def call(call_id: str, arguments: str = "{}") -> ToolCallBlock:
    return ToolCallBlock(CallId(call_id), "f", arguments)


def result(call_id: str, *parts: TextBlock | ImageBlock) -> Message:
    block = ToolResultBlock(CallId(call_id), parts)
    return Message(MessageId(f"r{call_id}"), "user", (block,), ToolSource(CallId(call_id)))


def request(*messages: Message, model: str = "m", **options: Any) -> ModelRequest:
    return ModelRequest("openai", model, messages, **options)


def sent(*messages: Message, pictures: dict[str, bytes] | None = None) -> list[Any]:
    body: dict[str, Any] = json.loads(encode_body(encode_request(request(*messages), pictures)))
    listed: list[Any] = body["input"]
    return listed


def said(text: str, **fields: str) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": text, **fields}


def asked(*parts: dict[str, object], role: str = "user") -> dict[str, object]:
    return {"type": "message", "role": role, "content": list(parts)}


def written(text: str) -> dict[str, object]:
    return {"type": "input_text", "text": text}


def test_a_bare_request_streams_stores_nothing_and_holds_nothing_else() -> None:
    assert encode_request(request(user("hi"))) == {
        "model": "m",
        "input": [asked(written("hi"))],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_a_full_request_carries_every_option_under_its_wire_name() -> None:
    full = request(
        user("hi"),
        system="be brief",
        tools=(ToolSchema("f", "does it", {"type": "object", "properties": {}}),),
        temperature=0.5,
        max_tokens=7,
        reasoning_effort="low",
    )
    assert encode_request(full) == {
        "model": "m",
        "instructions": "be brief",
        "input": [asked(written("hi"))],
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": "does it",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "temperature": 0.5,
        "max_output_tokens": 7,
        "reasoning": {"effort": "low"},
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("gpt-4.1-mini", False),
        ("gpt-4o", False),
        ("ft:gpt-4o-mini:team::x", False),
        ("openai/gpt-4-turbo", False),
        ("gpt-3.5-turbo", False),
        ("gpt-5-chat-latest", False),
        ("gpt-5", True),
        ("o3", True),
        ("o4-mini", True),
        ("gpt-45", True),
        ("gpt-oss-20b", True),
    ],
)
def test_sealed_reasoning_is_asked_of_models_that_reason_only(name: str, asks: bool) -> None:
    assert ("include" in encode_request(request(user("hi"), model=name))) is asks


def test_stop_texts_are_refused_because_the_form_has_no_field_for_them() -> None:
    with pytest.raises(UsageError) as caught:
        encode_request(request(user("hi"), stop=("END",)))
    assert caught.value.error_code == "UNSUPPORTED_OPTION"


def test_what_a_stream_gave_back_goes_back_as_it_came() -> None:
    """From the stream through assembly and the log's freezing into the next request."""
    assembler = Assembler()
    for chunk in play(RICH):
        assembler.feed(chunk)
    answer = assemble_answer(assembler, 1, 1, ())
    assert answer.replay_state is not None
    state = freeze_object(answer.replay_state, "replayState")
    assert sent(user("hi"), assistant(*answer.blocks, state=state), result("call_1", TextBlock("41"))) == [
        asked(written("hi")),
        SEALED,
        said("left\u2028right", phase="commentary"),
        {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": '{"path":"a"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "41"},
    ]


def test_reasoning_goes_back_only_to_the_model_that_thought_it() -> None:
    state = {"entries": [{"item": SEALED}, {"phase": "commentary"}]}
    answer = assistant(ReasoningBlock("hm"), TextBlock("hi"), state=state, model="other")
    assert sent(answer) == [said("hi")]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"entries": [{"item": SEALED}]}, id="count-differs"),
        pytest.param({"entries": "x"}, id="no-list"),
        pytest.param({"entries": [{"signature": "sig"}, None]}, id="another-dialect-s"),
        pytest.param({"entries": [{"item": "x"}, {"phase": 1}]}, id="no-item"),
        pytest.param({}, id="empty"),
        pytest.param(None, id="none"),
    ],
)
def test_reasoning_without_what_the_service_sealed_stays_here(state: JsonObject | None) -> None:
    assert sent(assistant(ReasoningBlock("hm"), TextBlock("hi"), state=state)) == [said("hi")]


def test_reasoning_that_nothing_follows_is_left_out() -> None:
    """An answer cut at its ceiling while it called tools: the calls are gone, the reasoning stands alone."""
    first, second = {**SEALED, "id": "rs_1"}, {**SEALED, "id": "rs_2"}
    state = {"entries": [{"item": first}, None, {"item": second}]}
    answer = assistant(ReasoningBlock("a"), TextBlock("hi"), ReasoningBlock("b"), state=state)
    assert (sent(answer), sent(assistant(ReasoningBlock("a"), state={"entries": [{"item": first}]}))) == (
        [first, said("hi")],
        [],
    )


def test_calls_and_results_are_linked_and_never_empty() -> None:
    assert sent(assistant(call("c1", "")), result("c1"), result("c2", TextBlock("a"), TextBlock("b"))) == [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": NO_OUTPUT},
        {"type": "function_call_output", "call_id": "c2", "output": "ab"},
    ]


def test_a_call_id_too_long_for_the_service_stays_one_and_the_same() -> None:
    long = "x" * (MAX_CALL_ID_CHARS + 1)
    ids = [item["call_id"] for item in sent(assistant(call(long), call(long + "y")), result(long), result(long + "y"))]
    assert ([len(found) for found in ids], ids[0] == ids[2], ids[1] == ids[3], ids[0] == ids[1]) == (
        [64] * 4,
        True,
        True,
        False,
    )
    longest = "x" * MAX_CALL_ID_CHARS
    assert sent(assistant(call(longest)))[0]["call_id"] == longest


def test_a_message_without_blocks_is_still_a_message() -> None:
    system = Message(MessageId("s"), "system", (TextBlock("be brief"),), PluginSource("p"))
    assert sent(user(), user(""), system) == [
        asked(written("")),
        asked(written("")),
        asked(written("be brief"), role="system"),
    ]


def test_pictures_of_prompts_and_results_are_sent_where_they_stand() -> None:
    image = {
        "type": "input_image",
        "detail": "auto",
        "image_url": f"data:image/png;base64,{base64.b64encode(b'png').decode()}",
    }
    prompt, shown = user("see", PICTURE, "?"), result("c1", TextBlock("shot"), PICTURE)
    assert sent(prompt, assistant(call("c1")), shown, pictures={"sha256:1": b"png"}) == [
        asked(written("see"), image, written("?")),
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [written("shot"), image]},
    ]


@pytest.mark.parametrize(
    ("message", "pictures"),
    [
        pytest.param(user("look", PICTURE), None, id="in-a-prompt"),
        pytest.param(result("c", PICTURE), None, id="in-a-result"),
        pytest.param(assistant(PICTURE), {"sha256:1": b"png"}, id="in-an-answer"),
    ],
)
def test_a_picture_that_cannot_be_sent_is_refused(message: Message, pictures: dict[str, bytes] | None) -> None:
    with pytest.raises(UsageError) as caught:
        encode_request(request(message), pictures)
    assert caught.value.error_code == "UNSUPPORTED_CONTENT"


@pytest.mark.parametrize("text", ["\ud800", "a\u2028b", "🧪", 'quote " \\'])
def test_any_text_survives_the_body(text: str) -> None:
    assert sent(user(text), assistant(TextBlock(text)), result("c", TextBlock(text))) == [
        asked(written(text)),
        said(text),
        {"type": "function_call_output", "call_id": "c", "output": text},
    ]


def test_the_key_goes_where_the_service_looks_for_it() -> None:
    assert authorization("k") == {"authorization": "Bearer k"}
