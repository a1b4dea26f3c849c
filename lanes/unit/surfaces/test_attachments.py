"""The command that removes stored pictures no session names."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from harness.cli import main
from harness.log.attachments import AttachmentStore
from harness.log.attachments_rules import Upload
from lanes.unit.surfaces.acp_bench import ONE_PIXEL


@pytest.fixture
def orphan(tmp_path: Path) -> Path:
    """A stored picture of two days ago."""
    store = AttachmentStore.beside(tmp_path)
    (reference,) = asyncio.run(store.admit([Upload(ONE_PIXEL, "image/gif")]))
    (path,) = tmp_path.rglob(reference.attachment_id.removeprefix("sha256:"))
    old = path.stat().st_mtime - 2 * 86_400
    os.utime(path, (old, old))
    return path


def sweep(root: Path, *options: str) -> int:
    return main(["attachments", "sweep", "--session-root", str(root), *options])


def test_a_rehearsal_says_what_would_be_removed_and_removes_nothing(
    orphan: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert sweep(tmp_path, "--dry-run") == 0
    assert (capfd.readouterr().out, orphan.exists()) == (
        f"would remove sha256:{orphan.name}\nwould remove 1, kept 0\n",
        True,
    )


def test_an_old_picture_that_no_session_names_is_removed(
    orphan: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert sweep(tmp_path, "--grace-hours", "72") == 0
    assert orphan.exists()
    assert sweep(tmp_path) == 0
    assert (capfd.readouterr().out.splitlines()[-1], orphan.exists()) == ("removed 1, kept 0", False)


def test_a_grace_period_that_is_too_short_is_answered_in_the_hours_it_was_given_in(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (sweep(tmp_path, "--grace-hours", "0.0167"), sweep(tmp_path, "--grace-hours", "0")) == (0, 2)
    said = capfd.readouterr().err
    assert ("0 hours would take" in said, "expected: 0.0167 hours" in said, " ms" in said) == (True, True, False)


def test_nothing_is_removed_while_a_session_cannot_be_read(
    orphan: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "project" / "s" / "session.jsonl"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(base64.b64decode("bm8gbG9n") + b"\n")
    assert sweep(tmp_path) == 1
    out, err = capfd.readouterr()
    assert (orphan.exists(), "removed 0" in out, "nothing was removed" in err) == (True, True, True)


def test_B22_a_store_that_cannot_be_looked_at_is_a_named_error(
    orphan: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    objects = orphan.parent.parent
    objects.rename(tmp_path / ".away")
    objects.touch()
    assert sweep(tmp_path) == 1
    err = capfd.readouterr().err
    assert (f"{objects}: the pictures could not be looked at: Not a directory [ATTACHMENT_READ_FAILED]" in err) is True
    assert "fix: " in err


@pytest.mark.parametrize(
    "arguments", [["attachments"], ["attachments", "sweeep"], ["attachments", "sweep", "--dry-rum"],
    ["attachments", "sweep", "--grace-hours", "0"]],
)  # fmt: skip
def test_a_mistake_is_a_usage_error(arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, *(["--session-root", str(tmp_path)] if "sweep" in arguments else [])]) == 2
    assert "Traceback" not in capfd.readouterr().err
