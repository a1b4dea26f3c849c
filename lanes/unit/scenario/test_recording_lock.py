"""One recorder a recording, whatever became of the one before."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from lanes.errors import CassetteError
from lanes.recording_lock import held_for_recording

ROOT = Path(__file__).parents[3]
DYING = """
import os, signal, sys
from pathlib import Path
from lanes.recording_lock import held_for_recording
with held_for_recording(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_while_one_records_another_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with held_for_recording(path):
        with pytest.raises(CassetteError) as caught, held_for_recording(path):
            pass
        with held_for_recording(tmp_path / "b.yaml"):
            pass
    assert (caught.value.error_code, caught.value.where) == ("CASSETTE_LOCKED", "a.yaml")


def test_a_recorder_that_was_killed_locks_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    died = subprocess.run([sys.executable, "-c", DYING, path], cwd=ROOT, check=False).returncode
    left = [each.name for each in tmp_path.iterdir()]
    with held_for_recording(path):
        pass
    assert (died, left, list(tmp_path.iterdir())) == (-9, [".a.yaml.lock"], [])


def test_a_lock_that_its_holder_took_away_meanwhile_is_not_taken_for_the_one_that_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "a.yaml", tmp_path / ".a.yaml.lock"
    flock = fcntl.flock
    taken: list[int] = []

    def late(held: int, how: int) -> None:
        if not taken:
            lock.unlink()  # the holder ends between the opening of its lock and the taking of it
        taken.append(held)
        flock(held, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with held_for_recording(path):
        assert lock.exists()
    assert len(taken) == 2
