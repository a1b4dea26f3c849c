"""Requests read and checked, short ones known again when they come again and again.

Room: pure; the engine comes in and holds the lock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from mock_provider.asked import Asked, Refusal
from mock_provider.caller import Caller
from mock_provider.deciding import Checked, Decider, Request
from mock_provider.incoming import PLAIN, read_body, unpack_body
from mock_provider.json_reader import Frame, Reader, Reading
from mock_provider.json_values import Json
from mock_provider.redaction import redactor_for, secrets_of_body
from mock_provider.spelling import KeptBody
from mock_provider.standing import Due, Standing
from mock_provider.wordings import Wording, Wordings, cut_body

MAX_QUESTIONS = 256
MAX_SEEN = 4096  # marks of short ones that came once; most never come again, and are not worth keeping
MAX_QUESTION_BYTES = 4096  # longer ones are mostly histories, of which the reader knows the beginning
LISTED, FORMAT = "messages", "response_format"  # the list that Dialect.sound_bytes speaks of, and what it excepts
MAX_FINDINGS = 64  # callers that ask around one frame


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
        if len(body) <= MAX_QUESTION_BYTES:
            return self._known_due(caller, body) or self._stand(self.of(caller, body, decider), decider)
        read = self._take_in(caller, body, decider)
        if isinstance(read, Question):
            return read
        return self._due_within(caller, read) or self._stand(
            self._check(caller, body, read, decider), decider, read.within
        )

    def _due_within(self, caller: Caller, reading: Reading) -> Due | None:
        """The same of a history around which everything is known, and in which no rule is broken."""
        sound_bytes = caller.dialect.sound_bytes
        if reading.within is None or sound_bytes is None:
            return None
        frame, listed = reading.within
        found = frame.findings.get(caller)
        if found is None:
            return None
        standing, others_bytes = cast("tuple[Standing, int]", found)
        said_bytes = sound_bytes(listed) if standing.is_due else None
        if said_bytes is None:
            return None
        return standing, standing.count(said_bytes + others_bytes), reading.spelling or reading.data

    def _known_due(self, caller: Caller, body: bytes) -> Due | None:
        """The same of a short request that came before, or came with other words; None where it has to be read."""
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

    def _stand(
        self, question: Question, decider: Decider, within: tuple[Frame, list[Json]] | None = None
    ) -> Question | Due:
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
        if within is not None and not standing.needs_words and decider.may_reword(question.request.caller):
            self._note_within(question.request.caller, asked, standing, within)
        return due

    @staticmethod
    def _note_within(caller: Caller, asked: Asked, standing: Standing, within: tuple[Frame, list[Json]]) -> None:
        """Note what a history gets around which everything is the same."""
        frame, listed = within
        sound_bytes = caller.dialect.sound_bytes
        if sound_bytes is None or asked.said_bytes is None or frame.name != LISTED or FORMAT in asked.body:
            return
        said_bytes = sound_bytes(listed)
        if said_bytes is not None:
            if len(frame.findings) >= MAX_FINDINGS:
                frame.findings.clear()
            frame.findings[caller] = standing, asked.said_bytes - said_bytes

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
        read = self._take_in(caller, body, decider)
        return read if isinstance(read, Question) else self._check(caller, body, read, decider)

    def _take_in(self, caller: Caller, body: bytes, decider: Decider) -> Reading | Question:
        """Parse a body and look for secrets. Shape: a question where it cannot be read, or holds one."""
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
        return reading

    def _check(self, caller: Caller, body: bytes, reading: Reading, decider: Decider) -> Question:
        request = Request(caller, reading.value, None, caller.secrets, len(body))
        return Question(request, decider.check(request), reading.spelling or reading.data, is_clean=True)
