"""Where history may be cut, and how long it is taken to be."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.capabilities.span import balanced_cuts, choose_span, message_tokens, possible_spans, surface_tokens
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    CompactionEnd,
    SessionHeader,
    StepStart,
    ToolResult,
    TurnStart,
    UserMessage,
)
from harness.log.session_log import SessionLog
from harness.loop.request import check_pairing
from harness.model.chunks import Usage, UsageChunk
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ImageBlock,
    Message,
    MessageId,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

MODEL = ModelSource("scripted", "m")
numbers = itertools.count()


def user(text: str, source: Any = None) -> Message:
    return Message(MessageId(f"m{next(numbers)}"), "user", (TextBlock(text),), source or UserSource())


def says(*blocks: Any) -> Message:
    return Message(MessageId(f"m{next(numbers)}"), "assistant", blocks, MODEL)


def call(call_id: str) -> ToolCallBlock:
    return ToolCallBlock(CallId(call_id), "look", "{}")


def result(call_id: str, text: str = "seen") -> Message:
    block = ToolResultBlock(CallId(call_id), (TextBlock(text),))
    return Message(MessageId(f"m{next(numbers)}"), "user", (block,), ToolSource(CallId(call_id)))


def log_of(*messages: Message) -> SessionLog:
    clock = itertools.count()
    log = SessionLog(SessionHeader(SessionId("s"), 0), clock=lambda: next(clock))
    log.append(TurnStart(1))
    log.append(StepStart(1, 1))
    for message in messages:
        if isinstance(message.source, ToolSource):
            log.append(ToolResult(1, 1, message))
        else:
            log.append(UserMessage(message) if message.role == "user" else AssistantMessage(1, 1, message))
    return log


def test_a_cut_never_parts_a_call_from_its_result() -> None:
    messages = [user("a"), says(call("1"), call("2")), result("1"), result("2"), says(TextBlock("b"))]
    assert balanced_cuts(messages) == (0, 1, 4, 5)
    assert balanced_cuts([user("a"), None, says(call("1"))]) == (0, 1, 2)


@given(
    st.lists(st.lists(st.integers(1, 3), max_size=3), max_size=8),
    st.integers(0, 60),
)
def test_whatever_span_is_chosen_both_sides_of_the_cut_are_whole(rounds: list[list[int]], keep: int) -> None:
    messages = [user("begin")]
    for at, sizes in enumerate(rounds):
        ids = [f"{at}-{number}" for number, _ in enumerate(sizes)]
        messages.append(says(TextBlock("x"), *(call(each) for each in ids)))
        messages.extend(result(each, "y" * 4 * size) for each, size in zip(ids, sizes, strict=True))
    span = choose_span(log_of(*messages), keep)
    if span is None:
        assert len(messages) < 2
        return
    rest = messages[len(span.messages) :]
    assert tuple(messages[: len(span.messages)]) == span.messages
    check_pairing(span.messages)
    check_pairing(rest)
    assert sum(message_tokens(message) for message in rest) <= keep
    assert span.tokens == sum(message_tokens(message) for message in span.messages)


def test_the_longest_end_that_fits_stays() -> None:
    log = log_of(user("a" * 40), says(TextBlock("b" * 40)), user("c" * 40), says(TextBlock("d" * 40)))
    kept = {keep: choose_span(log, keep) for keep in (0, 10, 19, 20, 21, 100)}
    assert {keep: span and len(span.seqs) for keep, span in kept.items()} == {0: 4, 10: 3, 19: 3, 20: 2, 21: 2, 100: 2}


@given(st.lists(st.integers(0, 3), max_size=7), st.integers(0, 12))
def test_the_possible_spans_are_those_that_some_number_of_tokens_chooses(sizes: list[int], most: int) -> None:
    log = log_of(
        *(user("w" * 4 * size) if at % 2 else says(TextBlock("w" * 4 * size)) for at, size in enumerate(sizes))
    )
    chosen = [choose_span(log, keep) for keep in range(most, -1, -1)]
    assert list(possible_spans(log, most)) == [span for span in dict.fromkeys(chosen) if span is not None]


def test_a_single_message_is_no_span() -> None:
    assert (choose_span(log_of(user("a" * 400)), 0), choose_span(log_of(), 0)) == (None, None)


def test_the_users_last_words_are_named_when_they_would_be_lost_and_only_then() -> None:
    notice = user("c" * 4, PluginSource("p"))
    lost = choose_span(log_of(user("first"), user("last"), says(TextBlock("b")), notice), 1)
    kept = choose_span(log_of(user("first"), says(TextBlock("b")), user("last")), 1)
    none = choose_span(log_of(notice, says(TextBlock("b"))), 0)
    assert lost is not None
    assert lost.last_request is not None
    assert lost.last_request.content == (TextBlock("last"),)
    assert (kept and kept.last_request, none and none.last_request) == (None, None)


def test_every_kind_of_block_counts() -> None:
    picture = ImageBlock(AttachmentRef("sha256:" + "0" * 64, "image/png", 1, 1, 1))
    message = says(TextBlock("12345"), ReasoningBlock("1234"), ToolCallBlock(CallId("c"), "look", '{"a": 1}'))
    shown = Message(MessageId("r"), "user", (ToolResultBlock(CallId("c"), (TextBlock("1"), picture)),), UserSource())
    assert (message_tokens(message), message_tokens(shown)) == (2 + 1 + 1 + 2, 1 + 1000)


def test_the_providers_figures_count_and_what_came_since_is_estimated() -> None:
    log = log_of(user("a" * 400))
    assert surface_tokens(log) == 100
    log.append(AssistantChunk(1, 1, UsageChunk(Usage(1, 1))))
    log.append(AssistantMessage(1, 1, says(TextBlock("b")), Usage(300, 20, 5, 7, 9)))
    log.append(UserMessage(user("c" * 40)))
    assert surface_tokens(log) == 300 + 20 + 5 + 7 + 10


def test_figures_from_before_a_compaction_are_passed_over() -> None:
    log = log_of(user("a" * 400))
    log.append(AssistantMessage(1, 1, says(TextBlock("b" * 4)), Usage(300, 20)))
    log.append(CompactionEnd("k", "done"))
    before = surface_tokens(log)
    log.append(AssistantMessage(1, 1, says(TextBlock("c")), Usage(50, 2)))
    assert (before, surface_tokens(log)) == (101, 52)
