"""One MCP server as a child process: its messages as the streams the `mcp` package reads, its noise kept apart.

Room: the connection comes in, once servers are configured; it imports `mcp`. The package's own stdio transport stops
at a byte that is no UTF-8, waits for ever on an answer it could not read, and leaves what a server started behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from harness.capabilities.mcp_config import Processes, StdioServer
from harness.wire.json_text import encode_json
from harness.wire.ndjson import DroppedLine, LineSplitter

MAX_LINE_BYTES = 32 << 20  # one answer; a hundred times what is shown of it, and no reason to fill memory
PROBE_METHOD = "server/discover"  # what the package asks first, to tell a server of today from an older one
PROBE_S = 2.0  # for its answer: older servers may keep silent about what they do not know; the package waits 10 s
FLUSH_S = 0.5  # for what was said to reach the server before its input is closed
EXIT_S = 1.0  # for a server to end by itself once its input is closed; what headless gives closing is five seconds
LAST_WORDS_S = 0.2  # for what an ended server wrote to arrive, when somebody else still holds its pipe
_STDERR_BYTES = 8192  # longer than any secret, so that none is cut before it is whole
_READ_BYTES = 1 << 16

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


class ServerFailedError(Exception):
    """A server cannot be used; str() says why, in one line."""


class StdioTransport:
    """The server's process and its two streams, between entering and leaving, both in one task.

    Shape: over is set once nothing can be said to the server any more, and how says why. kill ends it at once.
    """

    def __init__(
        self,
        server: StdioServer,
        *,
        cwd: Path,
        env: Mapping[str, str],
        processes: Processes,
        probe_s: float = PROBE_S,
    ) -> None:
        self._server = server
        self._cwd = server.cwd or cwd
        outer = env.get(processes.variable, "")
        self._env = {**env, **server.env, processes.variable: f"{outer} {processes.mark}".strip()}
        self._processes = processes
        self._probe_s = probe_s
        self._was_probed = False
        self.over = asyncio.Event()
        self._how = ""
        self._process: asyncio.subprocess.Process | None = None
        self._unanswered: set[RequestId] = set()
        self._noise = 0
        self._errors = bytearray()
        self._tasks: list[asyncio.Task[None]] = []
        self._exited = asyncio.Event()
        self._is_leaving = False

    @property
    def how(self) -> str:
        """How the server ended by itself, with what it said last; empty while it runs, or when we ended it."""
        return self._how and f"{self._how}{self.last_words()}"

    def last_words(self) -> str:
        """What the server said last on standard error, and that it wrote what is no message, as the rest of a line."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
        said = f'; it said last: "{self._server.secrets.text(lines[-1])[:200]}"' if lines else ""
        return f"{said}; it wrote {self._noise} lines that are no messages" if self._noise else said

    async def __aenter__(self) -> tuple[Incoming, Outgoing]:
        """Start the program.

        Raises: ServerFailedError when it does not start.
        """
        ours_in, child_out = os.pipe()
        child_in, ours_out = os.pipe()
        ours_err, child_err = os.pipe()
        try:
            self._process = await self._start(child_in, child_out, child_err)
        except BaseException:
            for descriptor in (ours_in, ours_out, ours_err):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (child_in, child_out, child_err):
                os.close(descriptor)
        try:
            self._reader, self._out = await _open_reader(ours_in)
            errors, self._err = await _open_reader(ours_err)
            self._writer = await _open_writer(ours_out)
        except BaseException:  # cancelled on the way: nobody will leave what was never entered
            self.kill()
            raise
        self._to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, self._from_session = anyio.create_memory_object_stream[SessionMessage](0)
        self._ends = (incoming, outgoing)
        self._reading = asyncio.ensure_future(self._read())
        self._writing = asyncio.ensure_future(self._write())
        self._waiting = asyncio.ensure_future(self._wait(self._process))
        self._tasks = [self._reading, self._writing, self._waiting, asyncio.ensure_future(self._read_errors(errors))]
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the server's input, wait a moment, then end it and everything it started."""
        self._is_leaving = True
        session = self._session()
        try:
            await self._ends[1].aclose()
            await asyncio.wait({self._writing}, timeout=FLUSH_S)
            self._writer.close()
            await self._until_exited(EXIT_S)
            await self._processes.end(session, self._processes.mark)
            await self._until_exited(EXIT_S)
        finally:
            self.kill()
            self._end_with("")
            for task in self._tasks:
                task.cancel()
            if self._writer.transport.get_write_buffer_size():  # what the server never read keeps the pipe open
                self._writer.transport.abort()
            self._writer.close()
            self._out.close()
            self._err.close()
            for stream in (*self._ends, self._to_session, self._from_session):
                stream.close()
        await asyncio.wait(self._tasks)

    def kill(self) -> None:
        """Kill the server and everything it started, without waiting for it."""
        if self._process is not None:
            self._processes.kill(self._session(), self._processes.mark)

    def _session(self) -> frozenset[int]:
        return frozenset() if self._process is None else frozenset({self._process.pid})

    async def _start(self, child_in: int, child_out: int, child_err: int) -> asyncio.subprocess.Process:
        program = shutil.which(self._server.command, path=self._env.get("PATH", os.defpath))
        if program is None:
            raise ServerFailedError(f"its command {self._server.command!r} is not found or cannot be run")
        try:
            return await asyncio.create_subprocess_exec(
                program,
                *self._server.args,
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                cwd=self._cwd,
                env=self._env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else str(error)
            raise ServerFailedError(f"it did not start: {(told or 'failed').lower()}") from None

    async def _read(self) -> None:
        splitter = LineSplitter(MAX_LINE_BYTES)
        is_heard = True
        with suppress(OSError):
            while data := await self._reader.read(_READ_BYTES):
                for line in splitter.feed(data) if is_heard else ():
                    for message in self._messages(line):
                        try:
                            await self._to_session.send(message)
                        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                            is_heard = False  # read on all the same: a server that cannot write cannot end either
        await self._until_exited(LAST_WORDS_S)
        self._end_with(self._exit_words() or "closed its output")

    def _messages(self, line: bytes | DroppedLine) -> tuple[SessionMessage, ...]:
        """The messages of one line; an answer that cannot be read answers its request with an error."""
        if isinstance(line, DroppedLine):
            return self._refuse(f"a line of more than {line.limit_bytes} bytes was dropped", tuple(self._unanswered))
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            return self._salvage(line)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._unanswered.discard(message.id if message.id is not None else "")
        return (SessionMessage(message),)

    def _salvage(self, line: bytes) -> tuple[SessionMessage, ...]:
        """What can be made of a line the package could not read: half a character in a text does not void the rest."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            self._noise += bool(line.strip())
            return ()
        try:
            whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
        except (ValueError, RecursionError):
            answered = value.get("id") if isinstance(value, dict) else None
            if isinstance(answered, str | int) and answered in self._unanswered:
                return self._refuse("it is no JSON-RPC answer", (answered,))
            self._noise += 1
            return ()
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._unanswered.discard(message.id if message.id is not None else "")
        return (SessionMessage(message),)

    def _refuse(self, why: str, answered: tuple[RequestId, ...]) -> tuple[SessionMessage, ...]:
        self._unanswered.difference_update(answered)
        error = ErrorData(code=PARSE_ERROR, message=f"its answer cannot be used: {why}")
        return tuple(SessionMessage(JSONRPCError(jsonrpc="2.0", id=each, error=error)) for each in answered)

    async def _write(self) -> None:
        try:
            async for item in self._from_session:
                message = item.message
                if isinstance(message, JSONRPCRequest):
                    self._unanswered.add(message.id)
                self._writer.write(encode_json(message.model_dump(by_alias=True, exclude_unset=True)) + b"\n")
                await self._writer.drain()
                if isinstance(message, JSONRPCRequest) and message.method == PROBE_METHOD and not self._was_probed:
                    self._was_probed = True
                    self._tasks.append(asyncio.ensure_future(self._end_probe(message.id)))
        except OSError:
            await self._until_exited(LAST_WORDS_S)
            self._end_with(self._exit_words() or "closed its input")

    async def _end_probe(self, asked: RequestId) -> None:
        """Answer the first probe in the place of a server that keeps silent; a second one follows an answer of it."""
        await asyncio.sleep(self._probe_s)
        if asked in self._unanswered:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                for message in self._refuse(f"nothing came within {self._probe_s:g} s", (asked,)):
                    await self._to_session.send(message)

    async def _read_errors(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                self._errors += data
                self._errors[:] = self._server.secrets.data(bytes(self._errors))[-_STDERR_BYTES:]

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        self._exited.set()
        await asyncio.wait({self._reading}, timeout=LAST_WORDS_S)
        self._end_with(self._exit_words())

    async def _until_exited(self, limit_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), limit_s)

    def _exit_words(self) -> str:
        code = None if self._process is None else self._process.returncode
        if code is None:
            return ""
        return f"ended with exit code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"

    def _end_with(self, how: str) -> None:
        self._how = self._how or ("" if self._is_leaving else how)
        self._to_session.close()
        self.over.set()


async def _open_reader(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader, transport


async def _open_writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(descriptor, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
