"""From an answer to a plan: what is sent, where it waits, where it dies.

Room: pure; the dialects make the items, the engine asks for the plan, the faces carry it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from mock_provider.steps import AtGate, Break, FaultKind, Step

GARBAGE = b"\x15\x03\x01\x00\x02\x02\x46"  # a TLS alert in the clear: what a plain client gets from a TLS port


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes that go out in one write. Shape: is_piece tells pieces of the answer from the dialect's framing."""

    data: bytes
    is_piece: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a gate."""

    gate: str


@dataclass(frozen=True, slots=True)
class Delay:
    """Let time pass."""

    ms: int


@dataclass(frozen=True, slots=True)
class Die:
    """The answer ends here, badly."""

    kind: FaultKind


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers. Shape: length None means a body of unknown length, sent in chunks."""

    status: int
    headers: tuple[tuple[str, str], ...]
    length: int | None = None


Item: TypeAlias = "Send | Wait | Die"
Action: TypeAlias = "Head | Send | Wait | Delay | Die"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one answer does, in order.

    Shape: exactly one Head, unless it dies before; nothing after a Die. actions can be gone through once: the pieces of
    a stream are made as they are sent, so that the first does not wait for the last. head is that of the actions;
    is_broken tells whether they end in a Die, is_waiting whether they may hold something else than Head and Send.
    """

    actions: Iterable[Action]
    head: Head | None
    is_broken: bool = False
    is_waiting: bool = False

    def __iter__(self) -> Iterator[tuple[Action, bool]]:
        """Each action, and whether it is the last one: who has read the last piece may already look at the journal."""
        actions = iter(self.actions)
        here = next(actions, None)
        while here is not None:
            following = next(actions, None)
            yield here, following is None
            here = following


def plan_whole(head: Head, body: bytes, step: Step | None = None) -> Plan:
    """Plan an answer that is one body; a fault after n > 0 pieces cuts it in the middle."""
    head = Head(head.status, head.headers, len(body))
    if step is None or (step.fault is None and not step.gates and not step.stream.first_ms):
        return Plan((head, Send(body, True)), head)
    actions: list[Action] = list(_before(step))
    if _is_dead(actions):
        return Plan(actions, None, is_broken=True, is_waiting=True)
    if step.stream.first_ms:
        actions.append(Delay(step.stream.first_ms))
    late = [gate.name for gate in step.gates if gate.after is not None]
    if step.fault is None:
        return Plan((*actions, *map(Wait, late), head, Send(body, True)), head, is_waiting=True)
    if step.fault.kind == "end":
        head = Head(head.status, head.headers)
    actions.append(head)
    actions.extend(map(Wait, late))
    if step.fault.after:
        actions.append(Send(body[: (len(body) + 1) // 2], True))
    return Plan((*actions, Die(step.fault.kind)), head, is_broken=True, is_waiting=True)


def plan_stream(head: Head, items: Iterable[Item], step: Step) -> Plan:
    """Plan a streamed answer: gates and the fault at their piece, waiting times, writes cut or joined."""
    head = Head(head.status, head.headers)
    before = list(_before(step))
    if _is_dead(before):
        return Plan(before, None, is_broken=True, is_waiting=True)
    placed = _placed(items, step)
    is_broken = step.fault is not None or any(isinstance(part, Break) for part in step.parts)
    is_waiting = bool(
        is_broken
        or step.gates
        or step.stream.first_ms
        or step.stream.every_ms
        or any(isinstance(part, AtGate) for part in step.parts)
    )
    actions = _written(_up_to_death(_paced(placed, step)), step)
    return Plan(chain(before, (head,), actions), head, is_broken, is_waiting)


def _up_to_death(actions: Iterable[Action]) -> Iterator[Action]:
    for action in actions:
        yield action
        if isinstance(action, Die):
            return


def _before(step: Step) -> list[Action]:
    actions: list[Action] = [Wait(gate.name) for gate in step.gates if gate.after is None]
    if step.fault is not None and step.fault.after is None:
        actions.append(Die(step.fault.kind))
    return actions


def _is_dead(actions: Sequence[Action]) -> bool:
    return bool(actions) and isinstance(actions[-1], Die)


def _placed(items: Iterable[Item], step: Step) -> Iterable[Item]:
    """Put the gates and the fault that count pieces after their piece; a number beyond the end means the end."""
    extra: list[tuple[int, Item]] = [(gate.after, Wait(gate.name)) for gate in step.gates if gate.after is not None]
    if step.fault is not None and step.fault.after is not None:
        extra.append((step.fault.after, Die(step.fault.kind)))
    if not extra:
        return items
    items = list(items)
    places = [at for at, item in enumerate(items) if isinstance(item, Send) and item.is_piece]
    before: dict[int, list[Item]] = {}
    for after, item in extra:
        if after == 0:
            position = places[0] if places else min(1, len(items))
        else:
            position = places[min(after, len(places)) - 1] + 1 if places else len(items)
        before.setdefault(position, []).append(item)
    placed: list[Item] = []
    for at in range(len(items) + 1):
        placed.extend(before.get(at, ()))
        placed.extend(items[at : at + 1])
    return placed


def _paced(items: Iterable[Item], step: Step) -> Iterator[Action]:
    wait = step.stream.first_ms
    for item in items:
        if isinstance(item, Send) and item.is_piece:
            if wait:
                yield Delay(wait)
            wait = step.stream.every_ms
        yield item


def _written(actions: Iterable[Action], step: Step) -> Iterable[Action]:
    """Join events into one write or cut one into several, never across a wait."""
    if step.stream.split.by == "bytes":
        return _cut(actions, step.stream.split.size)
    if step.stream.events_per_write == 1:
        return actions
    return _joined(actions, step.stream.events_per_write)


def _cut(actions: Iterable[Action], size: int) -> Iterator[Action]:
    for action in actions:
        if isinstance(action, Send):
            last = (len(action.data) - 1) // size * size
            for at in range(0, len(action.data), size):
                yield Send(action.data[at : at + size], action.is_piece and at == last)
        else:
            yield action


def _joined(actions: Iterable[Action], count: int) -> Iterator[Action]:
    """Shape: count 0 joins everything between two waits."""
    waiting: list[Send] = []

    def joined() -> Iterator[Action]:
        if waiting:
            yield Send(b"".join(send.data for send in waiting), any(send.is_piece for send in waiting))
            waiting.clear()

    for action in actions:
        if isinstance(action, Send):
            waiting.append(action)
            if len(waiting) == count:
                yield from joined()
        else:
            yield from joined()
            yield action
    yield from joined()
