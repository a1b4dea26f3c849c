"""The lane `real` from end to end over real TLS: a stand-in for a provider, admitted under its own table alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lanes.policy import LANES
from lanes.unit.lanes.stand_in import KEY, KEY_VALUE, LiveCopy, copy_project, open_stand_in
from reports.output import load_board
from reports.words import NO_LIVE

FIX_TEST = ("-k", "fixes_the_failing")
COLUMN = "real:stand-in"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCopy]:
    folder = tmp_path_factory.mktemp("stand-in")
    with open_stand_in(folder) as stand_in:
        yield LiveCopy(copy_project(folder / "project", stand_in.authority, stand_in.port), stand_in)


def items(live: LiveCopy, column: str = COLUMN) -> dict[str, dict[str, Any]]:
    found = next(each for each in live.board["columns"] if each["id"] == column)
    return {each["node_id"].partition("::")[2]: each for each in found["items"]}


@pytest.fixture(scope="module")
def honest(live: LiveCopy) -> tuple[Any, dict[str, Any]]:
    """One run of a journey against a stand-in that answers as it should, and what it left."""
    live.stand_in.be("well")
    return live.run(*FIX_TEST), live.board


def test_a_journey_over_real_tls_is_admitted_under_the_table_of_the_test(
    live: LiveCopy, honest: tuple[Any, dict[str, Any]]
) -> None:
    ended, board = honest

    assert (ended.exit_code, board["voids"]) == (0, [])
    assert live.cell("journey.fix-test")["words"] == "passed 1"
    assert (live.stand_in.keys, KEY_VALUE in ended.stdout) == ({KEY_VALUE}, False)


def test_live_26_a_private_endpoint_never_appears_under_the_heading_of_a_vendor(
    live: LiveCopy, honest: tuple[Any, dict[str, Any]]
) -> None:
    assert live.cell("journey.fix-test", "real")["words"].startswith("not run")


def test_the_same_evidence_is_void_on_a_board_with_the_committed_table(
    live: LiveCopy, honest: tuple[Any, dict[str, Any]]
) -> None:
    now = datetime.now(UTC)
    root = live.project.root

    own = load_board(root / "reports" / "out", root, now)

    assert {(void.rule, void.code) for void in own.voids} == {("A3", "host")}
    assert own.banner == NO_LIVE


def reasons(live: LiveCopy, column: str = "real") -> set[tuple[str, str]]:
    """Status and reason code of every item that was looked at."""
    return {
        (each["status"], (each["reason"] or {}).get("code", ""))
        for each in items(live, column).values()
        if (each["reason"] or {}).get("code") != "deselected"
    }


@pytest.mark.parametrize(
    ("mood", "code", "words"),
    [
        pytest.param("rejects", "credential-rejected", "the provider answered 401", id="status-30-rejected-key"),
        pytest.param("spent", "quota", "its quota or balance is spent", id="spent-before-the-start"),
        pytest.param("busy", "outage", "the provider answered 503", id="outage"),
        pytest.param("late", "clock", "this clock and the provider's differ by", id="clock-off"),
        pytest.param("mumbles", "preflight", "does not hold the word that was asked for", id="no-nonce"),
    ],
)
def test_a_preflight_that_fails_blocks_the_claims_and_asks_no_more(
    live: LiveCopy, mood: str, code: str, words: str
) -> None:
    live.stand_in.be(mood)

    ended = live.run("--require-live")

    assert (ended.exit_code, len(live.stand_in.requests)) == (4, 1)
    assert reasons(live) == {("blocked", code)}
    assert f"stand-in: blocked ({code})" in ended.stdout
    assert words in ended.stdout
    assert not any(line.startswith("journey") and "passed" in line for line in ended.stdout.splitlines())


def test_a_host_that_is_not_reached_blocks_its_claims(live: LiveCopy, tmp_path: Path) -> None:
    table = live.project.root / "lanes" / "providers.toml"
    before = table.read_text("utf-8")
    table.write_text(before.replace(f":{live.stand_in.port}/", ":1/"), "utf-8")
    try:
        ended = live.run(HTTPS_PROXY="http://127.0.0.1:1")
    finally:
        table.write_text(before, "utf-8")

    assert reasons(live) == {("blocked", "outage")}
    assert "127.0.0.1 was not reached: ConnectError" in ended.stdout
    assert "not used, the lane asks the hosts of its table directly:" in ended.stdout
    assert "HTTPS_PROXY" in ended.stdout


def test_status_31_a_quota_that_ends_half_way_leaves_what_was_finished_and_blocks_the_rest(live: LiveCopy) -> None:
    live.stand_in.be("well", good_for=5, then="spent")  # the preflight, one whole journey, and one request of the next

    ended = live.run()

    found = {**items(live, "real"), **items(live)}
    assert sorted(each["status"] for each in found.values()) == ["blocked", "blocked", "passed"]
    assert (ended.exit_code, len(live.stand_in.requests)) == (0, 6)


def test_a_key_that_is_withdrawn_half_way_is_tried_once_more_and_never_again(live: LiveCopy) -> None:
    live.stand_in.be("well", good_for=1, then="rejects")

    live.run()

    assert reasons(live) == {("blocked", "credential-rejected")}
    assert len(live.stand_in.requests) == 2


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param("", "set STANDIN_API_KEY or ACME_API_KEY", id="unset"),
        pytest.param("   ", "STANDIN_API_KEY is blank", id="status-29-blank"),
        pytest.param("<your key>", "STANDIN_API_KEY is a placeholder", id="status-29-placeholder"),
    ],
)
def test_status_28_29_without_a_usable_key_nothing_is_asked_and_the_reason_is_told(
    live: LiveCopy, value: str, words: str
) -> None:
    live.stand_in.be("well")

    ended = live.run(**{KEY: value})

    assert (ended.exit_code, live.stand_in.requests) == (0, [])
    assert "not run: no key" in ended.stdout
    assert words in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(
            ("--target", "stan-in"),
            "--target 'stan-in' is unknown; did you mean 'stand-in'? [USAGE]\n  expected: one of stand-in, acme",
            id="unknown-target",
        ),
        pytest.param(
            ("--target", "stand-in", "--model", "m-stand"),
            "--model 'm-stand' is unknown; did you mean 'm-standard'? [USAGE]\n  expected: one of m-standard, m-old",
            id="unknown-model",
        ),
        pytest.param(("--budget-usd", "free"), "--budget-usd is 'free' [USAGE]", id="no-amount"),
        pytest.param(("--attempts", "0"), "--attempts is '0' [USAGE]", id="no-attempt"),
    ],
)
def test_what_cannot_be_asked_for_is_said_in_words(live: LiveCopy, arguments: tuple[str, ...], words: str) -> None:
    live.stand_in.be("well")

    ended = live.run(*arguments)

    assert (ended.exit_code, words in ended.stderr, live.stand_in.requests) == (2, True, [])


def test_attempts_are_a_sample_whose_rate_stands_in_the_cell(live: LiveCopy) -> None:
    live.stand_in.be("well", fails_at=frozenset({2}))

    live.run(*FIX_TEST, "--attempts", "5")

    assert live.cell("journey.fix-test")["words"] == "flaky 1 (4/5, 95 % interval 37 % to 97 %)"


def test_budget_64_a_model_without_a_price_is_not_asked_at_all(live: LiveCopy) -> None:
    live.stand_in.be("well")

    ended = live.run("--model", "m-no-price", "--target", "stand-in")

    assert (reasons(live), live.stand_in.requests) == ({("not run", "budget")}, [])
    assert "the price of this model is not known" in ended.stdout


def test_a_budget_that_ends_inside_a_task_blocks_it_and_runs_no_further_one(live: LiveCopy) -> None:
    live.stand_in.be("well")

    live.run("--budget-usd", "0.006")

    statuses = {each["status"] for each in items(live, "real").values()}
    assert {code for _status, code in reasons(live)} <= {"budget", "budget-midway"}
    assert ("passed" in statuses, "failed" in statuses) == (False, False)
    assert any(code == "budget-midway" for _status, code in reasons(live))


def test_an_answer_that_does_not_say_what_it_used_counts_as_all_that_was_left(live: LiveCopy) -> None:
    live.stand_in.be("well")

    ended = live.run("--model", "m-no-usage", "--target", "stand-in")

    assert (reasons(live), len(live.stand_in.requests)) == ({("blocked", "budget-midway")}, 1)
    assert "an answer did not say what it used" in ended.stdout
