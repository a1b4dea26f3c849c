"""An answer that was rendered before, with new ids: what it says, its bytes, and the plan that sends them.

Room: pure; the patterns make it, the faces send it, the journal remembers it by its ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field

from mock_provider.asked import AskedMessage
from mock_provider.faults import Head, Plan, plan_whole

ID_BYTES = 12  # of a digest
ID_LENGTH = 2 * ID_BYTES  # hexadecimal digits


@dataclass(slots=True, eq=False)
class Pattern:
    """A rendered answer.

    Shape: text is a template of its body, for the digits of ids and behind them for counts of tokens. With a request
    id, the last header of head is a template for the first of the digits, which the body then leaves out. marks are
    what tells the ids of one request apart, offsets what is added to the count of the input. said is what clients send
    back of it, own_calls are those of its calls that have an id of the script's own. spelled_bytes is the size of the
    body without its counts, count_format spells those alone. is_for_all says that it holds for any count of the input.
    spelled are whole answers as templates, by whatever else they depend on; who spells them keeps them here.
    """

    text: bytes
    head: Head
    has_request_id: bool
    marks: tuple[bytes, ...]
    offsets: tuple[int, ...]
    said: AskedMessage
    own_calls: frozenset[int]
    spelled_bytes: int
    count_format: bytes
    is_for_all: bool
    spelled: dict[Hashable, bytes] = field(default_factory=dict)


class Filled:
    """A pattern with the digits of its ids, in the order of its marks, and the count of the input."""

    __slots__ = ("_counted", "digits", "pattern")

    def __init__(self, pattern: Pattern, digits: tuple[bytes, ...], counted: int) -> None:
        self.pattern = pattern
        self.digits = digits
        self._counted = counted

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of tokens, in their order."""
        return tuple([self._counted + offset for offset in self.pattern.offsets])

    def body(self) -> bytes:
        """The body, as the dialect would render it."""
        digits = self.digits[1:] if self.pattern.has_request_id else self.digits
        return self.pattern.text % (*digits, *self.counts)

    def digest(self) -> bytes:
        """SHA-256 of the body."""
        return hashlib.sha256(self.body()).digest()

    def plan(self) -> Plan:
        """The plan of sending it."""
        head = self.pattern.head
        if self.pattern.has_request_id:
            *others, (name, template) = head.headers
            head = Head(head.status, (*others, (name, template % self.digits[0].decode("ascii"))))
        return plan_whole(head, self.body())
