"""The lane `real` against a stand-in that turns it away: what one refused key or a spent quota takes with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lanes.unit.lanes.stand_in import LiveCopy, copy_project, open_stand_in

COLUMN = "real:stand-in"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCopy]:
    folder = tmp_path_factory.mktemp("stand-in")
    with open_stand_in(folder) as stand_in:
        yield LiveCopy(copy_project(folder / "project", stand_in.authority, stand_in.port), stand_in)


def reasons(live: LiveCopy) -> list[tuple[str, str]]:
    """Status and reason code of every item, in every column of the lane, sorted."""
    found: list[dict[str, Any]] = [
        item for column in live.board["columns"] if column["id"] in {"real", COLUMN} for item in column["items"]
    ]
    return sorted((each["status"], (each["reason"] or {}).get("code", "")) for each in found)


def test_status_30_a_rejected_key_blocks_every_claim_after_one_request(live: LiveCopy) -> None:
    live.stand_in.be("rejects")

    ended = live.run("--require-live", HTTPS_PROXY="http://127.0.0.1:1")

    assert (ended.exit_code, len(live.stand_in.requests)) == (4, 1)
    assert reasons(live) == [("blocked", "credential-rejected")] * 3
    assert [live.cell("journey.fix-test", column)["words"].partition(":")[0] for column in (COLUMN, "real")] == [
        "blocked",
        "not run",
    ]
    assert "stand-in: blocked (credential-rejected): the provider answered 401 [PREFLIGHT]" in ended.stdout
    assert "HTTPS_PROXY" in next(line for line in ended.stdout.splitlines() if line.startswith("not used, "))
    assert not any(line.startswith("journey") and "passed" in line for line in ended.stdout.splitlines())


def test_status_31_a_quota_that_ends_half_way_leaves_what_was_finished_and_blocks_the_rest(live: LiveCopy) -> None:
    live.stand_in.be("well", good_for=5, then="spent")  # the preflight, one whole journey, and one request of the next

    ended = live.run()

    assert (ended.exit_code, reasons(live)) == (0, [("blocked", "quota"), ("blocked", "quota"), ("passed", "")])
