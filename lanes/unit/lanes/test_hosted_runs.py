"""The lane `real` from end to end over real TLS: a stand-in for a provider, admitted under its own table alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lanes.unit.lanes.stand_in import KEY_VALUE, LiveCopy, copy_project, open_stand_in
from reports.output import load_board
from reports.words import NO_LIVE

FIX_TEST = ("-k", "fixes_the_failing")
COLUMN = "real:stand-in"
JOURNEYS = ("journey.fix-test", "journey.resume-session", "journey.missing-file")


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
    """One run of every journey against a stand-in that does as it is told, in both dialects, and what it left."""
    live.stand_in.be("well")
    return live.run(MESSAGES_API_KEY="sk-canary-of-the-other-78"), live.board


def test_every_journey_over_real_tls_is_admitted_under_the_table_of_the_test(
    live: LiveCopy, honest: tuple[Any, dict[str, Any]]
) -> None:
    ended, board = honest

    assert (ended.exit_code, board["voids"]) == (0, [])
    cells = [live.cell(claim, column)["words"] for claim in JOURNEYS for column in (COLUMN, "real:messages")]
    assert cells == ["passed 1"] * 6
    assert (live.stand_in.keys, "sk-canary" in ended.stdout) == ({KEY_VALUE, "sk-canary-of-the-other-78"}, False)


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


def reasons(live: LiveCopy) -> list[tuple[str, str]]:
    """Status and reason code of every item, in every column of the lane, sorted."""
    found = [*items(live, "real").values(), *(items(live).values() if COLUMN in columns(live) else ())]
    return sorted((each["status"], (each["reason"] or {}).get("code", "")) for each in found)


def columns(live: LiveCopy) -> set[str]:
    return {each["id"] for each in live.board["columns"]}


def test_attempts_are_a_sample_whose_rate_stands_in_the_cell(live: LiveCopy) -> None:
    live.stand_in.be("well", fails_at=frozenset({2}))

    ended = live.run(*FIX_TEST, "--attempts", "3")

    assert live.cell("journey.fix-test")["words"] == "flaky 1 (2/3, 95 % interval 20 % to 94 %)"
    assert (ended.exit_code, len(live.board["voids"])) == (0, 0)


def test_a_budget_that_ends_inside_a_task_blocks_it_and_is_told(live: LiveCopy) -> None:
    live.stand_in.be("well")

    ended = live.run(*FIX_TEST, "--budget-usd", "0.006")

    assert ("blocked", "budget-midway") in reasons(live)
    assert ("passed", "") not in reasons(live)
    assert "of $0.006, an estimate" in ended.stdout
