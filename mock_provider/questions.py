"""Requests read and checked, short ones known again when they come a second time.

Room: pure; the engine comes in and holds the lock.
"""

from __future__ import annotations

import json

from mock_provider.asked import Refusal
from mock_provider.caller import Caller
from mock_provider.deciding import Checked, Decider, Request
from mock_provider.incoming import read_body, unpack_body
from mock_provider.json_reader import Reader
from mock_provider.redaction import redactor_for, secrets_of_body
from mock_provider.values import value

MAX_QUESTIONS = 256
MAX_QUESTION_BYTES = 4096  # longer ones are mostly histories, of which the reader knows the beginning


@value
class Question:
    """A request that was read and checked. Shape: kept_body is for the journal, without secrets."""

    request: Request
    checked: Checked
    kept_body: bytes | None


class Questions:
    """The requests of one server. Limits: MAX_QUESTIONS short ones are remembered; not safe for threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._reader = Reader()
        self._known: dict[tuple[Caller, bytes], Question] = {}

    def of(self, caller: Caller, body: bytes, decider: Decider) -> Question:
        """Read and check a request, or know it again."""
        if len(body) > MAX_QUESTION_BYTES:
            return self._read(caller, body, decider)
        return self._known.get((caller, body)) or self._read(caller, body, decider)

    def forget(self) -> None:
        """Forget all of them: another script may check otherwise."""
        self._known.clear()
        self._reader.forget()

    def _read(self, caller: Caller, body: bytes, decider: Decider) -> Question:
        data = unpack_body(body, caller.encoding, self._limit_bytes)
        reading = data if isinstance(data, Refusal) else read_body(data, self._reader)
        if isinstance(reading, Refusal) or isinstance(data, Refusal):
            refusal = reading if isinstance(reading, Refusal) else None
            request = Request(caller, None, refusal, caller.secrets, len(body))
            return Question(request, decider.check(request), None)
        if not caller.secrets.is_clean(reading):
            secrets = redactor_for([*caller.secret_values, *secrets_of_body(reading.value)])
            request = Request(caller, reading.value, None, secrets, len(body))
            kept_body = json.dumps(secrets.json(reading.value)).encode("ascii")
            return Question(request, decider.check(request), kept_body)
        self._reader.remember(reading)
        request = Request(caller, reading.value, None, caller.secrets, len(body))
        question = Question(request, decider.check(request), data)
        if len(body) <= MAX_QUESTION_BYTES and caller.dialect.keep is None:  # else it may depend on what is kept
            if len(self._known) >= MAX_QUESTIONS:
                self._known.clear()
            self._known[caller, body] = question
        return question
