"""A client's end of the SDK wire in memory: requests, answers, notifications in wire order, and the logs on disk.

Room: the tests of the SDK server come in.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.capabilities.live_agents import LiveAgents
from harness.log.json_form import event_to_json
from harness.log.store import SessionStore
from harness.model.messages import SessionId
from harness.settings import Flags
from harness.surfaces.connection import Line, serve
from harness.surfaces.sdk.server import SdkOptions, SdkServer
from lanes.unit.surfaces.scripted import Reply, Script, ScriptedTransport
from lanes.unit.transport.memory_pipes import MemorySink, MemorySource


class SdkBench:
    """One server process' worth of server, and its client; start it, ask, and leave."""

    def __init__(self, folder: Path, *replies: Reply, on_hold: Callable[[], Any] | None = None, **options: Any) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.script = Script(list(replies))
        self.source, self.sink = MemorySource(), MemorySink()
        self.said: list[str] = []
        self.live = LiveAgents()
        self._ids = itertools.count(1)
        self.sink.on_put = self._wake
        self._wakeup = asyncio.Event()
        environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "HARNESS_RETRY_BASE_MS": "0"}
        depth = options.pop("depth", None)
        flags = Flags(
            session_root=str(folder / "sessions"), base_url="http://127.0.0.1:9/v1", model="m", delegation_depth=depth,
            mcp=options.pop("mcp", None),
        )  # fmt: skip
        self.server = SdkServer(
            flags,
            environ,
            say=self.said.append,
            live=self.live,
            transport=ScriptedTransport(self.script, on_hold),
            options=SdkOptions(**options),
        )
        self.line = Line(self.source, self.sink, self.said.append)
        self.told = self.line.told
        self.serving = asyncio.ensure_future(serve(self.server, self.line))

    def _wake(self) -> None:
        self._wakeup.set()

    async def until(self, condition: Callable[[list[Any]], bool]) -> list[Any]:
        """All frames so far, once they are what the test waits for."""
        while not condition(self.sink.frames):
            self._wakeup.clear()
            await asyncio.wait_for(self._wakeup.wait(), 10)
        return self.sink.frames

    def send(self, method: str, params: Any = None) -> int:
        number = next(self._ids)
        self.source.frame(id=number, method=method, **({} if params is None else {"params": params}))
        return number

    async def answer(self, number: int) -> Any:
        frames = await self.until(lambda frames: any(frame.get("id") == number for frame in frames))
        (found,) = [frame for frame in frames if frame.get("id") == number]
        return found.get("result", found.get("error"))

    async def ask(self, method: str, params: Any = None) -> Any:
        await asyncio.sleep(0)  # the server has begun to read
        return await self.answer(self.send(method, params))

    async def hello(self, **more: Any) -> Any:
        return await self.ask("initialize", {"cwd": str(self.work), "provider": "openai", "model": "m", **more})

    async def prompt(self, text: str, session: str = "s") -> Any:
        blocks = [{"type": "text", "text": text}]
        return await self.ask("session/prompt", {"sessionId": session, "contentBlocks": blocks})

    async def idle(self, session: str = "s", count: int = 1) -> list[Any]:
        """All frames once the session was idle that often."""
        wanted = {"sessionId": session, "status": "idle"}
        return await self.until(lambda frames: [frame.get("params") for frame in frames].count(wanted) >= count)

    @property
    def told_of(self) -> list[str]:
        """The notifications in wire order, each as one word or two."""
        return [_word(frame) for frame in self.sink.frames if "method" in frame]

    def events(self, session: str = "s") -> list[Any]:
        return [
            frame["params"]["event"]
            for frame in self.sink.frames
            if frame.get("method") == "session.event" and frame["params"]["sessionId"] == session
        ]

    def stored(self, session: str = "s") -> list[Any]:
        store = SessionStore(self.folder / "sessions", clock=lambda: 0)
        return [json.loads(json.dumps(event_to_json(e))) for e in store.inspect(SessionId(session)).events]

    async def leave(self) -> int:
        """Close the client's end and wait for the process to end."""
        await asyncio.sleep(0)
        self.source.end()
        return await asyncio.wait_for(self.serving, 20)


def _word(frame: Any) -> str:
    params = frame["params"]
    match frame["method"]:
        case "session.event":
            return str(params["event"]["type"])
        case "session.status":
            return str(params["status"])
        case other:
            return str(other)
