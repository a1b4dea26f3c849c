"""A small model of an agent's queues and turns, fed with what was asked of it and with each event it logs.

Room: the test of the whole agent. It shares no code with the loop: it says what may come next, and what a turn amounts
to, from the specification's words alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    EndSeed,
    Event,
    InboxSpliced,
    LlmRetry,
    RequestContext,
    RequestHeader,
    StepEnd,
    StepStart,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from lanes.unit.loop.reply_kinds import FAILURES

STEP, TURN = "next-step", "next-turn"
DRAINS = ("completed", "max-tokens", "step-limit", "aborted")  # after these ends, what waits opens the next turn
MAX_RETRIES = 2


@dataclass(frozen=True)
class Splice:
    """One change of one queue, by ids."""

    target: str
    start: int
    removed: tuple[tuple[str, str], ...] = ()
    inserted: tuple[str, ...] = ()
    wakes: bool = True


class Reference:
    """What the queues hold and how the turn at hand must end.

    Shape: an operation says with expect what it will write; take checks a live event against it, follow only learns
    from a stored one. rank orders messages as they came in.
    """

    def __init__(self, max_steps: int, rank: Callable[[str], int]) -> None:
        self.max_steps = max_steps
        self.rank = rank
        self.queues: dict[str, list[str]] = {STEP: [], TURN: []}
        self.quiet: set[str] = set()
        self.parked: set[str] = set()
        self.fates: dict[str, tuple[str, int]] = {}
        self.entered: dict[str, int] = {}
        self.reasons: dict[int, TurnReason] = {}
        self.turn = self.step = 0
        self.turn_open = self.step_open = False
        self.cancelled = False  # the scope of the activity at hand
        self.abort: str | None = None
        self.disk_is_full = self.had_disk_trouble = False
        self.reply: str | None = None  # the last reply of the step, None once it became a message
        self._retries = 0
        self._owes = self._cut = False
        self._to_enter: deque[str] = deque()
        self._claimed: set[str] = set()
        self._expected: deque[Splice] = deque()

    @property
    def waiting(self) -> set[str]:
        return {*self.queues[STEP], *self.queues[TURN]}

    @property
    def due(self) -> set[str]:
        """What would open a turn by itself."""
        return self.waiting - self.quiet - self.parked

    def expect(self, *splices: Splice) -> None:
        self._expected.extend(splices)

    def insertion(self, target: str, message_id: str, *, wakes: bool) -> Splice:
        return Splice(target, len(self.queues[target]), inserted=(message_id,), wakes=wakes)

    def removal(self, message_id: str, *inserted: str, fate: str) -> Splice | None:
        for target, ids in self.queues.items():
            if message_id in ids:
                wakes = not inserted or message_id not in self.quiet
                return Splice(target, ids.index(message_id), ((message_id, fate),), inserted, wakes)
        return None

    def clearing(self) -> tuple[Splice, ...]:
        """Both lists emptied, next-step first."""
        found = ((target, self.queues[target]) for target in (STEP, TURN))
        return tuple(Splice(target, 0, tuple((each, "canceled") for each in ids)) for target, ids in found if ids)

    def check_settled(self) -> None:
        """What an operation announced was written, and the queues keep the order in which their messages came."""
        assert not self._expected, f"never written: {list(self._expected)}"
        for ids in self.queues.values():
            assert ids == sorted(ids, key=self.rank)

    def check_fates(self) -> None:
        """Nothing is lost: what was claimed came into its turn, or that turn was cancelled over it."""
        for message_id, (fate, turn) in self.fates.items():
            assert (fate == "pending") == (message_id in self.waiting), message_id
            if fate == "claimed" and self.entered.get(message_id) != turn:
                assert turn in self.reasons, f"{message_id} is lost in turn {turn}"
                assert self.reasons[turn].kind == "aborted", f"{message_id} is lost in turn {turn}"

    def request(self, kind: str) -> None:
        """The model is asked, and will reply with that kind of answer."""
        assert self.step_open
        assert not self._to_enter, f"a request before {list(self._to_enter)} entered"
        assert self.abort is None, "a request after the cancel"
        assert self.reply is None or FAILURES[self.reply][1], "a request after a failure that ends the turn"
        self.reply = kind

    def take(self, event: Event) -> None:
        """Check a live event, and learn from it."""
        payload = event.payload
        if isinstance(payload, InboxSpliced):
            self._check_splice(payload)
        elif isinstance(payload, TurnStart):
            assert not self.turn_open
            assert self.due, "a turn starts and nothing is due"
            self.cancelled, self.abort = False, None
            self.had_disk_trouble = self.disk_is_full
        elif isinstance(payload, UserMessage):
            assert self._to_enter
            assert payload.message.id == self._to_enter.popleft()
        elif isinstance(payload, RequestHeader | RequestContext | AssistantChunk):
            assert not self._to_enter
        elif isinstance(payload, LlmRetry):
            self._retries += 1
            assert self.reply is not None
            assert (payload.failure.code, True) == FAILURES[self.reply]
            assert payload.retry == self._retries <= MAX_RETRIES
        elif isinstance(payload, AssistantMessage):
            assert self.reply is not None
            assert self.reply not in FAILURES, "a failed attempt became a message"
        elif isinstance(payload, TurnEnd):
            self._check_end(payload.reason)
        self.follow((event,))

    def follow(self, events: Iterable[Event]) -> None:
        """Learn from events that stand in the log."""
        for event in events:
            payload = event.payload
            if isinstance(payload, InboxSpliced):
                self._apply(payload)
            elif isinstance(payload, TurnStart):
                self.turn, self.turn_open, self.step = payload.turn, True, 0
                self._cut = self._owes = False
                self.reply = None
                self._claimed = set()
            elif isinstance(payload, StepStart):
                self.step, self.step_open = payload.step, True
                self.reply, self._retries, self._owes = None, 0, True
            elif isinstance(payload, UserMessage):
                self.entered[payload.message.id] = self.turn
            elif isinstance(payload, AssistantMessage):
                self._cut = self._cut or self.reply == "cut"
                self._owes = any(type(block).__name__ == "ToolCallBlock" for block in payload.message.content)
                self.reply = None
            elif isinstance(payload, ToolResult):
                self._owes = self._owes and not (payload.meta or {}).get("concludesTurn")
            elif isinstance(payload, StepEnd):
                self.step_open = False
                self._to_enter.clear()
            elif isinstance(payload, TurnEnd):
                self.turn_open = False
                self._to_enter.clear()
                self.reasons[payload.turn] = payload.reason
                if payload.reason.kind not in DRAINS:
                    self.parked = self.waiting
            elif isinstance(payload, EndSeed):
                self.parked = self.waiting

    def _check_splice(self, payload: InboxSpliced) -> None:
        found = Splice(
            payload.target,
            payload.start,
            tuple((str(item.id), item.fate) for item in payload.removed),
            tuple(str(message.id) for message in payload.inserted),
            payload.wakes,
        )
        if self._expected:
            assert found == self._expected.popleft()
        elif found.removed:
            self._check_claim(payload, found)
        elif found.start == 0 and set(found.inserted) <= self._claimed:
            assert not self.step_open, "what entered a step comes back"
            assert self.had_disk_trouble
            self._to_enter.clear()
        else:  # what a tool wants the model to know besides its result
            assert found == self.insertion(STEP, found.inserted[0], wakes=False)
            assert self.step_open
            assert found.inserted[0].startswith("message-")

    def _check_claim(self, payload: InboxSpliced, found: Splice) -> None:
        assert self.turn_open
        assert not self.step_open
        assert {(item.fate, item.turn) for item in payload.removed} == {("claimed", self.turn)}
        ids = [message_id for message_id, _ in found.removed]
        if found.target == TURN:
            assert self.step == 0, "a prompt is claimed in the middle of a turn"
            assert self.queues[STEP] == []
            assert ids == self.queues[TURN][:1]
        else:
            assert ids == self.queues[STEP]
        self._claimed = {*self._claimed, *ids}
        self._to_enter.extend(ids)

    def _apply(self, payload: InboxSpliced) -> None:
        ids = self.queues[payload.target]
        gone = ids[payload.start : payload.start + len(payload.removed)]
        assert gone == [item.id for item in payload.removed]
        came = [str(message.id) for message in payload.inserted]
        ids[payload.start : payload.start + len(gone)] = came
        self.fates.update((str(item.id), (item.fate, item.turn or 0)) for item in payload.removed)
        self.fates.update((message_id, ("pending", 0)) for message_id in came)
        self.quiet.difference_update(gone)
        if not payload.wakes:
            self.quiet.update(came)

    def _check_end(self, reason: TurnReason) -> None:
        assert self.turn_open
        assert not self.step_open
        if self.abort is not None:
            assert (reason.kind, reason.cause and reason.cause.kind) == ("aborted", self.abort), reason
        elif self.had_disk_trouble and reason.kind == "error":
            assert reason.failure is not None
        else:
            assert (reason.kind, reason.failure and reason.failure.code) in self._possible_ends()

    def _possible_ends(self) -> Sequence[tuple[str, str | None]]:
        if self.reply is not None:
            code, is_tried_again = FAILURES[self.reply]
            assert self._retries == (MAX_RETRIES if is_tried_again else self._retries)
            return [("error", code)]
        if self._owes or self.queues[STEP]:
            assert self.step == self.max_steps
            return [("step-limit", None)]
        return [("max-tokens" if self._cut else "completed", None)]
