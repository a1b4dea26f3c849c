"""The engine and its control object: a request goes in, a plan comes out, everything is in the journal.

Room: threads; the faces come in with requests, tests with questions.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from mock_provider.caller import Caller, Callers
from mock_provider.control import answer_control
from mock_provider.deciding import JSON_TYPE, Decider, Decision, head_of, refuse_unread
from mock_provider.dialects.table import BASE_PATHS
from mock_provider.errors import UsageError, VerdictError
from mock_provider.exchange import Exchange
from mock_provider.faults import Plan, plan_whole
from mock_provider.filled import Filled
from mock_provider.framing import Framing, spell_filled
from mock_provider.gates import Gate, Latch
from mock_provider.incoming import Incoming
from mock_provider.journal import Entry, Journal
from mock_provider.json_values import Json
from mock_provider.kept import Kept
from mock_provider.limits import Limits
from mock_provider.match import explain_stuck
from mock_provider.metrics import Metrics
from mock_provider.play import Play
from mock_provider.questions import Questions
from mock_provider.request_log import RequestLog
from mock_provider.routes import CONTROL_PREFIX
from mock_provider.script import ScriptLike, as_script
from mock_provider.script_fields import near_miss
from mock_provider.sharing.events import Arrived, AtGate, Ended, Event, KeptChange, PortClosed, Restarted, Stuck
from mock_provider.sharing.link import Link
from mock_provider.sharing.log import EventLog, LinkLostError
from mock_provider.spelling import KeptBody
from mock_provider.standing import give
from mock_provider.steps import Script
from mock_provider.succession import Scene, Succession
from mock_provider.verdict import Verdict


class Mock:
    """The control object, the same on every face.

    Shape: journal, gate(name), verify(), reset(), close(), base_url(dialect). may_change: another script may follow.
    shared: other workers play with, and all agree on the order of what happens.
    Units: gate_timeout_s is how long an answer waits at a gate before the play is called failed.
    """

    def __init__(
        self,
        script: ScriptLike,
        *,
        root: str = "http://mock.invalid",
        gate_timeout_s: float = 60,
        journal_path: Path | None = None,
        limits: Limits | None = None,
        log: RequestLog | None = None,
        may_change: bool = False,
        shared: EventLog | None = None,
    ) -> None:
        self.script: Script = as_script(script)
        self.root = root
        self.gate_timeout_s = gate_timeout_s
        self.limits = limits or Limits()
        self.journal = Journal(journal_path)
        self.closing = Latch()
        self.close_port: Callable[[float], None] | None = None
        self._lock = threading.Lock()
        self.metrics = Metrics()
        self._log = log
        self._may_change = may_change
        self._earlier = Succession()
        self._play = Play(self.script, remembers=may_change)
        self._link = None if shared is None else Link(shared, self._take_in)
        self._round = 0
        self._kept = Kept(told=None if self._link is None else self._tell_kept)
        self._callers = Callers(self.script)
        self._decider = Decider(self._play, self._kept, self.metrics)
        self._is_watched = log is not None or self.journal.has_file  # entry by entry, as each comes to its end
        self._questions = Questions(self.limits.body_bytes)
        self._gates: dict[str, Gate] = {}
        self._make_gates()

    def _make_gates(self) -> None:
        told = None if self._link is None else self._tell_gate
        self._gates = {name: Gate(name, told) for name in self.script.gate_names()}

    def base_url(self, dialect: str = "openai_chat", conversation: str = "") -> str:
        """The address to give to a client of this dialect, for one conversation if named."""
        if dialect not in BASE_PATHS:
            what = f"dialect '{dialect}' is unknown{near_miss(dialect, tuple(BASE_PATHS))}"
            raise UsageError(what, expected=f"one of {', '.join(BASE_PATHS)}")
        prefix = f"/c/{conversation}" if conversation else ""
        return f"{self.root}{prefix}{BASE_PATHS[dialect]}"

    def gate(self, name: str) -> Gate:
        """A gate of the script. Raises: UsageError for a name the script does not have."""
        found = self._gates.get(name)
        if found is None:
            known = tuple(self._gates)
            what = f"gate '{name}' is not in the script{near_miss(name, known)}"
            raise UsageError(what, where=self.script.name, expected=f"one of {', '.join(known) or '(no gates)'}")
        return found

    def gates(self) -> tuple[Gate, ...]:
        """All gates of the script."""
        return tuple(self._gates.values())

    @property
    def arrived(self) -> int:
        """How many requests came."""
        return self._play.number

    def verify(self) -> Verdict:
        """Judge the play so far."""
        with self._lock:
            self._catch_up()
            waiting = [
                f"{self.script.name}: gate '{gate.name}' was never opened, {gate.waiting} answers wait there"
                for gate in self._gates.values()
                if gate.waiting and not gate.is_open
            ]
            if self.journal.failure:
                waiting.append(self.journal.failure)
            verdict = self._play.verdict(waiting)
            return self._earlier.judge(verdict) if self._earlier else verdict

    def check_verdict(self) -> None:
        """Raise when the play did not go as scripted. Raises: VerdictError with verdict and journal."""
        verdict = self.verify()
        if not verdict.ok:
            raise VerdictError(f"{verdict}\njournal:\n{self.journal.text()}")

    def check_requests(self, count: int) -> Sequence[Entry]:
        """See that so many requests came. Shape: their entries. Raises: VerdictError with the journal."""
        from mock_provider.checks import check_requests  # a server is not asked

        return check_requests(self.journal, count)

    def check_request(self, at: int = -1, **conditions: Json) -> Entry:
        """See that a request fits conditions, which are those of `expect`. Shape: its entry; at counts from 0.

        Raises: VerdictError with the differences; UsageError for conditions that cannot be read.
        """
        from mock_provider.checks import check_request

        return check_request(self.journal, self.script, at, conditions)

    def reset(self) -> None:
        """Begin again: cursors, journal, gates. Answers that wait at a gate are given up."""
        with self._lock:
            if self._link is not None:
                self._link.tell(Restarted())
            self._restart()

    def _restart(self) -> None:
        gates = list(self._gates.values())
        self._round += 1
        self._play.reset()
        self._earlier.clear()
        self._kept.clear()
        self._questions.forget()
        self._decider.forget()
        self.journal.clear()
        self._make_gates()
        for gate in gates:
            gate.abandon()

    def replace(self, script: ScriptLike) -> None:
        """Play another script from now on; conversations that have begun are finished on theirs.

        Raises: ScriptError, and UsageError for a play that was not made to change.
        """
        if not self._may_change:
            raise UsageError("this play keeps its script", expected="Mock(script, may_change=True)")
        following = as_script(script)
        with self._lock:
            self._earlier.leave(Scene(self._play, self._decider))
            self.script = following
            self._play = Play(following, remembers=True, number=self._play.number)
            self._decider = Decider(self._play, self._kept, self.metrics)
            self._callers = Callers(following)
            self._questions.forget()
            waiting = {name: gate for name, gate in self._gates.items() if gate.waiting}
            self._make_gates()
            self._gates |= waiting

    def close(self) -> None:
        """End it: stalled answers and answers at gates are let go."""
        self.closing.open()
        for gate in self._gates.values():
            gate.abandon()

    def gate_stuck(self, gate: Gate, entry: Entry | None) -> None:
        """A face reports that a gate stayed shut for the whole time limit."""
        who = (entry.number, entry.conversation or "", entry.step or 0) if entry else None
        line = explain_stuck(self.script, gate.name, self.gate_timeout_s, who)
        with self._lock:
            if self._link is not None:
                self._link.tell(Stuck(line))
            self._play.stuck(line)

    def refuse(self, duration_s: float) -> None:
        """A face asks for its port to be closed for a while; without a port nothing happens."""
        if self._link is not None:
            with self._lock:
                self._link.tell(PortClosed(duration_s))
        self._close_port(duration_s)

    def _close_port(self, duration_s: float) -> None:
        if self.close_port is not None:
            self.close_port(duration_s)

    # Requests

    def handle(self, incoming: Incoming) -> Exchange:
        """Answer one request with a plan. Shape: a plain function, quick, safe for threads."""
        return self.answer(self.recognize(incoming.method, incoming.target, incoming.headers), incoming.body)

    def recognize(self, method: str, target: str, headers: Mapping[str, str]) -> Caller:
        """Work out who asks for what; a face may keep it for requests that differ in nothing but their body."""
        with self._lock:
            return self._callers.of(method, target, headers)

    def answer(self, caller: Caller, body: bytes) -> Exchange:
        """Answer one request of a caller with a plan. Shape: as handle."""
        if not caller.is_player:
            return Exchange(self._aside(caller), None, self._finished)
        with self._lock:
            if self._earlier:
                return self._answer_in_succession(caller, body)
            if self._link is not None:
                return self._answer_in_company(caller, body, self._link)
            question = self._questions.of(caller, body, self._decider)
            decision = self._decider.decide(question.request, question.checked)
            return self._carry_out(decision, caller, len(body), question.kept_body)

    def answer_at_once(self, caller: Caller, body: bytes, framing: Framing) -> Exchange | bytes:
        """Answer one request of a caller, for a face that sends a filled answer whole and at once.

        Shape: as answer; bytes are all of it, as they go over the wire. Such an answer is noted as complete before it
        leaves: who has read it may look at the journal.
        """
        if not caller.is_player or self._link is not None or self._earlier:
            return self.answer(caller, body)
        with self._lock:
            ask = self._questions.of if self._is_watched else self._questions.due
            question = ask(caller, body, self._decider)
            if isinstance(question, tuple):
                return give(question, len(body), framing, self._play, self.journal)
            decision = self._decider.decide(question.request, question.checked)
            entry = decision.entry(caller, len(body), question.kept_body)
            answer = decision.answer
            if not isinstance(answer, Filled):
                return self._carry_out_entry(decision, entry, self._play)
            entry.number = self._play.apply(decision.note)
            entry.pieces_sent = 1
            entry.end = "complete"
            self.journal.add(entry)
        self._finished(entry)
        return spell_filled(answer, framing)

    def knows(self, caller: Caller, body: bytes) -> bool:
        """Whether a request came before and is remembered, so that a face may remember it, too."""
        return self._questions.knows(caller, body)

    def _answer_in_company(self, caller: Caller, body: bytes, link: Link) -> Exchange:
        """Answer as one of several workers: decide again whenever another one was faster."""
        try:
            if caller.dialect.keep is not None:  # what is kept may be asked for
                link.catch_up()
            question = self._questions.of(caller, body, self._decider)
            while True:
                decision = self._decider.decide(question.request, question.checked)
                entry = decision.entry(caller, len(body), question.kept_body)
                if link.agree(Arrived(decision.note, entry)):
                    return self._carry_out_entry(decision, entry, self._play)
        except LinkLostError as lost:
            what = f"the workers have lost each other, nothing can be answered in order: {lost}"
            number = self._play.number + 1
            decision = refuse_unread(caller, 503, "workers_lost", what, self.script, number)
            return self._carry_out(decision, caller, len(body), None)

    def _answer_in_succession(self, caller: Caller, body: bytes) -> Exchange:
        """Answer on the script that the conversation began on; a face may know the caller by an earlier one."""
        target = f"{caller.path}?{caller.query}" if caller.query else caller.path
        caller = self._callers.of(caller.method, target, caller.headers)
        question = self._questions.of(caller, body, self._decider)
        scene = self._earlier.scene_of(question.checked, caller)
        if scene is None:
            decision = self._decider.decide(question.request, question.checked)
            return self._carry_out(decision, caller, len(body), question.kept_body)
        scene.play.number = self._play.number
        decision = scene.decider.decide(question.request, question.checked)
        exchange = self._carry_out(decision, caller, len(body), question.kept_body, scene.play)
        self._play.number = scene.play.number
        return exchange

    def _finished(self, entry: Entry) -> None:
        """Note that an answer is over."""
        self.metrics.finished(entry)
        if self.journal.has_file:
            self.journal.close_entry(entry)
        if self._log is not None:
            self._log.request(entry)

    def _finished_in_company(self, number: int, entry: Entry) -> None:
        """The same, and tell the others. Shape: number is that of the round the request came in."""
        if self._link is not None:
            pieces, passed = entry.pieces_sent, entry.gates_passed
            with self._lock, contextlib.suppress(LinkLostError):  # the next request is told
                self._link.tell(Ended(number, entry.number, entry.end, pieces, entry.reply_digest, passed))
        self._finished(entry)

    def _aside(self, caller: Caller) -> Plan:
        """Answer what is no part of the play."""
        with self._lock, contextlib.suppress(LinkLostError):
            self._catch_up()
        if caller.route.operation == "alive":
            return plan_whole(head_of(200, JSON_TYPE), b"")
        return answer_control(self, caller.method, caller.path.removeprefix(CONTROL_PREFIX), caller.query)

    def too_large(self, caller: Caller, size_bytes: int) -> Exchange:
        """Refuse a body over the limit, which a face did not read to its end."""
        what = f"the request body of {size_bytes} bytes is over the limit of {self.limits.body_bytes} bytes"
        return self._turn_down(caller, 413, "body_too_large", what, size_bytes)

    def too_slow(self, caller: Caller) -> Exchange:
        """Refuse a body that does not come to its end."""
        what = f"the request body did not arrive within {self.limits.receive_s:g} s"
        return self._turn_down(caller, 408, "body_too_slow", what)

    def _turn_down(self, caller: Caller, status: int, rule: str, message: str, size_bytes: int = 0) -> Exchange:
        with self._lock:
            decision = refuse_unread(caller, status, rule, message, self.script, self._play.number + 1)
            return self._carry_out(decision, caller, size_bytes, None)

    def _carry_out(
        self, decision: Decision, caller: Caller, size_bytes: int, kept_body: KeptBody, play: Play | None = None
    ) -> Exchange:
        entry = decision.entry(caller, size_bytes, kept_body)
        return self._carry_out_entry(decision, entry, play or self._play)

    def _carry_out_entry(self, decision: Decision, entry: Entry, play: Play) -> Exchange:
        entry.number = play.apply(decision.note)
        if decision.keep is not None:
            decision.keep()
        self.journal.add(entry)
        finished = self._finished if self._link is None else partial(self._finished_in_company, self._round)
        return Exchange(decision.answer, entry, finished)

    # Other workers

    def catch_up(self) -> None:
        """Take in what other workers did. Raises: LinkLostError."""
        with self._lock:
            self._catch_up()

    def _catch_up(self) -> None:
        if self._link is not None:
            self._link.catch_up()

    def _tell_gate(self, name: str, what: str) -> None:
        if self._link is not None:
            with self._lock, contextlib.suppress(LinkLostError):
                self._link.tell(AtGate(name, what))

    def _tell_kept(self, name: str, text: str | None) -> None:
        if self._link is not None:
            self._link.tell(KeptChange(name, text))

    def _take_in(self, event: Event) -> None:
        """Change what another worker changed."""
        if isinstance(event, Arrived):
            event.entry.number = self._play.apply(event.note)
            self.journal.add(event.entry)
        elif isinstance(event, Ended):
            entry = self.journal.numbered(event.number) if event.round == self._round else None
            if entry is not None:
                entry.end, entry.pieces_sent = event.end, event.pieces_sent
                entry.digest, entry.gates_passed = bytes.fromhex(event.digest), event.gates_passed
                self._finished(entry)
        elif isinstance(event, AtGate):
            self._gates[event.name].take_in(event.what)
        elif isinstance(event, Stuck):
            self._play.stuck(event.line)
        elif isinstance(event, KeptChange):
            self._kept.take_in(event.name, event.text)
        elif isinstance(event, PortClosed):
            self._close_port(event.duration_s)
        else:
            self._restart()
