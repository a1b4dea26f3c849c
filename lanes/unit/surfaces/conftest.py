"""A bench for the headless surface: streams that are files, settings of a folder, a script for the model.

Room: pytest loads it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.assemble import Assembled, assemble
from harness.settings import Flags, Settings, from_environment
from harness.surfaces.headless import HeadlessRun, run_headless
from harness.transport.stdio import StandardStreams
from lanes.unit.surfaces.scripted import Reply, Script, ScriptedTransport


class ExitedError(BaseException):
    """The process would have ended here."""


@dataclass
class Outcome:
    """What a run left: exit code, both outputs, what the model was asked, the log's lines by session."""

    exit_code: int
    out: str
    err: str
    script: Script
    forced: list[int]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Bench:
    """Runs the surface in this process, with real files for the streams and the log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.sessions = folder / "sessions"
        self.work.mkdir()

    def settings(self, **flags: Any) -> Settings:
        environ = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "HARNESS_RETRY_BASE_MS": "0"}
        chosen = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "cwd": str(self.work), **flags}
        return from_environment(environ, Flags(session_root=str(self.sessions), **chosen))

    async def run(
        self,
        *replies: Reply,
        task: str = "do it",
        hook: Callable[[Assembled], None] | None = None,
        on_hold: Callable[[], Any] | None = None,
        streams: Callable[[int, int], StandardStreams] | None = None,
        drain_s: float = 5.0,
        flags: dict[str, Any] | None = None,
        **options: Any,
    ) -> Outcome:
        script = Script(list(replies))
        forced: list[int] = []
        running = asyncio.current_task()
        assert running is not None

        async def build(settings: Settings, **given: Any) -> Assembled:
            assembled = await assemble(settings, **given)
            if hook is not None:
                hook(assembled)
            return assembled

        def exit_now(code: int) -> None:
            forced.append(code)
            if asyncio.current_task() is running:
                raise ExitedError
            running.cancel()

        paths = self.folder / "out", self.folder / "err"
        fds = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for path in paths]
        make = streams or (lambda out, err: StandardStreams(input_fd=None, output_fd=out, error_fd=err))
        code = -1
        try:
            code = await run_headless(
                HeadlessRun(task=task, **options),
                self.settings(**(flags or {})),
                make(*fds),
                transport=ScriptedTransport(script, on_hold),
                build=build,
                exit_now=exit_now,
                drain_s=drain_s,
            )
        except ExitedError:
            pass
        except asyncio.CancelledError:
            if not forced:
                raise
            running.uncancel()
        finally:
            for fd in fds:
                os.close(fd)
        out, err = (path.read_text(encoding="utf-8") for path in paths)
        return Outcome(code, out, err, script, forced)

    def logs(self) -> list[list[dict[str, Any]]]:
        """The stored logs, each as its lines without the header."""
        paths = sorted(self.sessions.rglob("session.jsonl"))
        return [[json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][1:] for path in paths]

    def session_ids(self) -> list[str]:
        paths = sorted(self.sessions.rglob("session.jsonl"))
        return [json.loads(path.read_text(encoding="utf-8").splitlines()[0])["id"] for path in paths]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
