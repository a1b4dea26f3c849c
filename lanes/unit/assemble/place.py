"""Settings of a folder, agents over scripted answers in it, and what they leave there.

Room: the tests of the factory.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.assemble import Assembled, assemble
from harness.capabilities.live_agents import LiveAgents, LiveNotice
from harness.capabilities.subagents import SubagentNotice
from harness.log.interval import final_text
from harness.log.store import SessionStore
from harness.model.messages import Message, SessionId, TextBlock, UserSource
from harness.settings import Flags, Settings, from_environment
from lanes.unit.surfaces.scripted import Reply, Script, ScriptedTransport


def settings(folder: Path, environ: dict[str, str] | None = None, **flags: Any) -> Settings:
    (folder / "work").mkdir(exist_ok=True)
    chosen = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "cwd": str(folder / "work"), **flags}
    return from_environment(
        {"HOME": str(folder), "PATH": os.environ["PATH"], **(environ or {})},
        Flags(session_root=str(folder / "sessions"), **chosen),
    )


def held_locks(folder: Path) -> list[str]:
    held = []
    for path in sorted(folder.rglob("*.lock")):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(path.name)
    return held


def logs(folder: Path) -> list[Path]:
    return list(folder.rglob("session.jsonl"))


class Place:
    """A folder with a workspace and sessions, and agents over scripted answers in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.sessions = folder / "sessions"
        self.script = Script([])
        self.live = LiveAgents()
        self.notices: list[SubagentNotice | LiveNotice] = []
        self.live.observe(self.notices.append)

    def settings(self, environ: dict[str, str] | None = None, **flags: Any) -> Settings:
        chosen = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "cwd": str(self.work), "delegation_depth": 1}
        return from_environment(
            {"HOME": str(self.folder), "PATH": os.environ["PATH"], "HARNESS_RETRY_BASE_MS": "0", **(environ or {})},
            Flags(session_root=str(self.sessions), **{**chosen, **flags}),
        )

    async def make(
        self,
        *replies: Reply,
        settings: Settings | None = None,
        resume: str | None = None,
        on_hold: Callable[[], Any] | None = None,
    ) -> Assembled:
        self.script = Script(list(replies))
        return await assemble(
            settings or self.settings(),
            transport=ScriptedTransport(self.script, on_hold),
            resume=None if resume is None else SessionId(resume),
            live=self.live,
            notify=self.notices.append,
        )

    def store(self) -> SessionStore:
        return SessionStore(self.sessions, clock=lambda: 0)

    def children(self) -> list[SessionId]:
        headers = [listing.header for listing in self.store().list()]
        return [header.id for header in headers if header is not None and header.origin == "subagent"]


async def ask(assembled: Assembled, task: str) -> str:
    assembled.agent.followup(Message(assembled.new_message_id(), "user", (TextBlock(task),), UserSource()))
    await assembled.agent.when_idle()
    return final_text(assembled.agent.log)
