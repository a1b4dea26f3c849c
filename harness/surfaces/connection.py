"""One client on a source and a sink of bytes: served until it leaves or the process is told to go, then ended in order.

Room: the SDK and ACP servers come in.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.errors import HarnessError, UsageError
from harness.transport.pipes import DescriptorSink, DescriptorSource
from harness.transport.rpc import Handler, Peer, RpcError, Sink, Source, Told
from harness.transport.signals import heard_signals
from harness.transport.stdio import StandardStreams

DRAIN_S = 5.0  # what a client gets to see the ends of its turns when the process is told to go
EXIT_BROKEN = 1
_EXITS: Mapping[signal.Signals, int] = {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGHUP: 129}

Say = Callable[[str], None]


class Served(Protocol):
    """What is served over a connection.

    Shape: stopped is set when the client said that the process may go; end lets go of everything, the client still
    seeing it; end_now is for when there is no time for that; close comes last.
    """

    stopped: asyncio.Event

    @property
    def handlers(self) -> Mapping[str, Handler]: ...

    @property
    def told(self) -> Mapping[str, Told]: ...

    def connect(self, peer: Peer) -> None: ...

    def error_of(self, error: Exception) -> RpcError: ...

    async def end(self) -> None: ...

    def end_now(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Line:
    """The way to a client: both directions, whom to tell what went wrong, and the exit code of a process told to go.

    Units: drain_s is seconds in which the ends of turns may still reach the client.
    """

    source: Source
    sink: Sink
    say: Say
    told: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    drain_s: float = DRAIN_S


async def serve(served: Served, line: Line) -> int:
    """Serve one client until it says so, its input ends, or the process is told to go; gives the exit code.

    Shape: an input that cannot be read is a failure, its end is none.
    """
    numbers = itertools.count(1)
    peer = Peer(
        line.source,
        line.sink,
        ids=lambda: f"server-{next(numbers)}",
        report=line.say,
        handlers=served.handlers,
        told=served.told,
        error_of=served.error_of,
    )
    served.connect(peer)
    peer.start()
    waits = [asyncio.ensure_future(event.wait()) for event in (peer.ended, served.stopped)]
    heard = asyncio.ensure_future(_result_of(line.told))
    try:
        await asyncio.wait([*waits, heard], return_when=asyncio.FIRST_COMPLETED)
        was_told = line.told.done() and not served.stopped.is_set() and not peer.ended.is_set()  # the first one counts
        await _leave(served, peer, line)
    finally:
        for wait in (*waits, heard):
            wait.cancel()
    if was_told:
        return line.told.result()
    return EXIT_BROKEN if peer.is_input_broken else 0


async def serve_streams(streams: StandardStreams, command: str, make: Callable[[Say], Served]) -> int:
    """Serve on the standard streams of the process, which ends on SIGTERM with 0, SIGINT with 130, SIGHUP with 129.

    SIGHUP stays ignored where it was, as nohup has it. A signal after that changes nothing any more: there are clients
    that send one as soon as shutdown is answered.
    Raises: UsageError when standard input or output was closed from the start; whatever make raises.
    """

    def say(text: str) -> None:
        streams.write_error(f"{command}: {text}\n")

    if streams.input_descriptor is None or streams.output_descriptor is None:
        raise UsageError("standard input and output have to be open", where=command)
    served = make(say)
    sink = DescriptorSink(streams.output_descriptor)
    line = Line(DescriptorSource(streams.input_descriptor, answers=sink), sink, say)
    loop = asyncio.get_running_loop()

    def hear(number: int) -> None:
        if not line.told.done():
            line.told.set_result(_EXITS[signal.Signals(number)])

    numbers = heard_signals(_EXITS)
    for number in numbers:
        signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(hear, number))
    try:
        return await serve(served, line)
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


async def _result_of(told: asyncio.Future[int]) -> bool:
    await asyncio.wait({told})
    return True


async def _leave(served: Served, peer: Peer, line: Line) -> None:
    """End everything within the bound; what the client has to see is written before the process goes."""
    ending = asyncio.ensure_future(_end(served, peer, line.say))
    if not (await asyncio.wait({ending}, timeout=line.drain_s))[0]:
        line.say(f"not everything ended within {line.drain_s:g} s")
        served.end_now()
        ending.cancel()
        await asyncio.wait({ending})
    await served.close()
    peer.close()


async def _end(served: Served, peer: Peer, say: Say) -> None:
    for step in (served.end, peer.settle, peer.flush):
        await _tried(step, say)


async def _tried(step: Callable[[], Awaitable[None]], say: Say) -> None:
    try:
        await step()
    except HarnessError as error:
        say(str(error))
