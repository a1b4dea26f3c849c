"""What a fault does to the events that follow it: sent twice, exchanged, left out, cut in half, no longer UTF-8.

Room: pure; faults comes in. Whatever the dialect, one item is one event, so the harm is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mock_provider.actions import Action, Delay, Die, Send

KEEP_ALIVE_MS = 1000  # between two signs of life where the script says nothing; providers send one every few seconds
MAX_SIGNS = 10_000  # a client without a limit of its own, under virtual time, must come to an end
NOT_UTF8 = b"\xff\xfe"  # may stand nowhere in UTF-8


def strike(actions: Iterable[Action], keep_alive: bytes) -> Iterator[Action]:
    """Carry out the faults that concern events; those that end a connection are left to the face.

    Shape: a fault concerns the next event; without one a harm does nothing.
    """
    source = iter(actions)
    for action in source:
        if not isinstance(action, Die):
            yield action
        elif action.kind == "keep_alive":
            yield from _signs(action.ms or KEEP_ALIVE_MS, keep_alive)
        elif action.kind in ("truncate", "duplicate", "swap", "drop", "bad_utf8"):
            yield from _harm(action, source)
        else:
            yield action


def _signs(every_ms: int, keep_alive: bytes) -> Iterator[Action]:
    for _ in range(MAX_SIGNS if keep_alive else 0):  # a dialect without signs of life falls silent
        yield Delay(every_ms)
        yield Send(keep_alive)
    yield Die("stall")


def _harm(fault: Die, source: Iterator[Action]) -> Iterator[Action]:
    between: list[Action] = []
    found = _next_event(source, between)
    yield from between
    if fault.kind == "truncate":
        if found is not None:
            yield halve(found)
        yield Die("end")
    elif found is None:
        return
    elif fault.kind == "duplicate":
        yield found
        yield Send(found.data)
    elif fault.kind == "bad_utf8":
        yield Send(break_utf8(found.data), found.is_piece)
    elif fault.kind == "swap":
        between.clear()
        second = _next_event(source, between)
        if second is not None:
            yield second
        yield found
        yield from between


def _next_event(source: Iterator[Action], between: list[Action]) -> Send | None:
    """The next event; what is before it, waits and faults, is put into between."""
    for action in source:
        if isinstance(action, Send):
            return action
        between.append(action)
    return None


def halve(event: Send) -> Send:
    """The first half of an event."""
    return Send(event.data[: (len(event.data) + 1) // 2], event.is_piece)


def break_utf8(data: bytes) -> bytes:
    """The same bytes with two in their middle that no UTF-8 has."""
    middle = len(data) // 2
    return data[:middle] + NOT_UTF8 + data[middle:]
