"""The messages of a conversation as they were at one moment, without a copy of them.

Room: pure data; the log hands it out, requests carry it, encoders ask whether it goes on from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from harness.model.messages import Message


class MessageView(Sequence[Message]):
    """The first messages of a list that only grows at its end.

    Shape: equal to a tuple of the same messages; slices are tuples. It never changes, however long the list becomes.
    Limits: making one and extends() cost the same for ten messages and for ten thousand.
    """

    __slots__ = ("_entries", "_length")

    def __init__(self, entries: list[Message]) -> None:
        self._entries = entries
        self._length = len(entries)

    def extends(self, earlier: MessageView) -> bool:
        """Whether this is a view of the same list, and begins with all of the earlier one."""
        return earlier._entries is self._entries and earlier._length <= self._length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, at: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(at, slice):
            start, stop, stride = at.indices(self._length)
            if stride > 0:
                return tuple(self._entries[start : max(start, stop) : stride])
            return tuple(self._entries[index] for index in range(start, stop, stride))
        return self._entries[range(self._length)[at]]

    def __iter__(self) -> Iterator[Message]:
        return islice(self._entries, self._length)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MessageView):
            if other._entries is self._entries:
                return other._length == self._length
            return tuple(self) == tuple(other)
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
