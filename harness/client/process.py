"""The server's process: its pipes, the end of its standard error, and how it is made to go.

Room: the client comes in.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.client.errors import StartError, StillRunningError
from harness.transport.pipes import DescriptorSink, DescriptorSource

TAIL_LINES = 400
TAIL_BYTES = 64 << 10
SETTLE_S = 0.1  # what the last words of a dead process get to arrive in


@dataclass(frozen=True, slots=True)
class Grace:
    """How long each step of the way out may take, in seconds."""

    shutdown_s: float = 1.0
    end_of_input_s: float = 6.0
    terminate_s: float = 3.0
    kill_s: float = 3.0


class Tail:
    """The newest lines of a stream, the unfinished last one too."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._unfinished = b""

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self._unfinished = self._unfinished[-TAIL_BYTES:]
        self._lines.extend(line[-TAIL_BYTES:] for line in lines)
        while len(self._lines) > 1 and sum(map(len, self._lines)) > TAIL_BYTES:
            self._lines.popleft()

    def text(self) -> str:
        """The lines as text; bytes that are none are replaced."""
        lines = [*self._lines, self._unfinished] if self._unfinished else [*self._lines]
        return b"\n".join(lines[-TAIL_LINES:])[-TAIL_BYTES:].decode("utf-8", "replace")


class ServerProcess:
    """A started server.

    Shape: source and sink are its output and input; exited is done with its exit code, negative for a signal.
    """

    def __init__(self, process: asyncio.subprocess.Process, output: int, input_: int, errors: int) -> None:
        self._process = process
        self._descriptors = [output, input_, errors]
        self._input: int | None = input_
        self.tail = Tail()
        self.source = DescriptorSource(output)
        self.sink = DescriptorSink(input_)
        self._errors = DescriptorSource(errors)
        self._errors_ended = asyncio.Event()
        self._errors.start(self.tail.add, lambda problem: self._errors_ended.set())
        self.exited = asyncio.ensure_future(process.wait())

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.returncode

    async def settled(self) -> None:
        """Give the process and its last words a moment to end."""
        await asyncio.wait({self.exited}, timeout=SETTLE_S)
        if self._process.returncode is not None:
            ended = asyncio.ensure_future(self._errors_ended.wait())
            await asyncio.wait({ended}, timeout=SETTLE_S)
            ended.cancel()

    async def end(self, ask: Callable[[], Awaitable[None]], grace: Grace) -> None:
        """Make it go, kindly first: ask it, close its input, terminate, kill; returns once it is really gone.

        Raises: StillRunningError when it is not.
        """
        if self._process.returncode is None:
            await ask()
            await self._close_input()
            accepted = await self._gone(grace.end_of_input_s) or (
                self._signal(signal.SIGTERM) and await self._gone(grace.terminate_s)
            )
            if not accepted:
                was_sent = self._signal(signal.SIGKILL)
                if not await self._gone(grace.kill_s):
                    words = "was accepted" if was_sent else "was refused"
                    raise StillRunningError(f"process {self._process.pid} does not end; the kill {words}")
        await self.settled()
        self._errors.close()
        self.source.close()
        await self._close_input()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []

    async def _close_input(self) -> None:
        if self._input is None:
            return
        self.sink.close()
        written = asyncio.ensure_future(self.sink.finished())
        await asyncio.wait({written}, timeout=SETTLE_S)
        written.cancel()
        os.close(self._input)
        self._descriptors.remove(self._input)
        self._input = None

    async def _gone(self, limit_s: float) -> bool:
        return bool((await asyncio.wait({self.exited}, timeout=limit_s))[0])

    def _signal(self, number: signal.Signals) -> bool:
        try:
            self._process.send_signal(number)
        except ProcessLookupError:
            return False
        return True


async def start_process(command: Sequence[str], cwd: str, environment: Mapping[str, str] | None) -> ServerProcess:
    """Start a program with pipes at all three standard streams. environment None is the one of this process.

    Raises: StartError with the system's words.
    """
    if not await asyncio.to_thread(os.path.isdir, cwd):  # Path.is_dir raises for a name that is too long
        raise StartError(f"{command[0]!r} did not start, there is no folder {cwd}", fix="name one that is there")
    pipes = [os.pipe(), os.pipe(), os.pipe()]
    (child_in, input_), (output, child_out), (errors, child_err) = pipes
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=child_in, stdout=child_out, stderr=child_err, cwd=cwd, env=environment
        )
    except (OSError, ValueError) as error:
        for descriptor in (input_, output, errors):
            os.close(descriptor)
        raise StartError(
            f"{command[0]!r} did not start, {getattr(error, 'strerror', None) or error}",
            fix="name the program of the server with its full path",
        ) from None
    finally:
        for descriptor in (child_in, child_out, child_err):
            os.close(descriptor)
    return ServerProcess(process, output, input_, errors)
