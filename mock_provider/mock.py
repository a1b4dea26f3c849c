"""The engine and its control object: a request goes in, a plan comes out, everything is in the journal.

Room: threads; the faces come in with requests, tests with questions.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from mock_provider.asked import Asked, Refusal
from mock_provider.composing import CopyError, compose_refusal, compose_reply, derive_id
from mock_provider.control import answer_control
from mock_provider.copying import Source
from mock_provider.dialects.codec import Dialect, Received
from mock_provider.dialects.table import BASE_PATHS, DIALECTS
from mock_provider.errors import UsageError, VerdictError
from mock_provider.faults import Head, Plan, plan_stream, plan_whole
from mock_provider.gates import Gate, Latch
from mock_provider.incoming import MAX_BODY_BYTES, Incoming, parse_body
from mock_provider.journal import Entry, Journal, ReplyDigest
from mock_provider.json_values import Json, encode_json
from mock_provider.kept import Kept
from mock_provider.match import Unmatched, called
from mock_provider.playback import Playback, Taken
from mock_provider.redaction import Redactor, find_secrets
from mock_provider.routes import CONTROL_PREFIX, SUPPORTED, Route, find_naming, find_route, split_prefix
from mock_provider.script import ScriptLike, as_script
from mock_provider.script_fields import near_miss
from mock_provider.steps import Script
from mock_provider.verdict import Verdict

JSON_TYPE = "application/json"
SCRIPTED = ("x-mock-provider", "scripted")
MAX_PROBLEMS = 1000


class Exchange:
    """One answer under way: the plan, and the notes a face makes while it carries the plan out."""

    def __init__(self, plan: Plan, entry: Entry | None, finished: Callable[[Entry], None]) -> None:
        self.plan = plan
        self.entry = entry
        self._finished = finished
        self._digest = ReplyDigest()
        self._is_over = False

    def sent(self, data: bytes, *, is_piece: bool) -> None:
        """Note bytes of the body that went out."""
        self._digest.add(data)
        if self.entry is not None and is_piece:
            self.entry.pieces_sent += 1

    def passed(self, gate: str) -> None:
        """Note a gate that opened."""
        if self.entry is not None:
            self.entry.gates_passed.append(gate)

    def finish(self, end: str) -> None:
        """Note the end; only the first one counts."""
        if self._is_over:
            return
        self._is_over = True
        if self.entry is not None:
            self.entry.end = end
            self.entry.reply_digest = self._digest.text()
            self._finished(self.entry)

    def gone(self) -> None:
        """Note that the client went away."""
        pieces = self.entry.pieces_sent if self.entry is not None else 0
        self.finish(f"client gone at piece {pieces}")


class Mock:
    """The control object, the same on every face.

    Shape: journal, gate(name), verify(), reset(), close(), base_url(dialect).
    Units: gate_timeout_s is how long an answer waits at a gate before the play is called failed.
    """

    def __init__(
        self,
        script: ScriptLike,
        *,
        root: str = "http://mock.invalid",
        gate_timeout_s: float = 60,
        journal_path: Path | None = None,
    ) -> None:
        self.script: Script = as_script(script)
        self.root = root
        self.gate_timeout_s = gate_timeout_s
        self.journal = Journal(journal_path)
        self.closing = Latch()
        self._lock = threading.Lock()
        self._playback = Playback(self.script)
        self._kept = Kept()
        self._number = 0
        self._unmatched: list[str] = []
        self._invalid: list[str] = []
        self._stuck: list[str] = []
        self._gates: dict[str, Gate] = {}
        self._make_gates()

    def _make_gates(self) -> None:
        self._gates = {name: Gate(name) for name in self.script.gate_names()}

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

    def verify(self) -> Verdict:
        """Judge the play so far."""
        with self._lock:
            waiting = [
                f"{self.script.name}: gate '{gate.name}' was never opened, {gate.waiting} answers wait there"
                for gate in self._gates.values()
                if gate.waiting and not gate.is_open
            ]
            return Verdict(
                script=self.script.name,
                used=self._playback.used(),
                left=self._playback.leftovers(),
                unmatched=tuple(self._unmatched),
                invalid=tuple(self._invalid),
                gates=(*self._stuck, *waiting),
            )

    def check_verdict(self) -> None:
        """Raise when the play did not go as scripted. Raises: VerdictError with verdict and journal."""
        verdict = self.verify()
        if not verdict.ok:
            raise VerdictError(f"{verdict}\njournal:\n{self.journal.text()}")

    def reset(self) -> None:
        """Begin again: cursors, journal, gates. Answers that wait at a gate are given up."""
        with self._lock:
            gates = list(self._gates.values())
            self._playback.reset()
            self._kept.clear()
            self.journal.clear()
            self._number = 0
            self._unmatched.clear()
            self._invalid.clear()
            self._stuck.clear()
            self._make_gates()
        for gate in gates:
            gate.abandon()

    def close(self) -> None:
        """End it: stalled answers and answers at gates are let go."""
        self.closing.open()
        for gate in self._gates.values():
            gate.abandon()

    def gate_stuck(self, gate: Gate, entry: Entry | None) -> None:
        """A face reports that a gate stayed shut for the whole time limit."""
        number = entry.number if entry else 0
        where = called(self.script, entry.conversation or "") if entry else self.script.name
        step = entry.step if entry else 0
        what = f"request {number} waited {self.gate_timeout_s:g} s at gate '{gate.name}' of step {step}"
        with self._lock:
            self._stuck.append(f"{where}: {what} [GATE_NEVER_OPENED]\n  fix: open the gate in the test")

    # Requests

    def handle(self, incoming: Incoming) -> Exchange:
        """Answer one request with a plan. Shape: a plain function, quick, safe for threads."""
        path = urlsplit(incoming.target).path
        if path.startswith(CONTROL_PREFIX):
            return Exchange(self._control(incoming.method, path), None, self.journal.close_entry)
        with self._lock:
            return self._handle(incoming)

    def _control(self, method: str, path: str) -> Plan:
        status, content = answer_control(self, method, path.removeprefix(CONTROL_PREFIX))
        return plan_whole(_head(status, JSON_TYPE), encode_json(content))

    def _handle(self, incoming: Incoming) -> Exchange:
        split = urlsplit(incoming.target)
        prefix, path = split_prefix(split.path or "/")
        route = find_route(incoming.method, path, incoming.headers)
        if route.operation == "alive":
            return Exchange(plan_whole(_head(200, JSON_TYPE), b""), None, self.journal.close_entry)
        self._number += 1
        body, unreadable = parse_body(incoming)
        secrets = find_secrets(incoming.headers, split.query, body)
        entry = Entry(
            number=self._number,
            method=incoming.method,
            path=secrets.target(split.path, split.query),
            headers=secrets.headers(incoming.headers),
            dialect=route.dialect,
            body_text=None if unreadable or not incoming.body else json.dumps(secrets.json(body)),
        )
        self.journal.add(entry)
        plan = self._answer(incoming, route, entry, body, unreadable, prefix, split.query, secrets)
        entry.status = next((action.status for action in plan.actions if isinstance(action, Head)), None)
        return Exchange(plan, entry, self.journal.close_entry)

    def _answer(
        self,
        incoming: Incoming,
        route: Route,
        entry: Entry,
        body: Json,
        unreadable: Refusal | None,
        prefix: str,
        query: str,
        secrets: Redactor,
    ) -> Plan:
        dialect = DIALECTS[route.dialect]
        if route.address is None:
            return self._lost(incoming, route, entry, dialect, secrets)
        refused = dialect.check_access(incoming.headers, query, self.script)
        refused = refused or (unreadable if route.address.takes_body else None)
        if refused is not None:
            return self._refuse(refused, entry, dialect, secrets)
        received = Received(body, incoming.headers, query, self.script, self._kept, route.address.form, route.arguments)
        if route.address.answer is not None:
            content = route.address.answer(received)
            if isinstance(content, Refusal):
                return self._refuse(content, entry, dialect, secrets)
            entry.matched = True
            return plan_whole(_head(200, JSON_TYPE), encode_json(content))
        asked = dialect.read(received)
        if isinstance(asked, Refusal):
            return self._refuse(asked, entry, dialect, secrets)
        entry.extra_fields = asked.extra_fields
        cursor = self._playback.find(asked, find_naming(prefix, incoming.headers, query), entry.number)
        if isinstance(cursor, Unmatched):
            return self._unmatch(cursor, entry, dialect, secrets)
        taken = self._playback.take(cursor, asked)
        if isinstance(taken, Unmatched):
            return self._unmatch(taken, entry, dialect, secrets)
        try:
            plan = self._play(taken, asked, dialect)
        except CopyError as error:
            self._playback.give_back(taken)
            where = called(self.script, cursor.conversation.name)
            text = f"{where}: step {taken.step.number} {error} [SCRIPT_COPY]\n  fix: send it, or copy another field"
            return self._unmatch(
                Unmatched("SCRIPT_COPY", text, cursor.conversation.name, taken.step.number), entry, dialect, secrets
            )
        entry.conversation, entry.client, entry.step = cursor.conversation.name, cursor.client, taken.step.number
        entry.matched = True
        return plan

    def _play(self, taken: Taken, asked: Asked, dialect: Dialect) -> Plan:
        step = taken.step
        request_id = (dialect.request_id_header, derive_id(self.script, taken, "req"))
        if step.http_error is not None:
            error = step.http_error
            refusal = compose_refusal(error, Source(asked.body, taken.groups), dialect)
            if error.body is None:
                data, kind = encode_json(dialect.error(refusal, self.script)), JSON_TYPE
            else:
                data = error.body.encode("utf-8", "surrogatepass")
                kind = "text/html" if error.body.lstrip().startswith("<") else JSON_TYPE
            head = _head(refusal.status, error.content_type or kind, request_id, *refusal.headers)
            self._playback.exchanged(taken.cursor, asked, None)
            return plan_whole(head, data, step)
        reply = compose_reply(self.script, taken, asked, dialect)
        if asked.is_stream:
            head = _head(200, dialect.content_type_stream, request_id)
            plan = plan_stream(head, dialect.stream(asked, reply), step)
        else:
            plan = plan_whole(_head(200, JSON_TYPE, request_id), dialect.whole(asked, reply), step)
        if dialect.keep is not None:
            dialect.keep(asked, reply, self._kept)
        self._playback.exchanged(taken.cursor, asked, None if _is_broken(plan) else reply.as_message())
        return plan

    # Answers that no step gives

    def _refuse(self, refusal: Refusal, entry: Entry, dialect: Dialect, secrets: Redactor) -> Plan:
        entry.rule = refusal.rule
        entry.problem = secrets.text(refusal.message)
        if len(self._invalid) < MAX_PROBLEMS:
            self._invalid.append(
                f"{self.script.name}: request {entry.number} is invalid for {dialect.name}, "
                f"rule {refusal.rule}: {entry.problem} [REQUEST_INVALID]"
            )
        data = encode_json(dialect.error(refusal, self.script))
        return plan_whole(_head(refusal.status, JSON_TYPE, *refusal.headers), data)

    def _unmatch(self, unmatched: Unmatched, entry: Entry, dialect: Dialect, secrets: Redactor) -> Plan:
        text = secrets.text(unmatched.text)
        entry.rule = unmatched.code
        entry.problem = text
        entry.conversation = unmatched.conversation
        if len(self._unmatched) < MAX_PROBLEMS:
            self._unmatched.append(f"request {entry.number}: {text}")
        refusal = Refusal(400, unmatched.code, text, code="mock_unmatched")
        data = encode_json(dialect.error(refusal, self.script))
        return plan_whole(_head(400, JSON_TYPE, ("x-should-retry", "false")), data)

    def _lost(self, incoming: Incoming, route: Route, entry: Entry, dialect: Dialect, secrets: Redactor) -> Plan:
        line = f"{incoming.method} {secrets.text(route.path)}"
        status, code = (404, "unknown_url") if route.operation == "unknown" else (405, "method_not_supported")
        text = f"{self.script.name}: {line} is no address of this provider [UNKNOWN_PATH]\n  supported:{SUPPORTED}"
        entry.rule, entry.problem = "UNKNOWN_PATH", text
        if len(self._unmatched) < MAX_PROBLEMS:
            self._unmatched.append(f"request {entry.number}: {text}")
        refusal = Refusal(status, code, text, dialect.usual_error(status, None)[0], code)
        data = encode_json(dialect.error(refusal, self.script))
        return plan_whole(_head(status, JSON_TYPE, ("x-should-retry", "false")), data)

    def too_large(self, target: str, size: int) -> Exchange:
        """Refuse a body over the limit, which a face did not read to its end."""
        path = urlsplit(target).path
        dialect = DIALECTS[find_route("POST", split_prefix(path)[1], {}).dialect]
        with self._lock:
            self._number += 1
            entry = Entry(self._number, "POST", path, {}, dialect=dialect.name)
            self.journal.add(entry)
            message = f"the request body of {size} bytes is over the limit of {MAX_BODY_BYTES} bytes"
            refusal = Refusal(413, "body_too_large", message, dialect.usual_error(413, None)[0])
            plan = self._refuse(refusal, entry, dialect, Redactor())
            entry.status = 413
            return Exchange(plan, entry, self.journal.close_entry)


def _head(status: int, content_type: str, *more: tuple[str, str]) -> Head:
    return Head(status, (("content-type", content_type), SCRIPTED, *more))


def _is_broken(plan: Plan) -> bool:
    return type(plan.actions[-1]).__name__ == "Die"
