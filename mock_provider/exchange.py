"""One answer under way: its plan, and what a face notes while it carries the plan out.

Room: pure; the engine makes exchanges, the faces report to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from mock_provider.faults import Plan
from mock_provider.filled import Filled
from mock_provider.filled_stream import FilledStream
from mock_provider.journal import Entry


class Exchange:
    """The plan of an answer, and the notes about it.

    Shape: entry is None for control routes.
    """

    __slots__ = ("_answer", "_digest", "_finished", "_is_over", "_sent", "entry")

    def __init__(self, answer: Plan | Filled, entry: Entry | None, finished: Callable[[Entry], None]) -> None:
        self._answer = answer
        self.entry = entry
        self._finished = finished
        self._digest: hashlib._Hash | None = None
        self._sent: tuple[FilledStream, int] | None = None
        self._is_over = False

    @property
    def plan(self) -> Plan:
        """Everything the answer does, in order."""
        answer = self._answer
        if isinstance(answer, Filled):
            answer = self._answer = answer.plan()
        return answer

    def sent(self, data: bytes, *, is_piece: bool) -> None:
        """Note bytes of the body that went out."""
        if self._digest is None:
            self._digest = hashlib.sha256()
        self._digest.update(data)
        if self.entry is not None and is_piece:
            self.entry.pieces_sent += 1

    def sent_again(self, stream: FilledStream, count: int) -> None:
        """Note that the first so many writes of a stream went out; its digest is worked out when it is asked for."""
        self._sent = (stream, count)
        if self.entry is not None:
            self.entry.pieces_sent = stream.pattern.pieces[count]

    def sent_whole(self, data: bytes) -> None:
        """Note a body that goes out in one piece, and that it is the whole answer."""
        self.sent(data, is_piece=True)
        self.finish("complete")

    def passed(self, gate: str) -> None:
        """Note a gate that opened."""
        if self.entry is not None:
            self.entry.gates_passed += (gate,)

    def finish(self, end: str) -> None:
        """Note the end; only the first one counts."""
        if self._is_over:
            return
        self._is_over = True
        if self.entry is not None:
            self.entry.end = end
            if self._sent is None:
                self.entry.digest = (self._digest or hashlib.sha256()).digest()
            elif end == "complete":
                self.entry.filled = self._sent[0]
            else:
                self.entry.digest = self._sent[0].digest(self._sent[1])
            self._finished(self.entry)

    def gone(self) -> None:
        """Note that the client went away."""
        pieces = self.entry.pieces_sent if self.entry is not None else 0
        self.finish(f"client gone at piece {pieces}")
