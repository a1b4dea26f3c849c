"""Faults by lot: repeatable, said aloud, and never in the way of a client that tries again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from mock_provider.errors import ScriptError
from mock_provider.json_values import Json, JsonObject
from mock_provider.random_faults import Draw, all_random, draw, hit, say_seeds, with_seed
from mock_provider.replies import conversation, http_error, random_faults, script, step
from mock_provider.script import ScriptLike, build_script, parse_script
from mock_provider.steps import ErrorEvent, FaultAt, HttpError, RandomFaults, Step, Text

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
HALF: JsonObject = {"random": {"weights": {"none": 1, "503": 1}, "seed": 7}}


def statuses(run: Play, count: int, **more: str) -> list[int]:
    return [run.ask("x", headers=more).status_code for _ in range(count)]


def test_the_same_seed_draws_the_same_sequence_and_another_seed_another_one(play: Start) -> None:
    def sequence(seed: int) -> list[int]:
        return statuses(play(with_seed(build_script(script(step("hi", repeat="forever", fault=HALF))), seed)), 40)

    first = sequence(7)
    assert (first, {200, 503} == set(first)) == (sequence(7), True)
    assert first != sequence(8)


def test_the_sequence_of_a_conversation_does_not_depend_on_the_others(play: Start) -> None:
    both = script(fault=HALF, conversations={name: conversation(step("hi", repeat="forever")) for name in ("a", "b")})
    alone, mixed = play(both), play(both)
    expected = statuses(alone, 20, **{"x-mock-conversation": "a"})
    got = []
    for _ in range(20):
        statuses(mixed, 2, **{"x-mock-conversation": "b"})
        got += statuses(mixed, 1, **{"x-mock-conversation": "a"})
    assert got == expected


def test_a_request_that_is_hit_uses_no_step_up(play: Start) -> None:
    run = play(script(step("one"), step("two"), fault=HALF))
    said = [run.ask("x") for _ in range(12)]
    answers = [answer.json()["choices"][0]["message"]["content"] for answer in said if answer.status_code == 200]
    assert answers == ["one", "two"]
    assert [entry.rule for entry in run.mock.journal.entries if entry.status == 503][:1] == ["RANDOM_FAULT"]


def test_the_journal_says_what_was_drawn(play: Start) -> None:
    run = play(script(step("one", fault={"random": {"weights": {"overloaded": 1}, "seed": 3}})))
    answer = run.ask("x")
    entry = run.mock.journal[0]
    assert (answer.status_code, entry.problem) == (503, "random fault 'overloaded' (seed 3, draw 1)")
    assert run.mock.verify().left == ("script: step 1 was never taken",)


def test_no_more_than_so_many_requests_in_a_row_are_hit(play: Start) -> None:
    faults: JsonObject = {"random": {"weights": {"500": 1}, "in_a_row": 2}}
    run = play(script(step("hi", repeat="forever", fault=faults)))
    assert statuses(run, 7) == [500, 500, 200, 500, 500, 200, 500]


def test_the_next_try_after_a_hit_goes_on_in_its_conversation(play: Start) -> None:
    faults: JsonObject = {"random": {"weights": {"500": 1}, "in_a_row": 1}}
    run = play(
        script(
            conversations={
                "a": conversation(step("A", fault=faults), when={"user_contains": "x"}),
                "b": conversation(step("B"), when={"user_contains": "never"}),
            }
        )
    )
    assert [run.ask("x").status_code, run.say("x")] == [500, "A"]
    assert [entry.conversation for entry in run.mock.journal.entries] == ["a", "a"]


def test_a_reset_by_lot_reaches_the_client_as_one(play: Start) -> None:
    run = play(script(step("hi", fault={"random": {"weights": {"before_reset": 1}}})))
    with pytest.raises(httpx.ReadError):
        run.ask("x")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("reset", Step(1, parts=(Text("a"),), fault=FaultAt("reset", 0)), id="inside"),
        pytest.param("before_stall", Step(1, fault=FaultAt("stall")), id="before"),
        pytest.param("429", Step(1, parts=(Text("a"),), http_error=HttpError(429)), id="status"),
        pytest.param("quota", Step(1, parts=(Text("a"),), http_error=HttpError(0, cause="quota")), id="cause"),
        pytest.param(
            "error_event", Step(1, parts=(ErrorEvent("", cause="server_error"),), finish=None), id="error-event"
        ),
    ],
)
def test_a_fault_changes_the_step(name: str, expected: Step) -> None:
    assert hit(Step(1, parts=(Text("a"),)), Draw(name, 0, 1, 7)) == expected


def test_a_page_of_a_gateway_can_be_drawn() -> None:
    error = hit(Step(1), Draw("gateway", 0, 1, 7)).http_error
    assert error is not None
    assert (error.status, error.content_type) == (502, "text/html")


def test_weights_are_shares() -> None:
    faults = RandomFaults((("none", 3), ("reset", 1)), 5)
    drawn = [draw(faults, ("a", "", 1), number, 0) for number in range(4000)]
    assert 900 < sum(one is not None for one in drawn) < 1100
    assert {one.after for one in drawn if one is not None} == set(range(8))


def test_the_seed_is_said_in_verdict_and_summary(play: Start) -> None:
    run = play(script(step("hi", repeat="forever", fault=HALF)))
    assert str(run.mock.verify()).splitlines()[0].endswith("; random faults, seed 7 [VERDICT]")
    assert say_seeds(build_script(script(step("hi")))) == ""


def test_a_script_without_a_seed_has_one_that_is_always_the_same() -> None:
    faults: JsonObject = {"random": {"weights": {"none": 1, "reset": 1}}}
    seeds = {all_random(build_script(script(step("hi"), fault=faults)))[0].seed for _ in range(3)}
    assert len(seeds) == 1


def test_a_step_with_a_fault_of_its_own_is_left_to_it() -> None:
    built = build_script(script(step("hi", fault={"kind": "cut", "after": 1}), step(http_error=500), fault=HALF))
    assert [one.random for one in built.conversations[0].steps()] == [None, None]


@pytest.mark.parametrize(
    ("written", "what"),
    [
        pytest.param("{weights: {rest: 1}}", "'rest' is no fault; did you mean 'reset'?", id="unknown"),
        pytest.param("{weights: {'200': 1}}", "'200' is no fault", id="status"),
        pytest.param("{weights: {reset: -1}}", "found the number -1", id="negative"),
        pytest.param("{weights: {reset: x}}", 'found the text "x"', id="text"),
        pytest.param("{weights: {none: 0}}", "no weight above 0", id="nothing"),
        pytest.param("{seed: 1}", "'weights' is missing", id="missing"),
        pytest.param("{weights: {reset: 1}, sed: 1}", "unknown key 'sed'; did you mean 'seed'?", id="key"),
    ],
)
def test_a_mistake_in_a_lot_is_told(written: str, what: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(f"version: 1\nsteps:\n  - {{reply: hi, fault: {{random: {written}}}}}\n", "x.yaml")
    problem = caught.value.problems[0]
    assert (problem.what.startswith(what), problem.line) == (True, 3)


def test_random_stands_alone_and_the_script_knows_no_other_fault() -> None:
    listed: list[Json] = [{"kind": "reset", "random": {"weights": {"reset": 1}}}]
    for fault in listed:
        with pytest.raises(ScriptError, match="other keys beside random"):
            build_script(script(step("hi", fault=fault)))
    with pytest.raises(ScriptError, match="unknown key 'kind'"):
        build_script(script(step("hi"), fault={"kind": "reset"}))


def test_faults_and_causes_are_built_in_python_as_in_the_file(play: Start) -> None:
    always = random_faults({"quota": 1}, seed=3, in_a_row=1)
    run = play(script(step("hi", fault=always), http_error(cause="overloaded"), http_error(418)))
    assert statuses(run, 4) == [429, 200, 503, 418]
