"""The whole agent against a reference: whatever is asked of it, whatever fails, wherever it dies.

Each run of the machine is one session over several lives, on a loop and a clock that repeat exactly. The reference says
what waits, which turn may start, and how it has to end; the end of a run compares log, disk, requests and tools.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from lanes.unit.loop.reply_kinds import ANSWERS, FAILURES
from lanes.unit.loop.whole_agent import WholeAgent

KINDS = st.lists(st.sampled_from(ANSWERS) | st.sampled_from(list(FAILURES)), min_size=1, max_size=3)
VERBS = st.sampled_from(["followup", "steer", "inject"])


class Sessions(RuleBasedStateMachine):
    """One session, from its first prompt over its crashes to its rest."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.whole = WholeAgent(Path(self._folder.name))

    @rule(verb=st.sampled_from(["followup", "steer"]), kinds=KINDS, ticks=st.integers(0, 60))
    def work(self, verb: str, kinds: list[str], ticks: int) -> None:
        """What most of a session is: a message, the answers to it, and some of the time they take."""
        self.whole.script.extend(kinds)
        self.whole.send(verb)
        self.whole.tick(ticks)

    @rule(kinds=KINDS, ticks=st.integers(20, 120))
    def work_long(self, kinds: list[str], ticks: int) -> None:
        self.work("followup", kinds, ticks)

    @rule(verbs=st.lists(VERBS, min_size=1, max_size=4), ticks=st.integers(0, 12))
    def crowd(self, verbs: list[str], ticks: int) -> None:
        """Messages close behind each other."""
        for verb in verbs:
            self.whole.send(verb)
            self.whole.tick(ticks)

    @precondition(lambda self: self.whole.is_running)
    @rule(count=st.integers(1, 40))
    def tick(self, count: int) -> None:
        self.whole.tick(count)

    @precondition(lambda self: self.whole.is_running)
    @rule()
    def open_gate(self) -> None:
        self.whole.open_gate()

    @precondition(lambda self: self.whole.is_running)
    @rule()
    def settle(self) -> None:
        self.whole.settle()

    @precondition(lambda self: self.whole.is_running or self.whole.reference.waiting)
    @rule(keep=st.booleans(), then=st.lists(VERBS, max_size=2))
    def cancel(self, keep: bool, then: list[str]) -> None:
        """A cancel, and what a person says right after it."""
        self.whole.cancel(keep=keep)
        for verb in then:
            self.whole.send(verb)

    @precondition(lambda self: self.whole.sent)
    @rule(back=st.integers(0, 3), is_replaced=st.booleans())
    def take_back(self, back: int, is_replaced: bool) -> None:
        sent = self.whole.sent[-min(back + 1, len(self.whole.sent))]
        if is_replaced:
            self.whole.replace(sent)
        else:
            self.whole.drop(sent)

    @precondition(lambda self: self.whole.reference.waiting)
    @rule()
    def wake(self) -> None:
        self.whole.wake()

    @precondition(lambda self: not self.whole.is_durable)
    @rule(is_waited_for=st.booleans())
    def write(self, is_waited_for: bool) -> None:
        """A surface waits for a receipt, or the time is up that events may wait for the disk."""
        if is_waited_for:
            self.whole.receipt()
        else:
            self.whole.window()

    @precondition(lambda self: self.whole.is_running or self.whole.disk.is_full)
    @rule()
    def fill_or_free(self) -> None:
        self.whole.fill(is_full=not self.whole.disk.is_full)

    @precondition(lambda self: self.whole.has_lived)
    @rule()
    def restart(self) -> None:
        self.whole.restart()

    @precondition(lambda self: self.whole.has_lived)
    @rule(kept=st.floats(0, 1))
    def crash(self, kept: float) -> None:
        self.whole.crash(kept)

    def teardown(self) -> None:
        try:
            self.whole.end()
        finally:
            self.whole.close()
            self._folder.cleanup()


def test_R01_a_session_of_any_calls_failures_crashes_and_resumes_does_what_its_reference_says() -> None:
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
