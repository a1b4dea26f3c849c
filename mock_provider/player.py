"""Carrying a plan out inside the process: the waiting, for threads and for event loops.

Room: threads and asyncio; the in-process faces come in, one for each client library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal, TypeAlias

from mock_provider.actions import Delay, Die, Head, Hold, Send, Wait
from mock_provider.exchange import Exchange
from mock_provider.gates import Gate
from mock_provider.mock import Mock

Death: TypeAlias = Literal["reset", "cut", "garbage", "timeout", "refuse"]


class Dead(Exception):  # noqa: N818 - not an error of ours: the faces turn it into the client library's own
    """The answer broke off. Shape: kind says how; has_head tells whether status and headers were out."""

    def __init__(self, kind: Death, *, has_head: bool) -> None:
        super().__init__(kind)
        self.kind: Death = kind
        self.has_head = has_head


class Player:
    """One answer on its way to a client in this process.

    Shape: iterating gives the Head, then each Send. Units: read_timeout_s is the client's own, None for none.
    With virtual_time declared waiting takes no time: a wait as long as the client's timeout times out at once.
    """

    def __init__(self, mock: Mock, exchange: Exchange, read_timeout_s: float | None, *, virtual_time: bool) -> None:
        self._mock = mock
        self._exchange = exchange
        self._timeout_s = read_timeout_s
        self._is_virtual = virtual_time
        self._has_head = False

    def __iter__(self) -> Iterator[Head | Send]:
        for action, is_last in self._exchange.plan:
            if isinstance(action, Head | Send):
                yield self._out(action, is_last=is_last)
            elif isinstance(action, Delay):
                limit = self._delay(action)
                if limit and self._mock.closing.wait(limit):
                    raise self._dead("reset", "closed")
                self._check_time(action)
            elif isinstance(action, Wait):
                gate = self._arrive(action)
                limit = self._gate_limit()
                opened = gate.door.wait(limit)
                self._leave(gate, opened=opened, limit=limit)
            elif isinstance(action, Hold):
                action.until.wait(self._hold_limit(action))
            elif self._is_end(action):
                return
            else:
                self._mock.closing.wait(self._stall_limit())
                raise self._stalled()
        self._exchange.finish("complete")

    async def __aiter__(self) -> AsyncIterator[Head | Send]:
        for action, is_last in self._exchange.plan:
            if isinstance(action, Head | Send):
                yield self._out(action, is_last=is_last)
            elif isinstance(action, Delay):
                limit = self._delay(action)
                if limit and await self._mock.closing.opened(limit):
                    raise self._dead("reset", "closed")
                self._check_time(action)
            elif isinstance(action, Wait):
                gate = self._arrive(action)
                limit = self._gate_limit()
                try:
                    opened = await gate.door.opened(limit)
                except BaseException:  # the waiting task was cancelled; nothing else may stay counted at the gate
                    gate.leave()
                    raise
                self._leave(gate, opened=opened, limit=limit)
            elif isinstance(action, Hold):
                await action.until.opened(self._hold_limit(action))
            elif self._is_end(action):
                return
            else:
                await self._mock.closing.opened(self._stall_limit())
                raise self._stalled()
        self._exchange.finish("complete")

    def gone(self) -> None:
        """Note that the client closed the answer; without effect once it is complete."""
        self._exchange.gone()

    def _out(self, action: Head | Send, *, is_last: bool) -> Head | Send:
        """Note what is handed over; clients stop reading at the end mark, so the last piece completes the answer."""
        if isinstance(action, Head):
            self._has_head = True
        else:
            self._exchange.sent(action.data, is_piece=action.is_piece)
        if is_last:
            self._exchange.finish("complete")
        return action

    def _dead(self, kind: Death, end: str) -> Dead:
        self._exchange.finish(end)
        return Dead(kind, has_head=self._has_head)

    def _delay(self, action: Delay) -> float:
        if self._is_virtual:
            return 0
        wanted = action.ms / 1000
        return wanted if self._timeout_s is None else min(wanted, self._timeout_s)

    def _check_time(self, action: Delay) -> None:
        if self._timeout_s is not None and action.ms / 1000 > self._timeout_s:
            raise self._dead("timeout", f"client gone at piece {self._pieces()}")

    def _pieces(self) -> int:
        return self._exchange.entry.pieces_sent if self._exchange.entry else 0

    def _hold_limit(self, action: Hold) -> float:
        return 0 if self._is_virtual else action.limit_s

    def _arrive(self, action: Wait) -> Gate:
        gate = self._mock.gate(action.gate)
        gate.enter()
        return gate

    def _gate_limit(self) -> float:
        if self._timeout_s is None or self._is_virtual:
            return self._mock.gate_timeout_s
        return min(self._timeout_s, self._mock.gate_timeout_s)

    def _leave(self, gate: Gate, *, opened: bool, limit: float) -> None:
        gate.leave()
        if gate.is_abandoned:
            raise self._dead("reset", "closed")
        if opened:
            self._exchange.passed(gate.name)
            return
        if limit < self._mock.gate_timeout_s:
            raise self._dead("timeout", f"client gone at piece {self._pieces()}")
        self._mock.gate_stuck(gate, self._exchange.entry)
        raise self._dead("cut", f"gate {gate.name} never opened")

    def _is_end(self, action: Die) -> bool:
        """Whether the body ends cleanly here; a broken end is raised, a stall is left to the caller."""
        if action.kind == "end":
            if not self._has_head:
                raise self._dead("cut", "fault end")
            self._exchange.finish("fault end")
            return True
        if action.kind in ("reset", "cut", "garbage", "refuse"):
            raise self._dead(action.kind, f"fault {action.kind}")
        self._exchange.finish("fault stall")
        return False

    def _stall_limit(self) -> float | None:
        return 0 if self._is_virtual and self._timeout_s is not None else self._timeout_s

    def _stalled(self) -> Dead:
        if self._mock.closing.is_open:
            return self._dead("reset", "fault stall")
        return self._dead("timeout", "fault stall")


DEATH_TEXTS: dict[tuple[Death, bool], str] = {
    ("reset", False): "Connection reset by peer",
    ("reset", True): "Connection reset by peer",
    ("cut", False): "Server disconnected without sending a response.",
    ("cut", True): "peer closed connection without sending complete message body (incomplete chunked read)",
    ("garbage", False): "illegal status line",
    ("garbage", True): "illegal chunk header",
    ("timeout", False): "The read operation timed out",
    ("timeout", True): "The read operation timed out",
    ("refuse", False): "[Errno 111] Connection refused",
    ("refuse", True): "[Errno 111] Connection refused",
}


def text_of(death: Dead) -> str:
    """What the client library would say, its own words."""
    return DEATH_TEXTS[death.kind, death.has_head]


def framing(head: Head) -> tuple[str, str]:
    """The header that says how long the body is."""
    return ("transfer-encoding", "chunked") if head.length is None else ("content-length", str(head.length))
