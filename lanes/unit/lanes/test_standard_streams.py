"""The standard streams of the command: closed ones, and those that cannot spell what is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLAIM = """\
schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "\u2192 it holds."
surface = "none"
required = ["unit"]
owner = "us"
"""


def lanes(folder: Path, words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command by a shell, which closes what the words close."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    for name in ("LANE_MARK", "TOX_ENV_NAME"):
        environ.pop(name, None)
    command = ["sh", "-c", f"exec {sys.executable} -m lanes {words}"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project with one claim and no evidence."""
    (tmp_path / "lanes").mkdir()
    (tmp_path / "lanes" / "claims.toml").write_text(CLAIM, "utf-8")
    return tmp_path


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_costs_no_file_and_no_exit_code(place: Path, closed: str) -> None:
    ended = lanes(place, f"report {closed}")

    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    assert (place / "reports" / "out" / "board.json").is_file()
    assert {path.read_bytes() for path in (place / "reports" / "out" / "locks").iterdir()} == {b""}


def test_what_an_encoding_cannot_spell_is_written_by_number(place: Path) -> None:
    ended = lanes(place, "explain a.claim", PYTHONIOENCODING="ascii")

    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "a.claim: \\u2192 it holds.")
