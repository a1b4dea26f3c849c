"""Where one story goes through one surface: its folders, what starts the program there, and the logs that it leaves.

Room: the drivers of stories come in, here and in the replay lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanes.normalize import Identities, Json, normalize_log
from lanes.playing import workspace_places
from lanes.policy import DUMMY_KEY
from lanes.program import Program
from lanes.scenario import Scenario, write_workspace
from lanes.story_log import read_rows, unpack_rows

MODEL, PROVIDER = "m-small", "openai"

Command = Callable[[Sequence[str]], list[str]]


def lay_out(scenario: Scenario, folder: Path) -> Path:
    """Make the folders of a place, with the story's files in its workspace, which is returned."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    (folder / "sessions").mkdir()
    write_workspace(scenario, workspace)
    return workspace


@dataclass(frozen=True)
class Place:
    """Where one surface works, and what starts the program there with some arguments."""

    folder: Path
    base_url: str
    command: Command

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    def program(self) -> Program:
        return Program(self.workspace, self.sessions, self.base_url, MODEL, PROVIDER, self.own_environment())

    def own_environment(self) -> dict[str, str]:
        return {
            "OPENAI_API_KEY": DUMMY_KEY,
            "OPENAI_BASE_URL": self.base_url,
            "HARNESS_SESSION_ROOT": str(self.sessions),
            "HARNESS_RETRY_BASE_MS": "0",
        }

    def environment(self) -> dict[str, str]:
        return self.program().environment()

    def rows(self) -> list[Json]:
        """The logs of the session and of its children, one after the other, without what differs between two runs."""
        return comparable(self.program().log_files(), self.workspace)


def comparable(logs: Sequence[Path], workspace: Path) -> list[Json]:
    """The rows of a session's logs, root first, unpacked and without what differs between two runs."""
    rows = [row for path in logs for row in unpack_rows(read_rows(path))]
    return normalize_log(rows, workspace_places(workspace), Identities())
