"""Chat completion streams cut at every byte, and streams of any events: the same chunks, always in order."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
)
from lanes.unit.wire.chat_events import DONE, STOP, call, delta, ending, event, finish, play, with_usage

RICH = b"".join(
    [
        b"\xef\xbb\xbf: hello\r\n",
        'data: {"choices":[{"delta":{"reasoning_content":"价"}}]}\r\n\r\n'.encode(),
        'data: {"choices":[{"delta":{"content":"é🧪\u2028"}}]}\n\n'.encode(),
        b'data: {"choices":\rdata: [{"delta":{"content":"two lines"}}]}\r\r',
        call(0, '{"a":', id="c1", name="f").replace(b"\n", b"\r\n"),
        call(0, '"\\ud83d"}', id="c1"),
        call(0, "{}", id="c2", name="g"),
        finish("tool_calls"),
        with_usage(prompt_tokens=9, completion_tokens=4, prompt_cache_hit_tokens=6),
        DONE,
        b"data: after\n\n",
    ]
)


def test_S02_a_split_at_every_byte_gives_the_same_chunks() -> None:
    whole = play(RICH)
    different = [cut for cut in range(len(RICH)) if play(RICH[:cut], RICH[cut:]) != whole]
    assert (different, ending(whole)) == ([], Finish("tool-calls"))


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, len(RICH)), max_size=12), end=st.integers(0, len(RICH)))
def test_S02_any_split_of_any_beginning_gives_the_same_chunks(cuts: list[int], end: int) -> None:
    body = RICH[:end]
    places = sorted({0, end, *(cut for cut in cuts if cut < end)})
    assert play(*(body[begin:stop] for begin, stop in itertools.pairwise(places))) == play(body)


EVENTS = st.lists(
    st.one_of(
        st.builds(lambda text: delta(content=text), st.text(max_size=3)),
        st.builds(lambda text: delta(reasoning_content=text), st.text(max_size=3)),
        st.builds(
            lambda index, id_, text: call(index, text, id=id_, name="f"),
            st.integers(-1, 2),
            st.sampled_from(["", "a", "b"]),
            st.text(max_size=3),
        ),
        st.builds(finish, st.sampled_from([None, "stop", "tool_calls", "length", "odd"])),
        st.builds(with_usage, prompt_tokens=st.integers(0, 5), completion_tokens=st.integers(0, 5)),
        st.sampled_from([DONE, event({"error": {"message": "no"}}), b"data: {\n\n", b": c\n\n", event(STOP)]),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(pieces=EVENTS)
def test_any_stream_keeps_the_chunk_grammar(pieces: list[bytes]) -> None:
    open_blocks: dict[int, str] = {}
    seen: set[int] = set()
    chunks = play(*pieces)
    for chunk in chunks[:-1]:
        match chunk:
            case BlockStart(index, kind):
                assert index not in seen
                seen.add(index)
                open_blocks[index] = kind
            case TextDelta(index, text):
                assert (open_blocks[index], bool(text)) == ("text", True)
            case ReasoningDelta(index, text):
                assert (open_blocks[index], bool(text)) == ("reasoning", True)
            case ToolCallDelta(index, _, _, _):
                assert open_blocks[index] == "tool-call"
            case BlockEnd(index, _):
                open_blocks.pop(index)
    last = ending(chunks)
    assert sum(isinstance(chunk, UsageChunk) for chunk in chunks) <= 1
    assert (last.failure is None) == (last.kind in ("stop", "tool-calls", "max-tokens"))
    if last.failure is None:
        assert not open_blocks
