"""The link of one worker to the others: it tells them what happens here, and takes in what happened there.

Room: the engine comes in and holds its lock; nothing here is safe for threads without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mock_provider.sharing.events import Event, read_event, spell_event
from mock_provider.sharing.log import EventLog


class Link:
    """One worker's place in the order of events.

    Shape: agree appends an event that was decided on what is known here; False when others came first, whose events
    then were taken in, and the decision has to be made anew. tell appends one that holds whatever came first.
    Raises: LinkLostError, from all of them.
    """

    def __init__(self, log: EventLog, take_in: Callable[[Event], None]) -> None:
        self._log = log
        self._take_in = take_in
        self._at = 0

    def agree(self, event: Event) -> bool:
        """Append, if nothing happened meanwhile."""
        missed = self._log.append(self._at, spell_event(event))
        if missed:
            self._take(missed)
            return False
        self._at += 1
        return True

    def tell(self, event: Event) -> None:
        """Append."""
        while not self.agree(event):
            pass

    def catch_up(self) -> None:
        """Take in what happened elsewhere."""
        self._take(self._log.read(self._at))

    def _take(self, events: Sequence[bytes]) -> None:
        for event in events:
            self._at += 1
            self._take_in(read_event(event))
