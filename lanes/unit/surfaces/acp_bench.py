"""A client's end of the ACP wire in memory: requests, answers, updates in wire order, and what stands in the logs.

Room: the tests of the ACP server come in.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.capabilities.live_agents import LiveAgents
from harness.log.attachments import AttachmentStore
from harness.log.attachments_rules import Upload
from harness.log.store import SessionStore
from harness.loop.agent import Agent
from harness.model.messages import AttachmentRef, SessionId
from harness.settings import Flags, from_environment
from harness.surfaces.acp.bridge import AcpBridge, AcpOptions
from harness.surfaces.connection import Line, serve
from lanes.unit.surfaces.scripted import Reply, Script, ScriptedTransport
from lanes.unit.transport.memory_pipes import MemorySink, MemorySource

ONE_PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
PICTURE = {"type": "image", "mimeType": "image/gif", "data": base64.b64encode(ONE_PIXEL).decode()}


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


class AcpBench:
    """One server, and its client; the client answers permission questions with what permit gives."""

    def __init__(
        self,
        folder: Path,
        *replies: Reply,
        on_hold: Callable[[], Any] | None = None,
        model: str = "gpt-4.1-mini",
        store: AttachmentStore | None = None,
        environ: dict[str, str] | None = None,
        provider: str = "openai",
        **options: Any,
    ) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.script = Script(list(replies))
        self.source, self.sink = MemorySource(), MemorySink()
        self.said: list[str] = []
        self.live = LiveAgents()
        self.permit: Callable[[Any], Any] = lambda params: {"outcome": {"outcome": "cancelled"}}
        self._ids = itertools.count(1)
        self._wakeup = asyncio.Event()
        self.sink.on_put = self._on_frame
        self._answered: set[str] = set()
        given = {"HOME": str(folder), "PATH": os.environ["PATH"], "HARNESS_RETRY_BASE_MS": "0", **(environ or {})}
        flags = Flags(
            session_root=str(folder / "sessions"), base_url="http://127.0.0.1:9/v1", model=model, provider=provider,
            mcp=options.pop("mcp", None),
        )  # fmt: skip
        self.bridge = AcpBridge(
            from_environment(given, flags),
            say=self.said.append,
            live=self.live,
            transport=ScriptedTransport(self.script, on_hold),
            options=AcpOptions(**options),
            store=store,
        )
        self.line = Line(self.source, self.sink, self.said.append)
        self.serving = asyncio.ensure_future(serve(self.bridge, self.line))

    def _on_frame(self) -> None:
        self._wakeup.set()
        frame = self.sink.frames[-1]
        if frame.get("method") == "session/request_permission" and frame["id"] not in self._answered:
            self._answered.add(frame["id"])
            answer = self.permit(frame["params"])
            if answer is not None:
                asyncio.get_running_loop().call_soon(self._respond, frame["id"], answer)

    def _respond(self, identity: str, answer: Any) -> None:
        self.source.frame(id=identity, **({"error": answer["error"]} if "error" in answer else {"result": answer}))

    async def until(self, condition: Callable[[list[Any]], bool]) -> list[Any]:
        while not condition(self.sink.frames):
            self._wakeup.clear()
            await asyncio.wait_for(self._wakeup.wait(), 10)
        return self.sink.frames

    def send(self, method: str, **params: Any) -> int:
        number = next(self._ids)
        self.source.frame(id=number, method=method, params=params)
        return number

    def tell(self, method: str, **params: Any) -> None:
        self.source.frame(method=method, params=params)

    async def answer(self, number: int) -> Any:
        frames = await self.until(lambda frames: any(_is_answer(frame, number) for frame in frames))
        (found,) = [frame for frame in frames if _is_answer(frame, number)]
        return found.get("result", found.get("error"))

    async def ask(self, method: str, **params: Any) -> Any:
        await asyncio.sleep(0)
        return await self.answer(self.send(method, **params))

    async def initialize(self) -> Any:
        return await self.ask("initialize", protocolVersion=1, clientCapabilities={})

    async def new(self) -> str:
        return str((await self.ask("session/new", cwd=str(self.work), mcpServers=[]))["sessionId"])

    async def ready(self) -> str:
        """A connection that shook hands, and its session."""
        await self.initialize()
        return await self.new()

    def prompt(self, session: str, *blocks: Any) -> int:
        return self.send("session/prompt", sessionId=session, prompt=list(blocks))

    async def prompted(self, session: str, *blocks: Any) -> Any:
        return await self.answer(self.prompt(session, *blocks))

    async def say(self, session: str, text: str) -> Any:
        return await self.prompted(session, words(text))

    def cancel(self, session: str) -> None:
        self.tell("session/cancel", sessionId=session)

    def agent(self, session: str) -> Agent:
        found = self.live.get(SessionId(session))
        assert found is not None
        return found

    @property
    def updates(self) -> list[Any]:
        return [frame["params"]["update"] for frame in self.sink.frames if frame.get("method") == "session/update"]

    @property
    def texts(self) -> list[str]:
        return [update["content"]["text"] for update in self.updates if update.get("content", {}).get("type") == "text"]

    def types(self, session: str) -> list[str]:
        """The log of a session, as words, chunks left out."""
        return [type(event.payload).__name__ for event in self.agent(session).log if "Chunk" not in str(event.payload)]

    def pictures(self) -> list[str]:
        """The stored objects."""
        root = self.folder / "sessions" / ".attachments"
        return sorted(path.name for path in root.rglob("*") if path.is_file() and len(path.name) == 64)

    def stored(self) -> SessionStore:
        return SessionStore(self.folder / "sessions", clock=lambda: 0)

    async def leave(self) -> int:
        await asyncio.sleep(0)
        self.source.end()
        code = await asyncio.wait_for(self.serving, 20)
        assert self.sink.data == b"" or self.sink.data.endswith(b"\n")
        assert all(frame["jsonrpc"] == "2.0" for frame in self.sink.frames), "a line that is no frame"
        return code


def _is_answer(frame: Any, number: int) -> bool:
    return "method" not in frame and frame.get("id") == number


class Held:
    """A place in a model's answer where the test stops it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.gate.wait()


class Storing(AttachmentStore):
    """A store in which the test has a say while pictures are saved and read."""

    before: Any = None
    after: Any = None
    failure: Exception | None = None
    reading: Any = None

    async def admit(self, uploads: Sequence[Upload]) -> tuple[AttachmentRef, ...]:
        if self.before is not None:
            await self.before()
        if self.failure is not None:
            raise self.failure
        references = await super().admit(uploads)
        if self.after is not None:
            self.after()
        return references

    async def read(self, reference: AttachmentRef) -> bytes:
        if self.reading is not None:
            await self.reading()
        return await super().read(reference)


def storing(folder: Path) -> Storing:
    return Storing(folder / "sessions" / ".attachments")


async def until(condition: Callable[[], bool]) -> None:
    """Let everybody else run until something holds that announces itself to nobody."""
    loop = asyncio.get_running_loop()
    end = loop.time() + 10
    while loop.time() < end:
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def stop(answer: Any) -> str:
    return str(answer.get("stopReason", answer.get("message")))
