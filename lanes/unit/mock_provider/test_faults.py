"""An answer becomes a plan: gates, waits and deaths at their piece."""

from __future__ import annotations

import pytest

from mock_provider.faults import Action, Delay, Die, Head, Item, Send, Wait, plan_stream, plan_whole
from mock_provider.steps import FaultAt, GateAt, Split, Step, StreamPlan

HEAD = Head(200, ())
ROLE, END = Send(b"role"), Send(b"end")
ONE, TWO = Send(b"one", True), Send(b"two", True)
ITEMS: tuple[Item, ...] = (ROLE, ONE, TWO, END)


@pytest.mark.parametrize(
    ("step", "actions"),
    [
        pytest.param(Step(1), [HEAD, *ITEMS], id="plain"),
        pytest.param(Step(1, fault=FaultAt("reset")), [Die("reset")], id="dead-before-the-head"),
        pytest.param(Step(1, fault=FaultAt("cut", 0)), [HEAD, ROLE, Die("cut")], id="after-none"),
        pytest.param(Step(1, fault=FaultAt("cut", 1)), [HEAD, ROLE, ONE, Die("cut")], id="after-one"),
        pytest.param(Step(1, fault=FaultAt("cut", 9)), [HEAD, ROLE, ONE, TWO, Die("cut")], id="beyond-the-end"),
        pytest.param(
            Step(1, gates=(GateAt("a"), GateAt("b", 1)), fault=FaultAt("stall", 1)),
            [Wait("a"), HEAD, ROLE, ONE, Wait("b"), Die("stall")],
            id="gates-and-fault",
        ),
        pytest.param(
            Step(1, stream=StreamPlan(first_ms=5, every_ms=7)),
            [HEAD, ROLE, Delay(5), ONE, Delay(7), TWO, END],
            id="paced",
        ),
        pytest.param(
            Step(1, stream=StreamPlan(split=Split("bytes", 2))),
            [
                HEAD,
                *(Send(part) for part in (b"ro", b"le", b"on")),
                Send(b"e", True),
                Send(b"tw"),
                Send(b"o", True),
                Send(b"en"),
                Send(b"d"),
            ],
            id="bytes",
        ),
        pytest.param(
            Step(1, stream=StreamPlan(events_per_write=3)), [HEAD, Send(b"roleonetwo", True), END], id="joined-by-three"
        ),
        pytest.param(
            Step(1, stream=StreamPlan(events_per_write=0), gates=(GateAt("a", 1),)),
            [HEAD, Send(b"roleone", True), Wait("a"), Send(b"twoend", True)],
            id="joined-but-not-across-a-gate",
        ),
    ],
)
def test_a_stream_is_planned(step: Step, actions: list[Action]) -> None:
    assert list(plan_stream(HEAD, ITEMS, step).actions) == actions


@pytest.mark.parametrize(
    ("step", "actions"),
    [
        pytest.param(None, [Head(200, (), 4), Send(b"body", True)], id="plain"),
        pytest.param(Step(1, fault=FaultAt("reset", 0)), [Head(200, (), 4), Die("reset")], id="after-none"),
        pytest.param(Step(1, fault=FaultAt("cut", 2)), [Head(200, (), 4), Send(b"bo", True), Die("cut")], id="half"),
        pytest.param(Step(1, fault=FaultAt("end", 1)), [Head(200, (), None), Send(b"bo", True), Die("end")], id="end"),
        pytest.param(
            Step(1, gates=(GateAt("a"),), stream=StreamPlan(first_ms=3)),
            [Wait("a"), Delay(3), Head(200, (), 4), Send(b"body", True)],
            id="gate-and-wait",
        ),
    ],
)
def test_a_whole_answer_is_planned(step: Step | None, actions: list[Action]) -> None:
    assert list(plan_whole(HEAD, b"body", step).actions) == actions
