"""The published clients of our two protocols: which they are, where they are installed, and how a journey runs.

Room: the tests of published clients come in. The clients stand in folders of their own below the environment, because
two versions of one package cannot share it and Node's packages are none of Python's; `install.py` puts them there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lanes.plugin import not_run
from lanes.policy import DUMMY_KEY
from lanes.program import Program, console_command

HERE = Path(__file__).parent
HOME = Path(sys.prefix) / "clients"
NODE_MODULES = HOME / "node" / "node_modules"
LIMIT_S = 90  # a journey is over in seconds
PROVIDER, MODEL = "openai", "gpt-4.1-mini"  # a pair that is known to take pictures


@dataclass(frozen=True, slots=True)
class Foreign:
    """One published client: its package as its registry spells it, and where it has to be for a journey to run."""

    name: str
    wire: Literal["sdk", "acp"]
    driver: str
    package: str
    folder: Path | None = None

    @property
    def is_there(self) -> bool:
        """Whether it is installed here, with what it runs on."""
        if self.driver.endswith(".mjs"):
            return (NODE_MODULES / self.package).is_dir() and shutil.which("node") is not None
        if self.folder is not None:
            return self.folder.is_dir() and importlib.util.find_spec("pydantic") is not None
        return importlib.util.find_spec(self.package) is not None


CLIENTS = (
    Foreign("Python 0.1.0rc7", "sdk", "drive_sdk.py", "deepseek-harness-sdk", HOME / "python-0.1.0rc7"),
    Foreign("Python 0.2.1rc2", "sdk", "drive_sdk.py", "deepseek-harness-sdk", HOME / "python-0.2.1rc2"),
    Foreign("Node", "sdk", "drive_sdk.mjs", "@deepseek-ai/dsh-sdk-client"),
    Foreign("Python", "acp", "drive_acp.py", "acp"),
    Foreign("Node", "acp", "drive_acp.mjs", "@agentclientprotocol/sdk"),
)


@dataclass(frozen=True, slots=True)
class Ride:
    """What a journey left: what its client says it saw, and the bytes of each server process."""

    said: Mapping[str, Any]
    records: tuple[Path, ...]
    workspace: Path
    sessions: Path

    def frames(self, *, sent: bool = False) -> list[list[Any]]:
        """The frames the servers wrote, or were sent, process by process; every line has to be one."""
        return [
            [json.loads(line) for line in Path(f"{record}.{'in' if sent else 'out'}").read_bytes().splitlines()]
            for record in self.records
        ]

    @property
    def exits(self) -> list[int]:
        """How the servers ended: an exit status, negative for a signal."""
        return [int(Path(f"{record}.exit").read_text("utf-8")) for record in self.records]

    def impurities(self) -> list[bytes]:
        """The lines on standard output that are no frame."""
        lines = [line for record in self.records for line in Path(f"{record}.out").read_bytes().split(b"\n") if line]
        return [line for line in lines if not _is_frame(line)]

    def log(self, session: str) -> list[Any]:
        """The rows of a session's log, header first."""
        for path in self.sessions.rglob("session.jsonl"):
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            if rows[0]["id"] == session:
                return rows
        raise LookupError(session)


@dataclass(frozen=True, slots=True)
class Journey:
    """A place for one journey: its folders, the address of its model, the server's flags, and more for the driver."""

    folder: Path
    base_url: str
    flags: tuple[str, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """Where the agent works."""
        return self.folder / "workspace"

    @property
    def sessions(self) -> Path:
        """Where logs are kept."""
        return self.folder / "sessions"

    def ride(self, client: Foreign, name: str) -> Ride:
        """Let the client go the journey of that name against the installed program.

        Raises: AssertionError with its last words when its driver fails.
        """
        if not client.is_there:
            not_run("missing-dependency", f"{client.package} ({client.name}); tox -e offline-clients has it")
        self.workspace.mkdir()
        driver = self._driver(client)
        task = self.folder / "task.json"
        task.write_text(json.dumps(self._task(client, name)), "utf-8")
        command = ["node"] if driver.suffix == ".mjs" else [sys.executable]
        done = subprocess.run(
            [*command, str(driver), str(task)],
            env=self._environment(client),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return self.ridden(json.loads(done.stdout))

    def ridden(self, said: Mapping[str, Any]) -> Ride:
        """What is left of the journey now that its client has ended and said this."""
        records = sorted({path.with_suffix("") for path in self.folder.glob("server-*.pid")})
        return Ride(said, tuple(records), self.workspace, self.sessions)

    def program(self) -> Path:
        """One program that is the server, each process of it with a tap of its own."""
        program = self.folder / "program"
        tapped = " ".join([sys.executable, "-m", "lanes.tap", f"{self.folder}/server-$(date +%s%N)"])
        program.write_text(f'#!/bin/sh\nexec {tapped} {" ".join(console_command("harness"))} "$@"\n', "utf-8")
        program.chmod(0o755)
        return program

    def _driver(self, client: Foreign) -> Path:
        """The driver; Node finds its packages by the folder of the file, so it gets a copy beside them."""
        if not client.driver.endswith(".mjs"):
            return HERE / client.driver
        (self.folder / "node_modules").symlink_to(NODE_MODULES, target_is_directory=True)
        return Path(shutil.copy(HERE / client.driver, self.folder))

    def _task(self, client: Foreign, name: str) -> dict[str, Any]:
        return {
            "journey": name,
            "client": client.name,
            "program": str(self.program()),
            "folder": str(self.folder),
            "workspace": str(self.workspace),
            "sessions": str(self.sessions),
            "baseUrl": self.base_url,
            "apiKey": DUMMY_KEY,
            "flags": list(self.flags),
            "provider": PROVIDER,
            "model": MODEL,
            **self.more,
        }

    def _environment(self, client: Foreign) -> dict[str, str]:
        given = Program(self.workspace, self.sessions, self.base_url).environment()
        folder = [] if client.folder is None else [str(client.folder)]
        path = os.pathsep.join([*folder, *filter(None, [given.get("PYTHONPATH")])])
        own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": self.base_url}
        # the published Python clients tell the program themselves where it keeps its sessions
        root = {} if client.folder is not None else {"HARNESS_SESSION_ROOT": str(self.sessions)}
        return {**given, **own, **root, "PYTHONPATH": path}


def _is_frame(line: bytes) -> bool:
    try:
        frame = json.loads(line)
    except ValueError:
        return False
    return isinstance(frame, dict) and frame.get("jsonrpc") == "2.0"
