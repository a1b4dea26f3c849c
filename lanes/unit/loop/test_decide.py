"""What comes next in a turn, from facts alone."""

from __future__ import annotations

import pytest

from harness.log.events import AssistantChunk, Event, StepEnd, StepStart, TurnEnd, TurnReason, TurnStart
from harness.loop.decide import (
    Action,
    AskStopping,
    ClaimInput,
    Decision,
    EndTurn,
    Enter,
    Reject,
    TurnState,
    advance,
    after_claim,
    after_step,
    drains_on,
    outcome,
)
from harness.model.chunks import Finish
from lanes.unit.loop.rig import message

COMPLETED = TurnReason("completed")
HI = (message("hi"),)


@pytest.mark.parametrize(
    ("state", "decision", "expected"),
    [
        (TurnState(1, True), Reject(), EndTurn(TurnReason("blocked"))),
        (TurnState(1, True, 2, settled=True), Reject(), EndTurn(TurnReason("blocked"))),
        (TurnState(1, True), Enter(()), EndTurn(COMPLETED)),
        (TurnState(1, True, 1, settled=True), Enter(()), EndTurn(COMPLETED)),
        (TurnState(1, True, 1, settled=True, cut=True), Enter(()), EndTurn(TurnReason("max-tokens"))),
        (TurnState(1, True, 1), Enter(()), Enter(())),
        (TurnState(1, True), Enter(HI), Enter(HI)),
    ],
    ids=["rejected", "rejected-later", "emptied-first", "emptied-later", "emptied-cut", "results-owed", "entered"],
)
def test_a_pre_step_decision_enters_the_step_or_ends_the_turn(
    state: TurnState, decision: Decision, expected: Enter | EndTurn
) -> None:
    assert after_claim(state, decision) == expected


@pytest.mark.parametrize(
    ("state", "waiting", "asked", "expected"),
    [
        (TurnState(1, True, 1), 0, False, ClaimInput("next-step")),
        (TurnState(1, True, 1, settled=True), 1, False, ClaimInput("next-step")),
        (TurnState(1, True, 1, settled=True), 0, False, AskStopping()),
        (TurnState(1, True, 1, settled=True), 0, True, EndTurn(COMPLETED)),
        (TurnState(1, True, 1, settled=True, cut=True), 0, True, EndTurn(TurnReason("max-tokens"))),
        (TurnState(1, True, 2), 0, False, ClaimInput("next-step")),
        (TurnState(1, True, 3), 0, False, EndTurn(TurnReason("step-limit"))),
        (TurnState(1, True, 3, settled=True), 1, True, EndTurn(TurnReason("step-limit"))),
        (TurnState(1, True, 3, settled=True), 0, True, EndTurn(COMPLETED)),
    ],
)
def test_T11_after_a_step_the_turn_goes_on_asks_or_ends(
    state: TurnState, waiting: int, asked: bool, expected: Action
) -> None:
    assert after_step(state, waiting, max_steps=3, asked=asked) == expected


@pytest.mark.parametrize(
    ("kind", "step", "expected"),
    [
        ("completed", 1, True),
        ("completed", 0, False),
        ("max-tokens", 1, True),
        ("aborted", 0, True),
        ("step-limit", 50, True),
        ("error", 1, False),
        ("blocked", 1, False),
    ],
)
def test_B9_only_an_end_with_work_done_lets_the_next_turn_open_by_itself(kind: str, step: int, expected: bool) -> None:
    assert drains_on(TurnState(1, True, step), TurnReason(kind)) is expected  # type: ignore[arg-type]


def test_an_unsettled_step_has_no_outcome() -> None:
    assert outcome(TurnState(1, True, 1)) is None


def test_the_state_follows_the_log_and_a_new_turn_forgets_the_last() -> None:
    payloads = [
        TurnStart(1),
        StepStart(1, 1),
        AssistantChunk(1, 1, Finish("max-tokens")),
        StepEnd(1, 1),
        TurnEnd(1, COMPLETED),
        TurnStart(2),
    ]
    states = [TurnState()]
    for seq, payload in enumerate(payloads):
        states.append(advance(states[-1], Event(seq, 0, payload)))
    assert states[1:] == [
        TurnState(1, True),
        TurnState(1, True, 1, True),
        TurnState(1, True, 1, True, finish="max-tokens"),
        TurnState(1, True, 1, False, finish="max-tokens"),
        TurnState(1, False, 1, False, finish="max-tokens"),
        TurnState(2, True),
    ]
