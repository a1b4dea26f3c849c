"""From an answer to a plan: what is sent, where it waits, where it dies.

Room: pure; the dialects make the items, the engine asks for the plan, the faces carry it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mock_provider.steps import FaultKind, Step

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
    """Everything one answer does, in order. Shape: exactly one Head, unless it dies before; nothing after a Die."""

    actions: tuple[Action, ...]


def plan_whole(head: Head, body: bytes, step: Step | None = None) -> Plan:
    """Plan an answer that is one body; a fault after n > 0 pieces cuts it in the middle."""
    actions: list[Action] = list(_before(step))
    if _is_dead(actions):
        return Plan(tuple(actions))
    if step is not None and step.stream.first_ms:
        actions.append(Delay(step.stream.first_ms))
    late = [gate.name for gate in step.gates if gate.after is not None] if step else []
    if step is None or step.fault is None:
        return Plan((*actions, *map(Wait, late), Head(head.status, head.headers, len(body)), Send(body, True)))
    actions.append(Head(head.status, head.headers, None if step.fault.kind == "end" else len(body)))
    actions.extend(map(Wait, late))
    if step.fault.after:
        actions.append(Send(body[: (len(body) + 1) // 2], True))
    return Plan((*actions, Die(step.fault.kind)))


def plan_stream(head: Head, items: Iterable[Item], step: Step) -> Plan:
    """Plan a streamed answer: gates and the fault at their piece, waiting times, writes cut or joined."""
    actions: list[Action] = list(_before(step))
    if _is_dead(actions):
        return Plan(tuple(actions))
    actions.append(Head(head.status, head.headers, None))
    actions.extend(_paced(_placed(tuple(items), step), step))
    dead = next((at for at, action in enumerate(actions) if isinstance(action, Die)), None)
    if dead is not None:
        actions = actions[: dead + 1]
    return Plan(tuple(_written(actions, step)))


def _before(step: Step | None) -> list[Action]:
    if step is None:
        return []
    actions: list[Action] = [Wait(gate.name) for gate in step.gates if gate.after is None]
    if step.fault is not None and step.fault.after is None:
        actions.append(Die(step.fault.kind))
    return actions


def _is_dead(actions: Sequence[Action]) -> bool:
    return bool(actions) and isinstance(actions[-1], Die)


def _placed(items: Sequence[Item], step: Step) -> list[Item]:
    """Put the gates and the fault that count pieces after their piece; a number beyond the end means the end."""
    places = [at for at, item in enumerate(items) if isinstance(item, Send) and item.is_piece]
    extra: list[tuple[int, Item]] = [(gate.after, Wait(gate.name)) for gate in step.gates if gate.after is not None]
    if step.fault is not None and step.fault.after is not None:
        extra.append((step.fault.after, Die(step.fault.kind)))
    if not extra:
        return list(items)
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


def _paced(items: Sequence[Item], step: Step) -> list[Action]:
    actions: list[Action] = []
    is_first = True
    for item in items:
        if isinstance(item, Send) and item.is_piece:
            wait = step.stream.first_ms if is_first else step.stream.every_ms
            is_first = False
            if wait:
                actions.append(Delay(wait))
        actions.append(item)
    return actions


def _written(actions: Sequence[Action], step: Step) -> list[Action]:
    """Join events into one write or cut one into several, never across a wait."""
    if step.stream.split.by == "bytes":
        size = step.stream.split.size
        cut: list[Action] = []
        for action in actions:
            if isinstance(action, Send):
                last = (len(action.data) - 1) // size * size
                cut.extend(
                    Send(action.data[at : at + size], action.is_piece and at == last)
                    for at in range(0, len(action.data), size)
                )
            else:
                cut.append(action)
        return cut
    if step.stream.events_per_write == 1:
        return list(actions)
    joined: list[Action] = []
    waiting: list[Send] = []

    def flush() -> None:
        if waiting:
            joined.append(Send(b"".join(send.data for send in waiting), any(send.is_piece for send in waiting)))
            waiting.clear()

    for action in actions:
        if isinstance(action, Send):
            waiting.append(action)
            if len(waiting) == step.stream.events_per_write:
                flush()
        else:
            flush()
            joined.append(action)
    flush()
    return joined
