"""Chunk order and the blocks chunks make."""

from __future__ import annotations

import itertools

import pytest

from harness.errors import PeerError
from harness.loop.assembly import Answer, Assembler, ChunkGrammar, align_replay, assemble_answer, name_calls
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
from harness.model.messages import CallId, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from lanes.unit.loop.scripted_model import calls, reasoning, text

USAGE = UsageChunk(Usage(1, 1))
ERROR = Finish("error", Failure("x", "SERVER"))


def call(call_id: str, name: str = "look", arguments: str = "{}") -> ToolCallBlock:
    return ToolCallBlock(CallId(call_id), name, arguments)


def delta(index: int, arguments: str, call_id: str = "", name: str | None = None) -> ToolCallDelta:
    return ToolCallDelta(index, CallId(call_id), arguments, name)


def fed(*chunks: Chunk) -> Assembler:
    assembler = Assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler


@pytest.mark.parametrize(
    "chunks",
    [
        text("a", "b", usage=Usage(1, 2)),
        reasoning("a", "b"),
        calls(("c1", "look", "{}"), ("c2", "look", "{}"), said="x"),
        [BlockStart(0, "text"), TextDelta(0, "a"), ERROR],
        [ERROR],
    ],
    ids=["text", "reasoning", "calls", "open-at-error", "error-only"],
)
def test_streams_in_order_pass(chunks: list[Chunk]) -> None:
    grammar = ChunkGrammar()
    for chunk in chunks:
        grammar.feed(chunk)


@pytest.mark.parametrize(
    ("chunks", "rule"),
    [
        ([BlockStart(-1, "text")], "index -1 cannot open"),
        ([BlockStart(0, "text"), BlockStart(0, "text")], "index 0 cannot open"),
        ([*text("a")[:3], BlockStart(0, "text")], "index 0 cannot open"),
        ([TextDelta(0, "a")], "no text block is open under index 0"),
        ([BlockStart(0, "text"), ReasoningDelta(0, "a")], "no reasoning block is open under index 0"),
        ([BlockStart(0, "text"), delta(0, "{")], "no tool-call block is open under index 0"),
        ([BlockStart(0, "text"), BlockEnd(0, ReasoningBlock("a"))], "no reasoning block is open under index 0"),
        ([*text("a")[:3], TextDelta(0, "b")], "no text block is open under index 0"),
        ([BlockStart(0, "text"), BlockEnd(0, ToolResultBlock(CallId("c"), ()))], "a model writes text"),
        ([USAGE, USAGE], "usage comes once"),
        ([BlockStart(0, "text"), Finish("stop")], "block 0 is still open"),
        ([Finish("stop"), Finish("stop")], "nothing follows a finish"),
        ([Finish("stop"), USAGE], "nothing follows a finish"),
    ],
)
def test_a_chunk_out_of_order_is_refused_with_its_place(chunks: list[Chunk], rule: str) -> None:
    grammar = ChunkGrammar()
    for chunk in chunks[:-1]:
        grammar.feed(chunk)
    with pytest.raises(PeerError) as refused:
        grammar.feed(chunks[-1])
    assert refused.value.error_code == "BAD_CHUNK"
    assert str(refused.value).startswith(f"chunk {len(chunks) - 1}, {type(chunks[-1]).__name__}: {rule}")


def test_blocks_come_out_in_the_order_their_indexes_were_first_seen() -> None:
    assembler = fed(TextDelta(5, "five"), ReasoningDelta(1, "one"), TextDelta(5, "!"), delta(3, "{}", "c1", "look"))
    assert assembler.blocks() == (TextBlock("five!"), ReasoningBlock("one"), call("c1"))
    assert assembler.blocks() == assembler.blocks()


def test_a_stream_of_deltas_alone_gives_the_blocks_of_the_full_stream() -> None:
    whole = calls(("c1", "look", '{"a": 1}'), said="x")
    deltas = [chunk for chunk in whole if not isinstance(chunk, BlockStart | BlockEnd)]
    assert fed(*deltas).blocks() == fed(*whole).blocks()


def test_the_first_close_of_an_index_stands() -> None:
    assembler = fed(
        TextDelta(0, "draft"), BlockEnd(0, TextBlock("final")), TextDelta(0, "!"), BlockEnd(0, TextBlock("other"))
    )
    assert assembler.blocks() == (TextBlock("final"),)


def test_a_delta_of_another_kind_is_passed_over() -> None:
    assert fed(TextDelta(0, "a"), ReasoningDelta(0, "b"), TextDelta(0, "c")).blocks() == (TextBlock("ac"),)


def test_S04_fragments_of_parallel_calls_are_put_together_by_index() -> None:
    assembler = fed(
        delta(0, '{"a"', "c1", "one"), delta(1, "{", "c2", "two"), delta(0, ":1}"), delta(1, "}"), Finish("tool-calls")
    )
    assert assembler.blocks() == (call("c1", "one", '{"a":1}'), call("c2", "two", "{}"))


def test_a_block_a_model_cannot_write_is_passed_over() -> None:
    assert fed(BlockEnd(0, ToolResultBlock(CallId("c"), ()))).blocks() == ()


@pytest.mark.parametrize(
    ("chunks", "is_empty"),
    [
        ([], True),
        ([BlockStart(0, "text")], True),
        ([BlockEnd(0, TextBlock(""))], True),
        ([TextDelta(0, "a")], False),
        ([ReasoningDelta(0, "a")], False),
        ([BlockStart(0, "tool-call")], False),
    ],
)
def test_R08_an_answer_is_empty_when_nothing_was_said(chunks: list[Chunk], is_empty: bool) -> None:
    assert fed(*chunks).is_empty is is_empty


def test_the_answer_carries_blocks_usage_and_replay_state() -> None:
    assembler = fed(*text("a")[:-1], USAGE, Finish("stop", replay_state={"id": "r"}))
    assert assemble_answer(assembler, 1, 1, ()) == Answer((TextBlock("a"),), Usage(1, 1), {"id": "r"})


def test_T07_an_answer_cut_at_its_ceiling_loses_its_calls_and_their_replay_entries() -> None:
    chunks = calls(("c1", "look", "{"), said="x", kind="max-tokens")
    assembler = fed(*chunks[:-1], Finish("max-tokens", replay_state={"entries": ["text", "call"], "id": "r"}))
    assert assemble_answer(assembler, 1, 1, ()) == Answer((TextBlock("x"),), None, {"entries": ("text",), "id": "r"})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, None),
        ({"id": "r"}, {"id": "r"}),
        ({"entries": ["a", "b"]}, {"entries": ["a", "b"]}),
        ({"entries": ["a"], "id": "r"}, None),
        ({"entries": "ab"}, None),
    ],
)
def test_replay_entries_that_do_not_match_the_blocks_drop_the_whole_state(
    state: dict[str, object] | None, expected: object
) -> None:
    assert align_replay(state, 2, (0, 1)) == expected  # type: ignore[arg-type] # JSON by construction


@pytest.mark.parametrize(
    ("given", "taken", "expected"),
    [
        (["a", "b"], [], ["a", "b"]),
        ([""], [], ["call-2-3-1"]),
        (["a", "a"], [], ["a", "call-2-3-2"]),
        (["a"], ["a"], ["call-2-3-1"]),
        (["", "call-2-3-1"], [], ["call-2-3-1x", "call-2-3-1"]),
        ([""], ["call-2-3-1"], ["call-2-3-1x"]),
    ],
)
def test_X11_ids_that_are_missing_repeated_or_taken_are_replaced(
    given: list[str], taken: list[str], expected: list[str]
) -> None:
    blocks = tuple(call(call_id) for call_id in given)
    named = name_calls(blocks, 2, 3, {CallId(call_id) for call_id in taken})
    assert [block.id for block in named if isinstance(block, ToolCallBlock)] == expected


def test_X11_every_mix_of_three_ids_ends_in_three_different_ones() -> None:
    for given in itertools.product(["", "a", "b", "call-1-1-1", "call-1-1-2"], repeat=3):
        named = name_calls(tuple(call(call_id) for call_id in given), 1, 1, {CallId("b")})
        ids = [block.id for block in named if isinstance(block, ToolCallBlock)]
        assert len({*ids, "", "b"}) == 5, given


def test_X11_text_between_calls_stays_where_it_is_and_an_empty_name_gets_a_stand_in() -> None:
    assert name_calls((TextBlock("x"), call("a", ""), TextBlock("y")), 1, 1, ()) == (
        TextBlock("x"),
        call("a", "unnamed"),
        TextBlock("y"),
    )
