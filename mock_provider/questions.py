"""Requests read and checked, short ones known again when they come again and again.

Room: pure; the engine comes in and holds the lock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mock_provider.asked import Asked, Refusal
from mock_provider.caller import Caller
from mock_provider.deciding import Checked, Decider, Request
from mock_provider.incoming import PLAIN, read_body, unpack_body
from mock_provider.json_reader import Reader
from mock_provider.redaction import redactor_for, secrets_of_body
from mock_provider.spelling import KeptBody
from mock_provider.standing import Due
from mock_provider.wordings import Wording, Wordings, cut_body

MAX_QUESTIONS = 256
MAX_SEEN = 4096  # marks of short ones that came once; most never come again, and are not worth keeping
MAX_QUESTION_BYTES = 4096  # longer ones are mostly histories, of which the reader knows the beginning


@dataclass(slots=True, eq=False)
class Question:
    """A request that was read and checked.

    Shape: kept_body is for the journal, without secrets; is_clean says that the request holds none. wording is the
    earlier request that it differs from in its words alone; due is what it got.
    """

    request: Request
    checked: Checked
    kept_body: KeptBody
    is_clean: bool
    wording: Wording | None = None
    due: Due | None = None


class Questions:
    """The requests of one server.

    Limits: MAX_QUESTIONS short ones are remembered, from the second time on; not safe for threads.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._reader = Reader()
        self._known: dict[tuple[Caller, bytes], Question] = {}
        self._seen: set[int] = set()
        self._wordings = Wordings()
        self._has_standing = False  # whether there may be one for other words

    def of(self, caller: Caller, body: bytes, decider: Decider) -> Question:
        """Read and check a request, or know it again."""
        if len(body) > MAX_QUESTION_BYTES or caller.dialect.keep is not None:  # which may depend on what is kept
            return self._read(caller, body, decider)
        key = (caller, body)
        known = self._known.get(key)
        if known is not None:
            return known
        if not decider.may_reword(caller):
            return self._seen_again(key, self._read(caller, body, decider))
        cut = cut_body(body)
        if cut is None:
            return self._seen_again(key, self._read(caller, body, decider))
        wording = self._wordings.of(caller, cut)
        asked = None if wording is None else self._wordings.reword(wording, caller, cut[1], len(body))
        if wording is not None and asked is not None:
            request = Request(caller, asked.body, None, caller.secrets, len(body))
            question = Question(request, asked, body, True, wording)
            return self._keep(key, question) if asked is wording.asked else question
        question = self._read(caller, body, decider)
        if isinstance(question.checked, Asked) and question.is_clean:
            self._wordings.learn(caller, cut, question.checked)
        return self._seen_again(key, question)

    def due(self, caller: Caller, body: bytes, decider: Decider) -> Question | Due:
        """What a request gets, where an answer stands for it; else the request, to be decided about."""
        return self._known_due(caller, body) or self._stand(self.of(caller, body, decider), decider)

    def _known_due(self, caller: Caller, body: bytes) -> Due | None:
        """The same of a short request that came before, or came with other words; None where it has to be read."""
        if len(body) > MAX_QUESTION_BYTES:
            return None
        known = self._known.get((caller, body))
        if known is not None:
            due = known.due
            return due if due is not None and due[0].is_due else None
        if not self._has_standing:
            return None
        cut = cut_body(body)
        wording = None if cut is None else self._wordings.of(caller, cut)
        if cut is None or wording is None:
            return None
        standing, said_bytes = wording.standing, wording.asked.said_bytes
        if standing is None or said_bytes is None or not standing.is_due:
            return None
        return standing, standing.count(said_bytes + len(cut[1]) - len(wording.spelled)), body

    def _stand(self, question: Question, decider: Decider) -> Question | Due:
        """Look whether an answer stands, and note it for when the request comes again, or comes with other words."""
        asked = question.checked
        if not question.is_clean or not isinstance(asked, Asked):
            return question
        standing = decider.standing(question.request.caller, asked)
        if standing is None:
            return question
        due = question.due = standing, standing.count_of(asked), question.kept_body
        if question.wording is not None and not standing.needs_words:
            question.wording.standing = standing
            self._has_standing = True
        return due

    def knows(self, caller: Caller, body: bytes) -> bool:
        """Whether a request is remembered, in which there is no secret then."""
        return len(body) <= MAX_QUESTION_BYTES and (caller, body) in self._known

    def _seen_again(self, key: tuple[Caller, bytes], question: Question) -> Question:
        """Remember a question when it comes the second time; never one that holds a secret."""
        if not question.is_clean:
            return question
        mark = hash(key)
        if mark in self._seen:
            return self._keep(key, question)
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        self._seen.add(mark)
        return question

    def _keep(self, key: tuple[Caller, bytes], question: Question) -> Question:
        if len(self._known) >= MAX_QUESTIONS:
            self._known.clear()
        self._known[key] = question
        return question

    def forget(self) -> None:
        """Forget all of them: another script may check otherwise."""
        self._known.clear()
        self._seen.clear()
        self._wordings.forget()
        self._has_standing = False
        self._reader.forget()

    def _read(self, caller: Caller, body: bytes, decider: Decider) -> Question:
        data = body if caller.encoding == PLAIN else unpack_body(body, caller.encoding, self._limit_bytes)
        reading = data if isinstance(data, Refusal) else read_body(data, self._reader)
        if isinstance(reading, Refusal) or isinstance(data, Refusal):
            refusal = reading if isinstance(reading, Refusal) else None
            request = Request(caller, None, refusal, caller.secrets, len(body))
            return Question(request, decider.check(request), None, is_clean=False)
        if not caller.secrets.is_clean(reading):
            secrets = redactor_for([*caller.secret_values, *secrets_of_body(reading.value)])
            request = Request(caller, reading.value, None, secrets, len(body))
            kept_body = json.dumps(secrets.json(reading.value)).encode("ascii")
            return Question(request, decider.check(request), kept_body, is_clean=False)
        self._reader.remember(reading)
        request = Request(caller, reading.value, None, caller.secrets, len(body))
        return Question(request, decider.check(request), reading.spelling or data, is_clean=True)
