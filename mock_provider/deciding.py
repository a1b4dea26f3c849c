"""From a request to the decision about it: the step it takes and the plan of the answer, or how it is turned down.

Room: pure; the engine comes in with requests, and carries the decisions out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from mock_provider.asked import Asked, Refusal
from mock_provider.caller import Caller
from mock_provider.composing import CopyError, compose_refusal, compose_reply, derive_id
from mock_provider.copying import Source
from mock_provider.dialects.codec import Dialect, Received, Reply, headers_of_error, headers_of_stream
from mock_provider.faults import Head, Plan, plan_again, plan_stream, plan_whole
from mock_provider.filled import Filled
from mock_provider.journal import Entry
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.kept import Kept
from mock_provider.match import Unmatched, called, explain_dialect, explain_slow_pattern
from mock_provider.metrics import Metrics
from mock_provider.model_rules import refuse_by_facts
from mock_provider.pace import piece_tokens, stream_waits, whole_wait
from mock_provider.patterns import Patterns
from mock_provider.play import Note, Play
from mock_provider.playback import Cursor, History, Taken
from mock_provider.random_faults import Draw, draw, hit
from mock_provider.redaction import Redactor
from mock_provider.routes import SUPPORTED
from mock_provider.spelling import KeptBody
from mock_provider.standing import Standing, Standings
from mock_provider.steps import Script
from mock_provider.text_pattern import PatternTooSlow
from mock_provider.values import value

JSON_TYPE = "application/json"
SSE = "event-stream"  # of the content types of streams the one that has room for signs of life
SCRIPTED = ("x-mock-provider", "scripted")

Checked: TypeAlias = "Asked | Refusal | JsonObject | None"  # a request to match, a refusal, a whole answer, no address


@value
class Request:
    """One request, as far as no state is needed. Shape: unreadable says why body is None, when there is more to say."""

    caller: Caller
    body: Json
    unreadable: Refusal | None
    secrets: Redactor
    size_bytes: int


@dataclass(slots=True)
class Decision:
    """What becomes of a request.

    Shape: note is what it changes; keep, if there is one, is done once it has. The rest is for the journal.
    """

    answer: Plan | Filled
    note: Note
    conversation: str | None = None
    client: str = ""
    step: int | None = None
    matched: bool = False
    rule: str | None = None
    problem: str | None = None
    extra_fields: tuple[str, ...] = ()
    keep: Callable[[], None] | None = None

    def entry(self, caller: Caller, size_bytes: int, kept_body: KeptBody) -> Entry:
        """The journal's view of it, which has no number yet."""
        answer = self.answer
        filled = answer if isinstance(answer, Filled) else None
        head = answer.pattern.head if isinstance(answer, Filled) else answer.head
        # In their order, not by name, which would take three times as long in every request.
        return Entry(
            0,
            caller.method,
            caller.shown_path,
            caller.shown_headers,
            caller.dialect.name,
            self.conversation,
            self.client,
            self.step,
            self.matched,
            self.rule,
            self.problem,
            head.status if head is not None else None,
            0,
            (),
            self.extra_fields,
            "open",
            b"",
            kept_body,
            size_bytes if caller.tells_length else None,
            filled,
        )


def head_of(status: int, content_type: str, *more: tuple[str, str]) -> Head:
    """The head of an answer, headers in fixed order."""
    return Head(status, (("content-type", content_type), SCRIPTED, *more))


def refuse_unread(caller: Caller, status: int, rule: str, message: str, script: Script, number: int) -> Decision:
    """Turn down a request whose body a face did not read to its end."""
    refusal = Refusal(status, rule, message, caller.dialect.usual_error(status, None)[0])
    return _refuse(refusal, caller.dialect, script, number, caller.secrets)


def _refuse(refusal: Refusal, dialect: Dialect, script: Script, number: int, secrets: Redactor) -> Decision:
    problem = secrets.text(refusal.message)
    line = (
        f"{script.name}: request {number} is invalid for {dialect.name}, rule {refusal.rule}: {problem} "
        "[REQUEST_INVALID]"
    )
    data = encode_json(dialect.error(refusal, script))
    plan = plan_whole(head_of(refusal.status, JSON_TYPE, *headers_of_error(dialect, refusal)), data)
    return Decision(plan, Note(invalid=line), rule=refusal.rule, problem=problem)


class Decider:
    """Decides about requests, looking at the play and changing nothing of it."""

    def __init__(self, play: Play, kept: Kept, metrics: Metrics | None = None) -> None:
        self._play = play
        self._script = play.script
        self._kept = kept
        self._patterns = Patterns(play.script)
        self._standings = Standings(play.script, self._patterns, metrics or Metrics())

    def check(self, request: Request) -> Checked:
        """What needs no place in the play."""
        caller = request.caller
        address = caller.route.address
        if address is None:
            return None
        refused = caller.refused or (request.unreadable if address.takes_body else None)
        if refused is not None:
            return refused
        received = Received(
            request.body,
            caller.with_length(caller.headers, request.size_bytes),
            caller.query,
            self._script,
            self._kept,
            address.form,
            caller.route.arguments,
        )
        if address.answer is not None:
            return address.answer(received)
        asked = caller.dialect.read(received)
        return (refuse_by_facts(asked, self._script) if isinstance(asked, Asked) else None) or asked

    def may_reword(self, caller: Caller) -> bool:
        """Whether requests that differ in the words of their last message are checked alike."""
        return caller.dialect.is_wordblind and not self._script.facts

    def standing(self, caller: Caller, asked: Asked) -> Standing | None:
        """The answer that stands for a request, if nothing else has to be decided."""
        return self._standings.of(self._play.playback, caller, asked) if self._speaks(caller.dialect) else None

    def _speaks(self, dialect: Dialect) -> bool:
        """Whether the script is written for requests in this dialect."""
        return not self._script.dialects or dialect.name in self._script.dialects

    def forget(self) -> None:
        """Forget the answers that stand: the play begins again."""
        self._standings.forget()

    def decide(self, request: Request, checked: Checked) -> Decision:
        """Decide, as the play stands now."""
        number = self._play.number + 1
        dialect = request.caller.dialect
        if isinstance(checked, Asked):
            return self._match(request, checked, dialect, number)
        if checked is None:
            return self._lost(request, number)
        if isinstance(checked, Refusal):
            return _refuse(checked, dialect, self._script, number, request.secrets)
        return Decision(plan_whole(head_of(200, JSON_TYPE), encode_json(checked)), Note(), matched=True)

    def _match(self, request: Request, checked: Asked, dialect: Dialect, number: int) -> Decision:
        if not self._speaks(dialect):
            return self._unmatched(explain_dialect(self._script, dialect.name), None, request, checked, number)
        history = History(checked.messages)
        playback = self._play.playback
        try:
            cursor = playback.find(checked, request.caller.naming, number, history)
            if isinstance(cursor, Unmatched):
                return self._unmatched(cursor, None, request, checked, number)
            taken = playback.take(cursor, checked)
            if isinstance(taken, Unmatched):
                return self._unmatched(taken, cursor, request, checked, number)
        except PatternTooSlow as slow:
            return self._unmatched(explain_slow_pattern(self._script, slow), None, request, checked, number)
        filled = self._patterns.fill(taken, checked, dialect)
        if filled is not None:
            return self._answer_again(filled, taken, checked, dialect, history)
        try:
            return self._play_step(taken, checked, dialect, history)
        except CopyError as error:
            name = cursor.conversation.name
            where = called(self._script, name)
            text = f"{where}: step {taken.step.number} {error} [SCRIPT_COPY]\n  fix: send it, or copy another field"
            unmatched = Unmatched("SCRIPT_COPY", text, name, taken.step.number)
            return self._unmatched(unmatched, cursor, request, checked, number)

    def _play_step(self, taken: Taken, asked: Asked, dialect: Dialect, history: History) -> Decision:
        drawn = self._draw(taken)
        if drawn is not None:
            taken = replace(taken, step=hit(taken.step, drawn))
        step, script = taken.step, self._script
        name = dialect.request_id_header
        request_id = ((name, derive_id(script, taken, "req")),) if name else ()
        reply: Reply | None = None
        again = self._patterns.stream(taken, asked, dialect) if asked.is_stream and drawn is None else None
        if again is not None:
            kind, more = headers_of_stream(dialect, asked)
            plan = plan_again(head_of(200, kind, *request_id, *more), again)
        elif step.http_error is not None:
            error = step.http_error
            refusal = compose_refusal(error, Source(asked.body, taken.groups), dialect, script.flavour)
            if error.body is None:
                data, kind = encode_json(dialect.error(refusal, script)), JSON_TYPE
            else:
                data = error.body.encode("utf-8", "surrogatepass")
                kind = "text/html" if error.body.lstrip().startswith("<") else JSON_TYPE
            more = (*step.headers, *headers_of_error(dialect, refusal))
            head = head_of(refusal.status, error.content_type or step.content_type or kind, *request_id, *more)
            plan = plan_whole(head, data, step)
        else:
            reply = compose_reply(script, taken, asked, dialect)
            if asked.is_stream:
                kind, more = headers_of_stream(dialect, asked)
                tokens = piece_tokens(reply) if step.stream.tokens_per_s else ()
                waits = stream_waits(step.stream, tokens, reply.id) if step.stream.is_paced else None
                head = head_of(200, step.content_type or kind, *request_id, *more, *step.headers)
                items = dialect.stream(asked, reply)
                sign = dialect.keep_alive if SSE in kind else b""
                plan = plan_stream(head, items, step, waits=waits, keep_alive=sign)
                if drawn is None:
                    plan = self._patterns.learn_stream(taken, asked, dialect, reply, plan)
            else:
                tokens = piece_tokens(reply) if step.stream.tokens_per_s else ()
                wait_ms = whole_wait(step.stream, tokens, reply.id)
                head = head_of(200, step.content_type or JSON_TYPE, *request_id, *step.headers)
                plan = plan_whole(head, dialect.whole(asked, reply), step, wait_ms=wait_ms)
        said = None
        if again is not None:
            said = again.pattern.said
        elif reply is not None and not plan.is_broken and self._play.playback.remembers:
            said = reply.as_message(has_ids=dialect.has_call_ids and asked.has_call_ids)
        cursor = taken.cursor
        note = Note(
            cursor.conversation.name,
            cursor.client,
            taken.item,
            step.number,
            self._play.playback.seal(history, said),
            is_hit=drawn is not None,
            drew=step.random is not None,
        )
        decision = Decision(
            plan, note, note.conversation, note.client, step.number, matched=True, extra_fields=asked.extra_fields
        )
        if drawn is not None:
            decision.rule, decision.problem = "RANDOM_FAULT", str(drawn)
        keep = dialect.keep
        if keep is not None and reply is not None and drawn is None:
            kept_reply = reply
            decision.keep = lambda: keep(asked, kept_reply, self._kept)
        return decision

    def _answer_again(self, filled: Filled, taken: Taken, asked: Asked, dialect: Dialect, history: History) -> Decision:
        """The answer of a step that was rendered before."""
        cursor, step = taken.cursor, taken.step.number
        conversation, client = cursor.conversation.name, cursor.client
        sealed = None
        if self._play.playback.remembers:
            has_ids = dialect.has_call_ids and asked.has_call_ids
            sealed = self._play.playback.seal(history, self._patterns.said(filled, taken, has_ids=has_ids))
        note = Note(conversation, client, taken.item, step, sealed)
        return Decision(filled, note, conversation, client, step, True, None, None, asked.extra_fields)

    def _draw(self, taken: Taken) -> Draw | None:
        """The fault by lot of this request, if it is hit."""
        faults = taken.step.random
        if faults is None:
            return None
        cursor, step = taken.cursor, taken.step.number
        draws, in_a_row = cursor.lots.get(step, (0, 0))
        return draw(faults, (cursor.conversation.name, cursor.client, step), draws + 1, in_a_row)

    # Answers that no step gives

    def _unmatched(
        self, unmatched: Unmatched, cursor: Cursor | None, request: Request, asked: Asked, number: int
    ) -> Decision:
        text = request.secrets.text(unmatched.text)
        dialect = request.caller.dialect
        refusal = Refusal(400, unmatched.code, text, code="mock_unmatched")
        data = encode_json(dialect.error(refusal, self._script))
        more = headers_of_error(dialect, refusal)
        plan = plan_whole(head_of(400, JSON_TYPE, ("x-should-retry", "false"), *more), data)
        line = f"request {number}: {text}"
        note = Note(unmatched=line)
        if cursor is not None:
            note = Note(cursor.conversation.name, cursor.client, unmatched=line)
        return Decision(
            plan, note, unmatched.conversation, rule=unmatched.code, problem=text, extra_fields=asked.extra_fields
        )

    def _lost(self, request: Request, number: int) -> Decision:
        caller = request.caller
        line = f"{caller.method} {request.secrets.text(caller.route.path)}"
        status, code = (404, "unknown_url") if caller.route.operation == "unknown" else (405, "method_not_supported")
        text = f"{self._script.name}: {line} is no address of this provider [UNKNOWN_PATH]\n  supported:{SUPPORTED}"
        refusal = Refusal(status, code, text, caller.dialect.usual_error(status, None)[0], code)
        data = encode_json(caller.dialect.error(refusal, self._script))
        more = headers_of_error(caller.dialect, refusal)
        plan = plan_whole(head_of(status, JSON_TYPE, ("x-should-retry", "false"), *more), data)
        return Decision(plan, Note(unmatched=f"request {number}: {text}"), rule="UNKNOWN_PATH", problem=text)
