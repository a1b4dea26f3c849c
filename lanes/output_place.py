"""The output folder of a lane: made out of git's sight, and one writer at a time for the evidence of a lane and shard.

Room: file output. The runner, the merge and who writes bundles and boards come in.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lanes.errors import UsageError


def keep_from_git(out: Path) -> None:
    """Make an output folder that is not there yet, with the word to git that nothing in it is a part of the tree.

    Shape: evidence that git saw would be a change of the very tree that it is about. A folder that is there is left.
    """
    if out.exists():
        return
    out.mkdir(parents=True)
    (out / ".gitignore").write_text("*\n", "ascii")


@contextmanager
def held_place(out: Path, lane: str, name: str) -> Generator[None]:
    """Keep a place for evidence to ourselves; a second writer would mix two runs.

    Raises: UsageError when somebody else writes there, code LANE_BUSY.
    """
    keep_from_git(out)
    lock = out / "locks" / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = "another run writes the evidence of this lane and shard here"
            raise UsageError(
                message, where=f"lane {lane!r}", fix="wait for it, or use --out DIR", code="LANE_BUSY"
            ) from None
        yield
