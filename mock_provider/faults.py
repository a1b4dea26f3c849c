"""From an answer to a plan: what is sent, where it waits, where it dies.

Room: pure; the dialects make the items, the engine asks for the plan, the faces carry it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat

from mock_provider.actions import Action, Delay, Die, Head, Item, Send, Wait
from mock_provider.filled_stream import FilledStream
from mock_provider.mangling import break_utf8, halve, strike
from mock_provider.steps import DEADLY_KINDS, AtGate, Break, FaultKind, Step
from mock_provider.values import value

GARBAGE = b"\x15\x03\x01\x00\x02\x02\x46"  # a TLS alert in the clear: what a plain client gets from a TLS port


@value
class Plan:
    """Everything one answer does, in order.

    Shape: exactly one Head, unless it dies before; nothing after a Die. actions can be gone through once: the pieces of
    a stream are made as they are sent, so that the first does not wait for the last. head is that of the actions;
    is_broken tells whether they end in a Die, is_waiting whether they may hold something else than Head and Send. whole
    is the body where it is one piece after the head and nothing else happens; stream holds the writes of the actions,
    where they are known.
    """

    actions: Iterable[Action]
    head: Head | None
    is_broken: bool = False
    is_waiting: bool = False
    whole: bytes | None = None
    stream: FilledStream | None = None

    def __iter__(self) -> Iterator[tuple[Action, bool]]:
        """Each action, and whether it is the last one: who has read the last piece may already look at the journal."""
        actions = iter(self.actions)
        here = next(actions, None)
        while here is not None:
            following = next(actions, None)
            yield here, following is None
            here = following


def plan_whole(head: Head, body: bytes, step: Step | None = None, *, wait_ms: int | None = None) -> Plan:
    """Plan an answer that is one body; a fault after n > 0 pieces cuts it in the middle.

    Shape: wait_ms passes before the head, None for the step's own time. A body is one event: those faults that need
    several leave it alone.
    """
    if wait_ms is None:
        wait_ms = step.stream.first_ms if step is not None else 0
    if step is None or (step.fault is None and not step.gates and not wait_ms and not _drips(step)):
        if step is not None and step.stream.trailing:
            body += step.stream.trailing.encode("utf-8", "surrogatepass")
        head = Head(head.status, head.headers, len(body))
        return Plan((head, Send(body, True)), head, whole=body)
    kind = step.fault.kind if step.fault is not None else None
    actions: list[Action] = list(_before(step))
    if _is_dead(actions):
        return Plan(actions, None, is_broken=True, is_waiting=True)
    if wait_ms:
        actions.append(Delay(wait_ms))
    late = [Wait(gate.name) for gate in step.gates if gate.after is not None]
    body += step.stream.trailing.encode("utf-8", "surrogatepass")
    if kind == "truncate":
        body = halve(Send(body)).data
    elif kind == "bad_utf8":
        body = break_utf8(body)
    is_deadly = kind in DEADLY_KINDS and kind != "truncate"
    head = Head(head.status, head.headers, None if kind in ("end", "keep_alive") else len(body))
    if step.fault is None or not is_deadly:
        rest = _dripped((Send(body, True),), step)
        return Plan(chain(actions, late, (head,), rest), head, is_broken=kind == "truncate", is_waiting=True)
    actions += [head, *late]
    if step.fault.after:
        actions.append(halve(Send(body, True)))
    death = strike((Die(step.fault.kind, step.fault.ms),), b" ")  # white space before or after JSON means nothing
    return Plan(chain(actions, death), head, is_broken=True, is_waiting=True)


def plan_stream(
    head: Head,
    items: Iterable[Item],
    step: Step,
    *,
    waits: Iterable[int] | None = None,
    keep_alive: bytes = b": keep-alive\n\n",
) -> Plan:
    """Plan a streamed answer: gates and the fault at their piece, waiting times, writes cut or joined.

    Shape: waits are the times before each piece; keep_alive is what the dialect sends to show that it is there, if
    it does.
    """
    head = Head(head.status, head.headers)
    before = list(_before(step))
    if _is_dead(before):
        return Plan(before, None, is_broken=True, is_waiting=True)
    placed: Iterable[Action] = _placed(items, step)
    kinds = _fault_kinds(step)
    if kinds:
        placed = strike(placed, keep_alive)
    is_waiting = bool(
        kinds
        or step.gates
        or waits is not None
        or step.stream.is_paced
        or any(isinstance(part, AtGate) for part in step.parts)
    )
    if step.stream.trailing:
        placed = chain(placed, (Send(step.stream.trailing.encode("utf-8", "surrogatepass")),))
    if waits is not None or step.stream.is_paced:
        placed = _paced(placed, step, _usual_waits(step) if waits is None else waits, keep_alive)
    actions = _written(_up_to_death(placed), step)
    return Plan(chain(before, (head,), actions), head, any(kind in DEADLY_KINDS for kind in kinds), is_waiting)


def plan_again(head: Head, stream: FilledStream) -> Plan:
    """Plan a stream that was sent before."""
    head = Head(head.status, head.headers)
    return Plan(stream.actions(head), head, stream=stream)


def _fault_kinds(step: Step) -> list[FaultKind]:
    kinds = [part.kind for part in step.parts if isinstance(part, Break)]
    return kinds if step.fault is None else [*kinds, step.fault.kind]


def _up_to_death(actions: Iterable[Action]) -> Iterator[Action]:
    for action in actions:
        yield action
        if isinstance(action, Die):
            return


def _before(step: Step) -> list[Action]:
    actions: list[Action] = [Wait(gate.name) for gate in step.gates if gate.after is None]
    fault = step.fault
    if fault is not None and fault.after is None and fault.kind in DEADLY_KINDS and fault.kind != "truncate":
        actions.append(Die(fault.kind, fault.ms))
    return actions


def _is_dead(actions: Sequence[Action]) -> bool:
    return bool(actions) and isinstance(actions[-1], Die)


def _placed(items: Iterable[Item], step: Step) -> Iterable[Item]:
    """Put the gates and the fault that count pieces after their piece; a number beyond the end means the end."""
    extra: list[tuple[int, Item]] = [(gate.after, Wait(gate.name)) for gate in step.gates if gate.after is not None]
    if step.fault is not None:
        extra.append((step.fault.after or 0, Die(step.fault.kind, step.fault.ms)))
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


def _usual_waits(step: Step) -> Iterator[int]:
    return chain((step.stream.first_ms,), repeat(step.stream.every_ms))


def _paced(items: Iterable[Action], step: Step, waits: Iterable[int], keep_alive: bytes) -> Iterator[Action]:
    times = iter(waits)
    longest = step.stream.keep_alive_ms
    for item in items:
        if isinstance(item, Send) and item.is_piece:
            wait = next(times, 0)
            while longest and wait > longest and keep_alive:
                yield Delay(longest)
                yield Send(keep_alive)
                wait -= longest
            if wait:
                yield Delay(wait)
        yield item


def _written(actions: Iterable[Action], step: Step) -> Iterable[Action]:
    """Join events into one write or cut one into several, never across a wait."""
    plan = step.stream
    if plan.events_per_write != 1 and plan.split.by != "bytes":
        actions = _joined(actions, plan.events_per_write)
    size = plan.split.size if plan.split.by == "bytes" else plan.bytes_per_write
    if size:
        actions = _cut(actions, size)
    return _dripped(actions, step) if _drips(step) else actions


def _drips(step: Step) -> bool:
    return step.stream.drip_bytes > 0


def _dripped(actions: Iterable[Action], step: Step) -> Iterator[Action]:
    """Let a few bytes out at a time, with a wait before each but the very first."""
    if not _drips(step):
        yield from actions
        return
    is_first = True
    for action in _cut(actions, step.stream.drip_bytes):
        if isinstance(action, Send):
            if not is_first and step.stream.drip_ms:
                yield Delay(step.stream.drip_ms)
            is_first = False
        yield action


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


__all__ = ["GARBAGE", "Action", "Delay", "Die", "Head", "Item", "Plan", "Send", "Wait", "plan_stream", "plan_whole"]
