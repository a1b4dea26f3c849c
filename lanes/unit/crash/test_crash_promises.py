"""What counts as a promise broken, a tool run twice, and a session that did not go on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.log.events import (
    AssistantMessage,
    InboxSpliced,
    Payload,
    RemovedItem,
    SessionHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.store import SessionStore
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)
from lanes.crash_child import LEDGER, SESSION, result_text, sessions_of, workspace_of
from lanes.crash_promises import Promises, judge

JOB = Message(MessageId("job-1-0"), "user", (TextBlock("job-1-0"),), UserSource())
CALL = ToolCallBlock(CallId("c1"), "note", "{}")


def result(text: str, error: ToolErrorInfo | None = None) -> ToolResult:
    block = ToolResultBlock(CALL.id, (TextBlock(text),), error is not None)
    return ToolResult(1, 1, Message(MessageId("r1"), "user", (block,), ToolSource(CALL.id)), error)


SPOKEN: tuple[Payload, ...] = (
    InboxSpliced("next-turn", 0, inserted=(JOB,)),
    TurnStart(1),
    InboxSpliced("next-turn", 0, removed=(RemovedItem(JOB.id, "claimed", 1),)),
    StepStart(1, 1),
    UserMessage(JOB),
    AssistantMessage(1, 1, Message(MessageId("a1"), "assistant", (CALL,), ModelSource("p", "m"))),
    ToolCall(1, 1, CALL.id, "note", "{}"),
    result(result_text(CALL.id)),
    StepEnd(1, 1),
    TurnEnd(1, TurnReason("completed")),
)
WORDS = ("receipt job-1-0", "asked job-1-0", "call c1", "result c1", "idle 1")


async def store(folder: Path, payloads: Sequence[Payload], *ledger: str) -> None:
    """Store a session of these events, and a ledger of these lines."""
    ticks = itertools.count(1)
    writer = await SessionStore(sessions_of(folder), clock=lambda: next(ticks)).create(SessionHeader(SESSION, 0))
    for payload in payloads:
        called = writer.log.last(ToolCall) if isinstance(payload, ToolResult) else None
        writer.log.append(payload, source_event_seqs=None if called is None else (called.seq,))
    await writer.close()
    (workspace_of(folder) / LEDGER).write_text("".join(f"{line}\n" for line in ledger))


def promises(*words: str) -> Promises:
    heard = Promises()
    for word in words:
        heard.hear(word)
    return heard


async def test_a_session_that_kept_its_word_has_nothing_against_it(folder: Path) -> None:
    await store(folder, SPOKEN, "c1")
    found = judge(folder, promises(*WORDS, "closed wc"), (), is_last=True)
    assert (len(found.events), found.lost, found.twice, found.stuck) == (10, (), (), ())


@pytest.mark.parametrize(
    ("kept", "lost"),
    [
        (0, WORDS),
        (1, WORDS[1:]),
        (5, WORDS[2:]),
        (7, WORDS[3:]),
        (8, WORDS[4:]),
        (10, ()),
    ],
)
async def test_each_promise_the_log_does_not_bear_out_is_lost(folder: Path, kept: int, lost: tuple[str, ...]) -> None:
    """The turns that are cut off here are closed as interrupted, which is no end that was promised."""
    await store(folder, SPOKEN[:kept])
    found = judge(folder, promises(*WORDS), (), is_last=False)
    assert found.lost == tuple(f"{word} is not in the log" for word in lost)


async def test_an_error_result_is_not_the_result_that_was_promised(folder: Path) -> None:
    failed = result(result_text(CALL.id), ToolErrorInfo("ToolError", "TOOL_OUTCOME_UNKNOWN"))
    await store(folder, (*SPOKEN[:7], failed, *SPOKEN[8:]))
    assert judge(folder, promises("result c1"), (), is_last=False).lost == ("result c1 is not in the log",)


async def test_a_body_that_ran_twice_and_one_the_log_does_not_know_are_told(folder: Path) -> None:
    await store(folder, SPOKEN, "c1", "c2", "c1")
    found = judge(folder, promises(), (), is_last=False)
    assert (found.twice, found.lost) == (("c1",), ("call c2 ran and is not in the log",))


async def test_a_log_that_forgot_what_it_held_before_has_lost_it(folder: Path, tmp_path: Path) -> None:
    await store(folder, SPOKEN[:3])
    before = judge(folder, promises(), (), is_last=False).events
    other = tmp_path / "other"
    workspace_of(other).mkdir(parents=True)
    await store(other, SPOKEN[1:2])
    found = judge(other, promises(), before, is_last=False)
    assert found.lost == ("the log does not begin with what it held before this life",)


async def test_a_log_that_does_not_load_is_lost_and_does_not_go_on(folder: Path) -> None:
    await store(folder, SPOKEN)
    path = SessionStore(sessions_of(folder), clock=lambda: 0).find(SESSION)
    path.write_bytes(path.read_bytes().replace(b'"seq":3', b'"seq":4'))
    found = judge(folder, promises(), (), is_last=False)
    assert ([text[:21] for text in found.lost], found.stuck) == (["the log does not load"], ("the log does not load",))


async def test_a_last_life_has_to_come_to_its_end_with_nothing_left_over(folder: Path) -> None:
    await store(folder, (*SPOKEN[:3], TurnEnd(1, TurnReason("completed"))))
    assert judge(folder, promises(*WORDS[:1], "closed w"), (), is_last=True).stuck == (
        "receipt job-1-0 never reached the model",
    )
    assert judge(folder, promises("idle 1"), (), is_last=True).stuck == ("the child did not come to its end",)


async def test_a_last_life_that_leaves_an_open_turn_does_not_go_on(folder: Path) -> None:
    await store(folder, SPOKEN[:5])
    assert judge(folder, promises("closed w"), (), is_last=True).stuck == ("the last turn is not completed",)


async def test_a_last_life_whose_events_stand_in_no_order_does_not_go_on(folder: Path) -> None:
    await store(folder, (*SPOKEN, StepStart(7, 1), TurnStart(9), TurnEnd(9, TurnReason("completed"))))
    (reason,) = judge(folder, promises("closed w"), (), is_last=True).stuck
    assert reason.startswith("the order of the log is broken")


def test_without_a_file_there_is_nothing_and_a_last_life_left_none(folder: Path) -> None:
    assert judge(folder, promises(), (), is_last=False).lost == ()
    assert judge(folder, promises("closed w"), (), is_last=True).stuck == ("no session file",)
