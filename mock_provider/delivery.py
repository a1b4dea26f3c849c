"""Carrying a plan out over a socket: head and pieces framed, waits kept, deaths died.

Room: asyncio; only the connection comes in.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from mock_provider.actions import Action, Delay, Die, Head, Hold, Send, Wait
from mock_provider.exchange import Exchange
from mock_provider.faults import GARBAGE
from mock_provider.filled_stream import FilledStream
from mock_provider.framing import Framing, spell_head
from mock_provider.mock import Mock
from mock_provider.outlet import Outlet

SENDS_PER_TURN = 32  # writes before other clients have their turn; about a third of a millisecond
END_OF_CHUNKS = b"0\r\n\r\n"


def deliver_whole(exchange: Exchange, framing: Framing, outlet: Outlet) -> bool:
    """Write an answer that is one body, if it is, at once. Shape: whether it is.

    It is noted as complete before it leaves: who has read it may look at the journal.
    """
    plan = exchange.plan
    head, data = plan.head, plan.whole
    if data is None or head is None or not framing.has_body:
        return False
    exchange.sent_whole(data)
    outlet.write(spell_head(head, framing) + data)
    return True


class Delivery:
    """One answer on its way to a client.

    Shape: start() does what needs no waiting; when it gives False, finish() does the rest. ends_connection tells,
    once it is over, whether the connection cannot be used again.
    """

    __slots__ = (
        "_actions",
        "_count",
        "_exchange",
        "_frames",
        "_framing",
        "_head",
        "_held",
        "_mock",
        "_outlet",
        "_stream",
        "ends_connection",
    )

    def __init__(self, exchange: Exchange, framing: Framing, outlet: Outlet, mock: Mock) -> None:
        self._exchange = exchange
        self._framing = framing
        self._outlet = outlet
        self._mock = mock
        self._head: Head | None = None
        self._held = b""
        self._actions: Iterator[tuple[Action, bool]] = iter(())
        self._stream: FilledStream | None = None
        self._frames: Iterator[bytes] = iter(())
        self._count = 0
        self.ends_connection = framing.is_last

    def start(self) -> bool:
        """Write what needs no waiting. Shape: whether that was everything.

        An answer is noted as complete before its last byte leaves: who has read it may look at the journal.
        """
        plan, framing = self._exchange.plan, self._framing
        if plan.is_waiting:
            self._actions = iter(plan)
            return False
        head = self._head = plan.head
        if head is None:
            return True
        if not framing.has_body:
            self._exchange.finish("complete")
            self._outlet.write(spell_head(head, framing))
            return True
        if plan.stream is not None and framing.has_chunks:
            self._held = spell_head(head, framing)
            self._frames = plan.stream.framed()
            self._stream = plan.stream
        else:
            self._actions = iter(plan)
        return self._send_some()

    def _send_again(self, stream: FilledStream) -> bool:
        """As _send_some, of a stream that was sent before."""
        outlet, frames, at = self._outlet, self._frames, self._count
        last = len(stream.pattern.chunks)
        turn_end = min(at + SENDS_PER_TURN, last)
        while at < turn_end and outlet.is_drained:
            frame = next(frames)
            at += 1
            if at == last:
                frame += END_OF_CHUNKS
                self._exchange.sent_again(stream, at)
                self._exchange.finish("complete")
            if self._held:
                self._write(frame)
            else:
                outlet.write(frame)
        if at < last:
            self._exchange.sent_again(stream, at)
        self._count = at
        return at == last

    def _send_some(self) -> bool:
        """Write up to the end of this turn. Shape: whether everything is written."""
        if self._stream is not None:
            return self._send_again(self._stream)
        outlet = self._outlet
        for _ in range(SENDS_PER_TURN):
            if not outlet.is_drained:
                return False
            following = next(self._actions, None)
            if following is None:
                return True
            action, is_last = following
            if isinstance(action, Send):
                self._send(action, is_last=is_last)
            elif isinstance(action, Head):
                self._held = spell_head(action, self._framing)  # goes out with the first piece, which is there already
                if is_last:
                    self._end()
        return False

    def _send(self, action: Send, *, is_last: bool) -> None:
        self._exchange.sent(action.data, is_piece=action.is_piece)
        framed = action.data
        is_chunked = self._head is not None and self._head.length is None and self._framing.has_chunks
        if is_chunked and framed:
            framed = b"%x\r\n%b\r\n" % (len(framed), framed)
        if is_last:
            self._exchange.finish("complete")
            if is_chunked:
                framed += END_OF_CHUNKS
        self._write(framed)

    def _write(self, data: bytes) -> None:
        if not self._held:
            self._outlet.write(data)
            return
        self._outlet.write(self._held + data)
        self._held = b""
        if hasattr(os, "sched_yield"):  # who waits for the first piece gets a processor before the others are made
            os.sched_yield()

    def _end(self) -> None:
        """The body is over without a last piece."""
        self._exchange.finish("complete")
        if self._head is not None and self._head.length is None and self._framing.has_chunks and self._framing.has_body:
            self._write(END_OF_CHUNKS)
        elif self._held:
            self._write(b"")

    async def finish(self) -> None:
        """Do the rest, waiting where the plan says so, and for a client that is slower than we are."""
        try:
            if self._exchange.plan.is_waiting:
                await self._play()
                return
            while not self._send_some():
                await self._breathe()
        except asyncio.CancelledError:
            self._exchange.gone()
            self.ends_connection = True

    async def _breathe(self) -> None:
        """Let others have their turn; find out whether the client is still there and keeps up."""
        if self._outlet.is_drained:
            await asyncio.sleep(0)
        else:
            await self._outlet.drained()
        if not self._outlet.is_open:
            raise asyncio.CancelledError

    async def _play(self) -> None:
        """Carry a plan with waits out."""
        for action, is_last in self._actions:
            if isinstance(action, Head):
                self._head = action
                self._outlet.write(spell_head(action, self._framing))
                await self._breathe()
            elif isinstance(action, Send):
                if self._framing.has_body:
                    self._send(action, is_last=is_last)
                    await self._breathe()
            elif isinstance(action, Delay):
                if await self._mock.closing.opened(action.ms / 1000):
                    return self._abort("closed")
            elif isinstance(action, Wait):
                if not await self._pass(action):
                    return None
            elif isinstance(action, Hold):
                await action.until.opened(action.limit_s)
            else:
                return await self._die(action)
            if is_last and not (isinstance(action, Send) and self._framing.has_body):
                self._end()
        return None

    async def _pass(self, action: Wait) -> bool:
        gate = self._mock.gate(action.gate)
        gate.enter()
        try:
            opened = await gate.door.opened(self._mock.gate_timeout_s)
        finally:
            gate.leave()
        if gate.is_abandoned:
            self._abort("closed")
            return False
        if opened:
            self._exchange.passed(gate.name)
            return True
        self._mock.gate_stuck(gate, self._exchange.entry)
        self._exchange.finish(f"gate {gate.name} never opened")
        self._close()
        return False

    async def _die(self, action: Die) -> None:
        await self._outlet.drained()
        if action.kind == "end" and self._head is not None:
            self._exchange.finish("fault end")
            if self._framing.has_chunks and self._framing.has_body:
                self._outlet.write(END_OF_CHUNKS)
        elif action.kind == "stall":
            self._exchange.finish("fault stall")
            await self._mock.closing.opened()
            self._abort("fault stall")
        elif action.kind in ("reset", "refuse"):
            if action.kind == "refuse":
                self._mock.refuse(action.ms / 1000)
            self._abort(f"fault {action.kind}")
        else:
            self._exchange.finish(f"fault {action.kind}")
            if action.kind == "garbage":
                self._outlet.write(GARBAGE)
            self._close()

    def _close(self) -> None:
        self.ends_connection = True
        self._outlet.close()

    def _abort(self, end: str) -> None:
        self._exchange.finish(end)
        self.ends_connection = True
        self._outlet.reset()
