"""One command at a time writes a board."""

from __future__ import annotations

import fcntl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.output import build_reports

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

NOW = datetime(2031, 3, 7, 2, 0, tzinfo=UTC)


def test_nothing_is_read_or_written_before_the_board_is_ours_alone(
    tmp_path: Path, evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def held_by_another(file: object, operation: int) -> None:
        asked.append(operation)
        raise InterruptedError  # as if we were stopped while we wait

    monkeypatch.setattr(fcntl, "flock", held_by_another)
    with pytest.raises(InterruptedError):
        build_reports(tmp_path, tmp_path, NOW, subject=evidence.subject, claims=evidence.claims())
    there = sorted(path.name for path in tmp_path.iterdir())
    assert (asked, there) == ([fcntl.LOCK_EX], ["locks"]), "a board was written beside another"


def test_a_second_board_waits_for_the_lock_of_the_first(tmp_path: Path, evidence: Evidence) -> None:
    build_reports(tmp_path, tmp_path, NOW, subject=evidence.subject, claims=evidence.claims())
    with (tmp_path / "locks" / "board").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the first gave it back when it was written
