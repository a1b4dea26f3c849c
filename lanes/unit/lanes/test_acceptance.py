"""Where the command that accepts refuses to: what nobody reads, and what belongs to another tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.cli import main


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to stand in, outside tox and CI."""
    for name in ("LANE_MARK", "TOX_ENV_NAME", "CI", "LANE_WORKERS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_lane_11_nothing_is_accepted_in_ci(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    code = main(["accept", "no-such-story"])  # or the whole suite would be played where nothing refuses

    assert (code, "not accepted in CI" in capsys.readouterr().err) == (1, True)


def test_lane_11_nothing_is_accepted_for_another_tree_than_the_one_at_hand(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (outside / "lanes" / "snapshot" / "expected").mkdir(parents=True)

    code = main(["accept"])

    assert (code, "[OTHER_COPY]" in capsys.readouterr().err) == (2, True)
    assert list((outside / "lanes" / "snapshot" / "expected").iterdir()) == []
