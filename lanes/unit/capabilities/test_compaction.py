"""Compaction: the bracket in the log, one message in the place of a span, and turns that are no worse off for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from harness.capabilities.compaction import (
    MAX_REASON_CHARACTERS,
    MAX_REQUEST_CHARACTERS,
    open_compaction,
    spans_at_end,
)
from harness.capabilities.summary import summary_request
from harness.errors import ProviderError, UsageError
from harness.log.events import (
    Cause,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    Event,
    TurnReason,
    UserMessage,
)
from harness.log.json_form import event_from_json, event_to_json
from harness.log.session_log import SessionLog
from harness.loop.scope import CancelScope
from harness.model.call import CancelSignal
from harness.model.chunks import Usage
from harness.model.messages import MessageId, PluginSource, text_of
from lanes.unit.capabilities.shortened import WORDS, Shortened, between_brackets
from lanes.unit.loop.rig import ROUTE, Rig, message, texts, tool
from lanes.unit.loop.scripted_model import Gated, Hang, Throw, calls, failing, open_text, text

Make = Callable[..., Rig]
OVERFLOW = "CONTEXT_WINDOW_EXCEEDED"
SHORT = "Summary of the earlier part of this session, which is no longer shown:\n\nshort"
ASKED = "\n\nWhat the user last asked there, word for word:\n\n"


def manual(short: Shortened) -> Callable[[CancelSignal], object]:
    return lambda cancel: short.compaction.compact("manual", cancel)


# The bracket


async def test_the_bracket_stands_around_one_message_that_replaces_the_span(make_rig: Make) -> None:
    short = Shortened(
        make_rig, text(WORDS), text(WORDS), text("c"), summaries=[text("short", usage=Usage(90, 3))], limit=250
    )  # fmt: skip
    await short.rig.run("one")
    await short.rig.run("two")
    await short.rig.run("three")
    log = short.rig.log
    assert between_brackets(log) == ["compaction/start", "compaction/summary", "user/message", "compaction/end"]
    assert short.brackets == ["start pressure", "summary", "end done"]
    start = log.last(CompactionStart)
    assert start is not None
    replacing = log[start.seq + 2]
    assert isinstance(replacing.payload, UserMessage)
    assert (replacing.payload.message.source, text_of(replacing.payload.message)) == (
        PluginSource("compaction", "recall"),
        SHORT + ASKED + "two",
    )
    assert replacing.source_event_seqs is not None
    shown = [text_of(each) for each in log.messages()]
    assert shown == [SHORT + ASKED + "two", "three", "c"]
    assert short.rig.payloads(CompactionSummary)[0].facts == {
        "provider": "scripted",
        "model": "model-1",
        "messages": 4,
        "tokensBefore": 252,
        "tokensAfter": 33,
        "inputTokens": 90,
        "outputTokens": 3,
    }
    assert texts(short.rig.model.requests[-1]) == [SHORT + ASKED + "two", "three"]


async def test_a_crash_leaves_a_start_on_disk_before_the_model_is_asked(make_rig: Make) -> None:
    durable: list[int] = []
    short = Shortened(make_rig, text(WORDS), text("b"), summaries=[text("short")], limit=100)
    short.model._on_request = lambda request: durable.append(short.rig.writer.durable)
    await short.rig.run("one", "two")
    start = short.rig.log.last(CompactionStart)
    assert start is not None
    assert durable == [start.seq + 1]


async def test_a_start_of_an_ended_lifetime_is_stale_and_one_of_this_lifetime_is_a_lock(make_rig: Make) -> None:
    first = Shortened(make_rig, text(WORDS), text(WORDS))
    await first.rig.run("one", "two")
    first.rig.log.append(CompactionStart("left open", "manual"))
    locked = open_compaction(first.rig.log)
    with pytest.raises(UsageError) as raised:
        await first.compaction.compact("manual", CancelScope())
    stored: list[Event] = [event_from_json(event_to_json(event)) for event in first.rig.log]
    second = Shortened(make_rig, seed=stored, summaries=[text("short")])
    stale = open_compaction(second.rig.log)
    outcome = await second.compaction.compact("manual", CancelScope(), 0)
    assert (locked, stale) == (CompactionStart("left open", "manual"), None)
    assert (raised.value.error_code, outcome) == ("COMPACTION_RUNNING", "done")
    assert open_compaction(second.rig.log) is None


# Under pressure


async def test_nothing_happens_below_the_limit(make_rig: Make) -> None:
    short = Shortened(make_rig, text(WORDS), text("b"), limit=1000)
    await short.rig.run("one", "two")
    assert (short.brackets, short.model.requests) == ([], [])


async def test_the_providers_own_figures_decide(make_rig: Make) -> None:
    short = Shortened(
        make_rig, text(WORDS, usage=Usage(400, 9)), text("b"), summaries=[text("short")], limit=400
    )  # fmt: skip
    await short.rig.run("one", "two")
    assert short.brackets == ["start pressure", "summary", "end done"]


async def test_what_was_claimed_counts_and_stays(make_rig: Make) -> None:
    short = Shortened(make_rig, text(WORDS), text("b"), summaries=[text("short")], limit=200)
    await short.rig.run("one", WORDS)
    assert short.brackets == ["start pressure", "summary", "end done"]
    assert texts(short.rig.model.requests[-1]) == [SHORT + ASKED + "one", WORDS]


async def test_a_turn_of_many_tool_rounds_is_cut_between_two_of_them(make_rig: Make) -> None:
    looks = [calls((f"c{at}", "look", "{}"), said="w" * 40) for at in range(6)]
    short = Shortened(
        make_rig, *looks, text("done"), summaries=[text("short")], tools=[tool("look", "r" * 160)], limit=250
    )  # fmt: skip
    await short.rig.run("go on until you know")
    assert short.brackets == ["start pressure", "summary", "end done"]
    assert short.rig.outcomes == ["completed"]
    assert texts(short.rig.model.requests[5])[0] == SHORT + ASKED + "go on until you know"


FAILING = {
    "provider": ([failing("SERVER")], "end failed: scripted SERVER [SERVER]"),
    "no_words": ([text("")], "end failed: the model wrote no summary [EMPTY_RESPONSE]"),
    "longer": (
        [text(WORDS * 3)],
        "end failed: the summary has 406 tokens, what it stands for 126 [NOT_SHORTER]",
    ),
}


@pytest.mark.parametrize(("summaries", "end"), FAILING.values(), ids=FAILING.keys())
async def test_a_compaction_that_fails_never_fails_the_turn_and_is_not_tried_at_every_step(
    make_rig: Make, summaries: list[object], end: str
) -> None:
    short = Shortened(
        make_rig, text(WORDS), calls(("c", "look", "{}")), text("b"),
        summaries=summaries, tools=[tool("look")], limit=100,
    )  # fmt: skip
    before = await _surface_after(short, "one")
    await short.rig.run("two")
    assert short.brackets == ["start pressure", end]
    assert (short.rig.outcomes, short.rig.log.surface()[: len(before)]) == (["completed"] * 2, before)


async def _surface_after(short: Shortened, prompt: str) -> tuple[int, ...]:
    await short.rig.run(prompt)
    return short.rig.log.surface()


async def test_a_broken_log_or_disk_during_pressure_is_contained(make_rig: Make) -> None:
    short = Shortened(make_rig, text(WORDS), text("b"), limit=100)
    await short.rig.run("one")
    short.rig.log.append(CompactionStart("somebody else's", "manual"))
    await short.rig.run("two")
    assert (short.rig.outcomes, len(short.compaction.failures), short.model.requests) == (["completed"] * 2, 1, [])


async def test_too_little_to_win_is_left_alone(make_rig: Make) -> None:
    """Tools and system text that alone reach the limit would else cost a model call at every step."""
    short = Shortened(make_rig, text("a", usage=Usage(5000, 1)), text("b"), limit=4000)
    await short.rig.run("one", "two")
    assert short.brackets == []


async def test_a_cancel_during_pressure_ends_the_compaction_and_the_turn(make_rig: Make) -> None:
    hanging = Hang(open_text("half"))
    short = Shortened(make_rig, text(WORDS), summaries=[hanging], limit=100)
    before = await _surface_after(short, "one")
    short.rig.agent.followup(message("two"))
    await hanging.reached.wait()
    short.rig.agent.cancel(Cause("user"))
    await short.rig.idle()
    assert short.brackets == ["start pressure", "end cancelled"]
    assert (short.rig.reasons[-1], short.rig.log.surface()) == (TurnReason("aborted", Cause("user")), before)


# After an overflow


async def test_R09_an_overflow_is_tried_once_more_after_a_compaction_that_changed_the_surface(make_rig: Make) -> None:
    short = Shortened(
        make_rig, text(WORDS), failing(OVERFLOW, status=400), text("fits"), summaries=[text("short")]
    )  # fmt: skip
    await short.rig.run("one", "two")
    assert (short.brackets, short.rig.outcomes) == (["start overflow", "summary", "end done"], ["completed"] * 2)
    assert texts(short.rig.model.requests[-1])[-1] == "two"
    assert len(short.rig.model.requests) == 3


@pytest.mark.parametrize(
    "summary", [failing("SERVER"), text(WORDS * 3), failing("ABORTED")], ids=["failed", "longer", "aborted"]
)
async def test_R09_an_overflow_is_not_tried_again_when_the_compaction_changed_nothing(
    make_rig: Make, summary: object
) -> None:
    short = Shortened(make_rig, text(WORDS), failing(OVERFLOW), summaries=[summary])
    await short.rig.run("one", "two")
    assert [reason.failure and reason.failure.code for reason in short.rig.reasons] == [None, OVERFLOW]
    assert len(short.rig.model.requests) == 2


async def test_R09_a_single_message_that_is_too_long_cannot_be_helped(make_rig: Make) -> None:
    short = Shortened(make_rig, failing(OVERFLOW))
    await short.rig.run(WORDS)
    assert (short.brackets, short.rig.outcomes, short.model.requests) == ([], ["error"], [])


async def test_one_giant_result_gives_way_and_is_shown_to_the_summariser_in_part(make_rig: Make) -> None:
    short = Shortened(
        make_rig,
        calls(("c", "look", "{}")),
        failing(OVERFLOW),
        text("done"),
        summaries=[text("short")],
        tools=[tool("look", "x" * 100_000)],
    )
    await short.rig.run("look")
    assert texts(short.rig.model.requests[-1]) == [SHORT + ASKED + "look"]
    assert len(short.asked()) < 5000


async def test_two_overflows_in_one_step_end_the_turn(make_rig: Make) -> None:
    short = Shortened(
        make_rig, text(WORDS), failing(OVERFLOW), failing(OVERFLOW), summaries=[text("short")]
    )  # fmt: skip
    await short.rig.run("one", "two")
    assert (short.rig.outcomes, len(short.rig.model.requests)) == (["completed", "error"], 3)


# By hand


async def test_T10_by_hand_it_is_refused_while_a_turn_runs(make_rig: Make) -> None:
    gate = Gated(open_text("a"), text("b")[-2:])
    short = Shortened(make_rig, gate)
    short.rig.agent.followup(message("one"))
    await gate.reached.wait()
    with pytest.raises(UsageError) as raised:
        await short.rig.agent.run_maintenance(manual(short))  # type: ignore[arg-type] # an outcome, whatever it is
    gate.gate.set()
    await short.rig.idle()
    assert (raised.value.error_code, short.brackets) == ("NOT_IDLE", [])


async def test_T10_by_hand_the_status_stays_idle_and_what_wakes_meanwhile_runs_after_it(make_rig: Make) -> None:
    gate = Gated(open_text("sh"), [*open_text("sh")[1:], *text("sh")[-2:]])
    short = Shortened(make_rig, text(WORDS), text("b"), summaries=[gate])
    await short.rig.run("one")
    statuses = len(short.rig.statuses)
    by_hand = asyncio.ensure_future(short.rig.agent.run_maintenance(manual(short)))  # type: ignore[arg-type] # as above
    await gate.reached.wait()
    short.rig.agent.followup(message("two", "two"))
    during = (short.rig.agent.status, len(short.rig.statuses) - statuses)
    gate.gate.set()
    assert await by_hand == "done"
    await short.rig.idle()
    assert (during, short.brackets) == (("idle", 0), ["start manual", "summary", "end done"])
    assert texts(short.rig.model.requests[-1])[-1] == "two"


async def test_T10_a_cancel_reaches_a_compaction_by_hand_and_leaves_the_surface_as_it_was(make_rig: Make) -> None:
    hanging = Hang(open_text("half"))
    short = Shortened(make_rig, text(WORDS), text("b"), summaries=[hanging])
    before = await _surface_after(short, "one")
    by_hand = asyncio.ensure_future(short.rig.agent.run_maintenance(manual(short)))  # type: ignore[arg-type] # as above
    await hanging.reached.wait()
    short.rig.agent.cancel(Cause("user"))
    assert (await by_hand, short.brackets) == ("cancelled", ["start manual", "end cancelled"])
    assert short.rig.log.surface() == before
    await short.rig.run("two")


async def test_by_hand_there_may_be_nothing_to_do_and_nothing_is_written(make_rig: Make) -> None:
    short = Shortened(make_rig)
    assert await short.rig.agent.run_maintenance(manual(short)) == "nothing"  # type: ignore[arg-type] # as above
    assert len(short.rig.log) == 0


async def test_a_host_that_cancels_the_task_leaves_a_closed_bracket(make_rig: Make) -> None:
    hanging = Hang(open_text("half"))
    short = Shortened(make_rig, text(WORDS), summaries=[hanging])
    await short.rig.run("one")
    by_hand = asyncio.ensure_future(short.compaction.compact("manual", CancelScope(), 0))
    await hanging.reached.wait()
    by_hand.cancel()
    with pytest.raises(asyncio.CancelledError):
        await by_hand
    assert short.brackets == ["start manual", "end cancelled"]


# What the log says of a request that led to no summary


def asked_by_the_log(short: Shortened) -> list[bool]:
    """For each span that the log allows, whether the last summary that was asked for is of it."""
    log = short.rig.log
    start = log.last(CompactionStart)
    assert start is not None
    assert isinstance(start.payload, CompactionStart)
    before = SessionLog(log.header, clock=lambda: 0)
    for event in log[: start.seq]:
        before.restore(event)
    spans = spans_at_end(before, start.payload.reason)
    (asked,) = short.model.requests
    return [summary_request(ROUTE, span.messages).messages == asked.messages for span in spans]


@pytest.mark.parametrize("limit", [200, 300, 520])
@pytest.mark.parametrize("prompt", ["two", WORDS * 4], ids=["short", "long"])
async def test_under_pressure_the_log_names_the_span_among_those_that_its_length_allows(
    make_rig: Make, limit: int, prompt: str
) -> None:
    short = Shortened(make_rig, *[text(WORDS)] * 5, summaries=[failing("SERVER")] * 9, limit=None)
    for _ in range(4):
        await short.rig.run(WORDS[:80])
    short.compaction._limit = limit
    await short.rig.run(prompt)
    assert short.brackets == ["start pressure", "end failed: scripted SERVER [SERVER]"]
    assert asked_by_the_log(short).count(True) == 1


async def test_by_hand_and_after_an_overflow_the_log_names_the_one_span(make_rig: Make) -> None:
    hand = Shortened(make_rig, *[text(WORDS)] * 3, summaries=[failing("SERVER")])
    for prompt in ("one", "two", "three"):
        await hand.rig.run(prompt)
    assert await hand.rig.agent.run_maintenance(manual(hand)) == "failed"  # type: ignore[arg-type] # as above
    long = Shortened(make_rig, *[text(WORDS)] * 3, failing(OVERFLOW), summaries=[failing("SERVER")])
    for prompt in ("one", "two", "three", "four"):
        await long.rig.run(prompt)
    assert (hand.brackets[0], asked_by_the_log(hand)) == ("start manual", [True])
    assert (long.brackets[0], asked_by_the_log(long)) == ("start overflow", [True])


async def test_the_code_of_a_failure_stands_whole_behind_words_that_are_cut(make_rig: Make) -> None:
    reply = Throw(ProviderError("w" * 9000, code="SERVER"))
    short = Shortened(make_rig, text(WORDS), text("b"), summaries=[reply], limit=100)
    await short.rig.run("one", "two")
    assert short.brackets[1] == f"end failed: {'w' * MAX_REASON_CHARACTERS} [SERVER]"


# Summaries of summaries


async def test_a_later_compaction_takes_the_earlier_summary_in(make_rig: Make) -> None:
    answers = [text(WORDS) for _ in range(8)]
    short = Shortened(make_rig, *answers, summaries=[text("early"), text("late")], limit=400)
    for at in range(8):
        await short.rig.run(f"prompt {at}")
    assert short.brackets == ["start pressure", "summary", "end done"] * 2
    assert "early" in short.asked()
    summaries = [each for each in short.rig.log.messages() if isinstance(each.source, PluginSource)]
    assert ["late" in text_of(each) for each in summaries] == [True]
    ends = short.rig.payloads(CompactionEnd)
    assert [end.compaction_id for end in ends] == [start.compaction_id for start in short.rig.payloads(CompactionStart)]


async def test_a_very_long_last_request_is_kept_in_part(make_rig: Make) -> None:
    short = Shortened(make_rig, text("a"), summaries=[text("short")])
    short.rig.agent.followup(message("q" * 9000, "long"))
    await short.rig.idle()
    assert await short.compaction.compact("manual", CancelScope(), 0) == "done"
    (shown,) = short.rig.log.messages()
    assert (text_of(shown).endswith("q […]"), text_of(shown).count("q")) == (True, MAX_REQUEST_CHARACTERS)
    assert MessageId("long") not in [each.id for each in short.rig.log.messages()]
