"""Chat completion streams: what each stream means."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import CallId, ReasoningBlock, TextBlock, ToolCallBlock
from harness.wire.openai_chat import ChatStream
from lanes.unit.wire.chat_events import (
    CLOSED,
    DONE,
    blocks,
    call,
    delta,
    error_code,
    event,
    finish,
    play,
    streamed_text,
    with_usage,
)

CASES = Path(__file__).parents[2] / "cases" / "sse"


# the field's cases ---------------------------------------------------------------------------------------------------


def case(name: str) -> bytes:
    return (CASES / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("B02-one-index-two-ids.sse", "059f428b64006f043e42fd36f288e0db5b2666228a45c9467f2e7b282d5ad589"),
        ("B05-separators-openai.sse", "0d115a50db410cb39ecfa41dfb232aa522d2f2988187a367e942d4f358302f8c"),
        ("B06-multibyte.sse", "b4b3fae2c0ef2d3abc6441e0dfa32c521c3f2a21f690c0445aef0ad8d220a7f2"),
        ("B08a-eof-mid-text.sse", "ca578aab9581e537f6a4acadfecab0ca1a5cd44565044d6cbb38f4048b7225b9"),
        ("B09b-openai-error-chunk.sse", "9ab57a6d35a4404554062d76f5c598b3452c99f613e75b12ae290f8b975227d5"),
        ("B10-turn1.sse", "0efc4f8ffba6a8c7ba1d699422a3e3615b13bdc20da3d37c29141fa187bc8a84"),
        ("B16-lone-surrogate-content.sse", "4daced7b5250c7f328702375a11ef9bfd1ebf0734a8a2ebc563ce8fdd344b22e"),
    ],
)
def test_case_files_are_byte_exact(name: str, digest: str) -> None:
    assert hashlib.sha256(case(name)).hexdigest() == digest


def test_case_B02_a_new_id_under_one_index_is_a_new_call() -> None:
    chunks = play(case("B02-one-index-two-ids.sse"))
    assert (blocks(chunks), chunks[-1]) == (
        [
            ToolCallBlock(CallId("call_north"), "read_text", '{"path":"north.txt"}'),
            ToolCallBlock(CallId("call_south"), "read_text", '{"path":"south.txt"}'),
        ],
        Finish("tool-calls"),
    )


def test_case_B02_a_repeated_id_is_the_same_call() -> None:
    chunks = play(case("B02-control-id-repeated.sse"))
    assert (blocks(chunks), chunks[-1]) == (
        [ToolCallBlock(CallId("call_east"), "read_text", '{"path":"east.txt"}')],
        Finish("tool-calls"),
    )


def test_case_B05_unicode_separators_are_text() -> None:
    chunks = play(case("B05-separators-openai.sse"))
    arguments = json.dumps({"path": "notes.txt", "text": "one\u2028two"}, ensure_ascii=False, separators=(",", ":"))
    assert (blocks(chunks), chunks[-1]) == (
        [
            TextBlock("alpha\u2028beta\u2029gamma\u0085delta"),
            ToolCallBlock(CallId("call_w1"), "write_text", arguments),
        ],
        Finish("tool-calls"),
    )


@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param([328, 338, 509, 516, 793, 805], id="inside-characters"),
        pytest.param(list(range(1, 1019)), id="one-byte"),
        pytest.param(list(range(3, 1019, 3)), id="three-bytes"),
    ],
)
def test_case_B06_a_character_cut_by_the_network_is_whole(cuts: list[int]) -> None:
    body = case("B06-multibyte.sse")
    pieces = [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    chunks = play(*pieces)
    assert (blocks(chunks), streamed_text(chunks), "\ufffd" in repr(chunks)) == (
        [
            TextBlock("价格 12€ 🧪 naïve"),
            ToolCallBlock(CallId("call_m1"), "write_text", '{"text":"東京 — 0 °C"}'),
        ],
        "价格 12€ 🧪 naïve",
        False,
    )


def test_case_B08a_text_cut_by_a_polite_end_is_no_answer() -> None:
    chunks = play(case("B08a-eof-mid-text.sse"))
    assert (streamed_text(chunks), blocks(chunks), chunks[-1]) == ("The answer is", [], Finish("error", CLOSED))


def test_case_B08b_arguments_cut_by_a_polite_end_give_no_call() -> None:
    chunks = play(case("B08b-eof-mid-arguments.sse"))
    assert (blocks(chunks), chunks[-1]) == ([], Finish("error", CLOSED))


def test_case_B08c_a_finish_reason_without_the_end_mark_is_complete() -> None:
    chunks = play(case("B08c-finish-no-done.sse"))
    assert (blocks(chunks), chunks[-1]) == ([TextBlock("All good.")], Finish("stop"))


def test_case_B08d_the_end_mark_without_a_finish_reason_is_complete() -> None:
    chunks = play(case("B08d-done-no-finish.sse"))
    assert (blocks(chunks), chunks[-1]) == ([TextBlock("All good.")], Finish("stop"))


def test_case_B09b_an_error_inside_the_stream_is_not_an_answer() -> None:
    chunks = play(case("B09b-openai-error-chunk.sse"))
    assert (streamed_text(chunks), blocks(chunks), chunks[-1]) == (
        "Half of ",
        [],
        Finish("error", Failure("server_error (internal): backend worker went away", "SERVER")),
    )


def test_case_B10_reasoning_calls_and_usage_of_the_first_turn() -> None:
    assert play(case("B10-turn1.sse"))[-4:] == (
        BlockEnd(0, ReasoningBlock("I need the file size first.")),
        BlockEnd(1, ToolCallBlock(CallId("call_size"), "file_size", '{"path":"plan.md"}')),
        UsageChunk(Usage(31, 18)),
        Finish("tool-calls"),
    )


def test_case_B10_reasoning_of_the_second_turn_is_no_text() -> None:
    chunks = play(case("B10-turn2.sse"))
    assert blocks(chunks) == [ReasoningBlock("120 bytes is small."), TextBlock("plan.md is 120 bytes.")]


def test_case_B16_lone_surrogates_stay_as_they_were() -> None:
    in_text = play(case("B16-lone-surrogate-content.sse"))
    in_arguments = play(case("B16-lone-surrogate-arguments.sse"))
    assert (blocks(in_text), blocks(in_arguments)) == (
        [TextBlock("bad \udcb2 byte")],
        [ToolCallBlock(CallId("call_sur"), "write_text", r'{"path":"half.txt","text":"half \ud83d end"}')],
    )


# the chunk sequence --------------------------------------------------------------------------------------------------


def test_S03_reasoning_then_text_are_two_blocks_and_empty_first_deltas_open_nothing() -> None:
    assert play(
        delta(role="assistant", content="", reasoning_content=""),
        delta(reasoning_content="hm", content=None),
        delta(reasoning_content="m", content="So"),
        delta(reasoning_content=None, content=" it is."),
        finish("stop"),
        DONE,
    ) == (
        BlockStart(0, "reasoning"),
        ReasoningDelta(0, "hm"),
        ReasoningDelta(0, "m"),
        BlockStart(1, "text"),
        TextDelta(1, "So"),
        TextDelta(1, " it is."),
        BlockEnd(0, ReasoningBlock("hmm")),
        BlockEnd(1, TextBlock("So it is.")),
        Finish("stop"),
    )


def test_S04_parallel_fragments_are_assembled_by_wire_index() -> None:
    chunks = play(
        call(1, "", id="same", name="b"),
        call(0, '{"a"', id="same", name="a"),
        call(1, "{}"),
        call(0, ":1}"),
        finish("tool_calls"),
        DONE,
    )
    assert chunks == (
        BlockStart(0, "tool-call"),
        ToolCallDelta(0, CallId("same"), "", "b"),
        BlockStart(1, "tool-call"),
        ToolCallDelta(1, CallId("same"), '{"a"', "a"),
        ToolCallDelta(0, CallId("same"), "{}"),
        ToolCallDelta(1, CallId("same"), ":1}"),
        BlockEnd(0, ToolCallBlock(CallId("same"), "b", "{}")),
        BlockEnd(1, ToolCallBlock(CallId("same"), "a", '{"a":1}')),
        Finish("tool-calls"),
    )


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [call(0, "1", id="a", name="x"), call(0, "2", id="b", name="y"), call(0, "3", id="a"), call(0, "4")],
            [("a", "x", "134"), ("b", "y", "2")],
            id="an-earlier-id-goes-on",
        ),
        pytest.param([call(0, "{", name="x"), call(0, "}", id="late")], [("late", "x", "{}")], id="id-comes-late"),
        pytest.param([call(0, "{", id="a"), call(0, "}", name="x")], [("a", "x", "{}")], id="name-comes-late"),
        pytest.param(
            [call(0, "{}", name="x"), call(0, "{}", id="b", name="y")],
            [("", "x", "{}"), ("b", "y", "{}")],
            id="a-named-call-without-id-is-not-renamed",
        ),
        pytest.param(
            [call(0, "1", id="a", name="x"), call(0, "2", id="", name="other")], [("a", "x", "12")], id="set-once"
        ),
        pytest.param(
            [call(None, "1", id="a", name="x"), call(None, "2", id="b", name="y")],
            [("a", "x", "1"), ("b", "y", "2")],
            id="no-index",
        ),
        pytest.param(
            [delta(tool_calls=[{"id": "a", "function": {"name": "x"}}, {"id": "b", "function": {"name": "y"}}])],
            [("a", "x", ""), ("b", "y", "")],
            id="no-index-in-one-delta",
        ),
        pytest.param([call(0), call(0, "{}", id="a", name="x")], [("a", "x", "{}")], id="empty-fragment-opens-nothing"),
        pytest.param(
            [call(0, {"k": "é"}, id="a", name="x")], [("a", "x", r'{"k":"\u00e9"}')], id="arguments-as-object"
        ),
        pytest.param([call(0, "{not json", id="a", name="x")], [("a", "x", "{not json")], id="arguments-stay-raw"),
    ],
)
def test_S04_identity_of_streamed_calls(fragments: list[bytes], expected: list[tuple[str, str, str]]) -> None:
    chunks = play(*fragments, finish("tool_calls"), DONE)
    assert blocks(chunks) == [ToolCallBlock(CallId(id_), name, arguments) for id_, name, arguments in expected]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("stop", Finish("stop"), id="stop"),
        pytest.param("tool_calls", Finish("tool-calls"), id="tool-calls"),
        pytest.param("length", Finish("max-tokens"), id="length"),
        pytest.param(None, Finish("stop"), id="absent"),
        pytest.param("", Finish("stop"), id="empty"),
        pytest.param(
            "content_filter",
            Finish("error", Failure("the answer ended with finish reason 'content_filter'", "CONTENT_FILTER")),
            id="unknown-word",
        ),
        pytest.param(
            "so sad…",
            Finish("error", Failure("the answer ended with finish reason 'so sad…'", "SO_SAD")),
            id="odd-word",
        ),
        pytest.param("…", Finish("error", Failure("the answer ended with finish reason '…'", "UNKNOWN")), id="no-word"),
    ],
)
def test_S06_finish_words(word: str | None, expected: Finish) -> None:
    assert play(delta(content="x"), finish(word), DONE)[-1] == expected


def test_S06_an_unknown_finish_word_ends_no_block() -> None:
    assert blocks(play(delta(content="x"), finish("content_filter"), DONE)) == []


def usage_of(*pieces: bytes) -> object:
    chunks = play(*pieces)
    return [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]


def test_S05_usage_comes_once_after_the_blocks_and_before_the_finish_and_the_last_one_wins() -> None:
    attached = event({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
    trailing = with_usage(prompt_tokens=10, completion_tokens=4)
    assert play(attached, finish("stop"), trailing, DONE, with_usage(prompt_tokens=99, completion_tokens=99)) == (
        BlockStart(0, "text"),
        TextDelta(0, "x"),
        BlockEnd(0, TextBlock("x")),
        UsageChunk(Usage(10, 4)),
        Finish("stop"),
    )


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param({"prompt_tokens": 9, "completion_tokens": 4}, [Usage(9, 4)], id="plain"),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 3},
            [Usage(3, 4, cache_read_tokens=6)],
            id="deepseek-cache",
        ),
        pytest.param(
            {
                "prompt_tokens": 9,
                "completion_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            [Usage(1, 3, cache_read_tokens=8, reasoning_tokens=7)],
            id="openai-details",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}},
            [Usage(9, 4, cache_read_tokens=0)],
            id="zero-is-not-absent",
        ),
        pytest.param(
            {"prompt_tokens": 3, "completion_tokens": 4, "prompt_cache_hit_tokens": 6},
            [Usage(0, 4, 6)],
            id="never-negative",
        ),
        pytest.param({"completion_tokens": 4, "total_tokens": 9}, [Usage(5, 4)], id="prompt-from-the-total"),
        pytest.param({"prompt_tokens": 5, "total_tokens": 9}, [Usage(5, 4)], id="completion-from-the-total"),
        pytest.param({"prompt_tokens": 5}, [], id="half-a-usage-is-none"),
        pytest.param({"prompt_tokens": True, "completion_tokens": "4"}, [], id="no-numbers"),
        pytest.param({"prompt_tokens": -1, "completion_tokens": 4}, [], id="negative"),
        pytest.param({"prompt_tokens": 10**20, "completion_tokens": 4}, [], id="more-than-a-log-holds"),
        pytest.param({"prompt_tokens": 2**53 - 1, "completion_tokens": 2**53}, [], id="one-more-than-a-log-holds"),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10**20}},
            [Usage(9, 4)],
            id="more-hits-than-a-log-holds",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": None},
            [Usage(9, 4)],
            id="null-details",
        ),
    ],
)
def test_S05_usage_counts_are_disjoint_and_absent_counts_stay_absent(
    wire: dict[str, Any], expected: list[Usage]
) -> None:
    assert usage_of(delta(content="x"), finish("stop"), with_usage(**wire), DONE) == expected


def test_S05_usage_inside_the_choice_counts_too() -> None:
    inside = event(
        {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}]}
    )
    assert usage_of(delta(content="x"), inside, DONE) == [Usage(1, 2)]


def test_B11_usage_of_a_failed_answer_is_still_accounted() -> None:
    used = event({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 1}})
    assert play(used)[-2:] == (UsageChunk(Usage(7, 1)), Finish("error", CLOSED))


@pytest.mark.parametrize("word", ["stop", "tool_calls", None], ids=str)
def test_R08_an_answer_without_any_block_is_empty_after_its_usage(word: str | None) -> None:
    chunks = play(
        delta(role="assistant", content=""), finish(word), with_usage(prompt_tokens=3, completion_tokens=0), DONE
    )
    assert chunks == (
        UsageChunk(Usage(3, 0)),
        Finish("error", Failure("the answer ended without any content", "EMPTY_RESPONSE")),
    )


def test_R08_reasoning_alone_and_an_empty_answer_at_the_token_limit_are_no_failure() -> None:
    assert (play(delta(reasoning_content="x"), finish("stop"), DONE)[-1], play(finish("length"), DONE)) == (
        Finish("stop"),
        (Finish("max-tokens"),),
    )


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([delta(content="x"), b"data: [DONE]"], "STREAM_CLOSED", id="end-mark-without-line-end"),
        pytest.param([delta(content="x"), b"data: [DONE]\n"], "STREAM_CLOSED", id="end-mark-without-blank-line"),
        pytest.param([delta(content="x"), b"data: [DO"], "STREAM_CLOSED", id="half-an-end-mark"),
        pytest.param([delta(content="x")], "STREAM_CLOSED", id="no-end-mark"),
        pytest.param([], "STREAM_CLOSED", id="empty-body"),
        pytest.param([b": keep-alive\n\n"], "STREAM_CLOSED", id="comments-only"),
        pytest.param([b"data: {\n\n"], "MALFORMED_RESPONSE", id="no-json"),
        pytest.param([b"data: 7\n\n"], "MALFORMED_RESPONSE", id="no-object"),
        pytest.param([b"data: " + b"[" * 100_000 + b"\n\n"], "MALFORMED_RESPONSE", id="nested-too-deeply"),
        pytest.param([event({"choices": {}})], "MALFORMED_RESPONSE", id="choices-no-list"),
        pytest.param([event({"choices": [1]})], "MALFORMED_RESPONSE", id="choice-no-object"),
        pytest.param([event({"choices": [{"delta": 1}]})], "MALFORMED_RESPONSE", id="delta-no-object"),
        pytest.param([delta(content=1)], "MALFORMED_RESPONSE", id="content-no-text"),
        pytest.param([delta(tool_calls={})], "MALFORMED_RESPONSE", id="calls-no-list"),
        pytest.param([call(0, 5, id="a")], "MALFORMED_RESPONSE", id="arguments-no-text"),
        pytest.param([event({"choices": [{"finish_reason": 1}]})], "MALFORMED_RESPONSE", id="finish-no-text"),
        pytest.param([b"data: " + b"x" * (1 << 20)], "MALFORMED_RESPONSE", id="event-too-long"),
        pytest.param(
            [delta(content="x") + b"data: " + b"x" * (1 << 20)], "MALFORMED_RESPONSE", id="event-too-long-last"
        ),
    ],
)
def test_S01_S11_a_stream_without_a_proper_end_is_a_failure(pieces: list[bytes], expected: str) -> None:
    assert error_code(play(*pieces)) == expected


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"data: [DONE]", id="unended-end-mark"),
        pytest.param(b"data: {", id="unended-event"),
        pytest.param(b"data: {\n\n", id="garbage"),
        pytest.param(b"data: " + b"x" * (1 << 20), id="event-too-long"),
    ],
)
def test_S01_what_follows_a_finish_reason_cannot_undo_the_answer(tail: bytes) -> None:
    chunks = play(delta(content="x"), finish("stop"), tail)
    assert chunks[-2:] == (BlockEnd(0, TextBlock("x")), Finish("stop"))


def test_an_error_after_a_finish_reason_is_still_an_error() -> None:
    assert error_code(play(delta(content="x"), finish("stop"), event({"error": {"message": "no"}}), DONE)) == "SERVER"


def test_S05_nothing_comes_after_the_finish() -> None:
    stream = ChatStream()
    chunks = stream.feed(delta(content="x") + finish("stop") + DONE + delta(content="y") + with_usage(total_tokens=1))
    after = (*stream.feed(delta(content="y")), *stream.end(), *stream.broken(CLOSED), *stream.aborted(CLOSED))
    assert (chunks[-1], after, stream.finished) == (Finish("stop"), (), True)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(
            {"type": "rate_limit_error", "message": "slow"}, "RATE_LIMIT", "rate_limit_error: slow", id="rate"
        ),
        pytest.param(
            {"type": "invalid_request_error", "message": "bad"},
            "INVALID_REQUEST",
            "invalid_request_error: bad",
            id="request",
        ),
        pytest.param(
            {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "long"},
            "CONTEXT_WINDOW_EXCEEDED",
            "invalid_request_error (context_length_exceeded): long",
            id="context",
        ),
        pytest.param({"code": "insufficient_quota", "message": "pay"}, "QUOTA", "insufficient_quota: pay", id="quota"),
        pytest.param(
            {"type": "authentication_error", "message": "key"}, "AUTH", "authentication_error: key", id="auth"
        ),
        pytest.param(
            {"type": "overloaded_error", "message": "busy"}, "SERVER", "overloaded_error: busy", id="overloaded"
        ),
        pytest.param({"type": "strange", "message": "?"}, "SERVER", "strange: ?", id="unknown-word"),
        pytest.param("just text", "SERVER", "just text", id="text"),
        pytest.param(["odd"], "SERVER", '["odd"]', id="list"),
    ],
)
def test_S09_error_objects_inside_a_stream(error: object, code: str, message: str) -> None:
    assert play(delta(content="x"), event({"error": error}))[-1] == Finish("error", Failure(message, code))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param({"code": 429, "message": "slow"}, Failure("slow", "RATE_LIMIT", status=429), id="number"),
        pytest.param({"status": "503", "message": "down"}, Failure("down", "SERVER", status=503), id="digits"),
        pytest.param({"code": 502}, Failure('{"code":502}', "SERVER", status=502), id="nothing-else"),
        pytest.param({"code": 7, "message": "x"}, Failure("x", "SERVER"), id="a-number-that-is-no-status"),
        pytest.param({"code": True, "message": "x"}, Failure("x", "SERVER"), id="no-number"),
    ],
)
def test_S09_an_error_that_names_a_status_is_judged_by_it(error: object, expected: Failure) -> None:
    assert play(event({"error": error}))[-1] == Finish("error", expected)


def test_S09_older_servers_write_the_error_without_a_cover() -> None:
    payload = {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}
    assert error_code(play(event(payload))) == "INVALID_REQUEST"


def test_an_error_field_that_is_null_is_no_error() -> None:
    chunk = event({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "error": None})
    assert play(chunk, DONE)[-1] == Finish("stop")


def test_a_refusal_is_text_and_a_second_choice_is_ignored() -> None:
    second = event({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]})
    assert blocks(play(delta(content=None, refusal="I will not."), second, finish("stop"), DONE)) == [
        TextBlock("I will not.")
    ]


def test_reasoning_is_read_under_its_other_name_too() -> None:
    assert blocks(play(delta(reasoning="hm", content=""), finish("stop"), DONE)) == [ReasoningBlock("hm")]


def test_an_abort_keeps_the_usage_and_ends_no_block() -> None:
    stream = ChatStream()
    stream.feed(
        event({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 1}})
    )
    failure = Failure("cancelled", "ABORTED")
    assert stream.aborted(failure) == (UsageChunk(Usage(7, 1)), Finish("aborted", failure))


def test_S07_payloads_count_events_and_not_comments() -> None:
    stream = ChatStream()
    stream.feed(b": keep-alive\n\n" + delta(content="x") + b": keep-alive\n\n" + delta(content="y"))
    assert stream.payloads == 2
