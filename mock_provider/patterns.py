"""Answers rendered once and filled in for every request that gets them again: only their ids differ.

Room: pure; deciding comes in.
A dialect takes part by saying what, beside the reply itself, its rendering looks at.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import replace
from typing import TypeAlias

from mock_provider.asked import Asked, AskedMessage
from mock_provider.composing import compose_reply, derive_digits, derive_id, mark_of
from mock_provider.dialects.codec import Dialect, count_input
from mock_provider.faults import Head
from mock_provider.filled import ID_LENGTH, Filled, Pattern
from mock_provider.playback import Taken
from mock_provider.script_source import NO_MARK
from mock_provider.steps import Reasoning, RefusalText, Script, Split, Step, Text, ToolCall, Usage

MAX_PATTERNS = 512  # each about as long as one answer; scripts of a test have a few dozen steps
HEADERS = (("content-type", "application/json"), ("x-mock-provider", "scripted"))  # as deciding.head_of spells them

_UNKNOWN: dict[Hashable, Pattern] = {}
_Of: TypeAlias = "dict[Hashable, Pattern]"


class Patterns:
    """The answers of one script.

    Limits: MAX_PATTERNS, then all are forgotten; not safe for threads. Only for steps that say the same to everybody
    and do nothing but answer, and for answers that are one body.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._count = 0
        self._known: dict[tuple[str, int], _Of | None] = {}  # by step; None for one that is not plain

    def fill(self, taken: Taken, asked: Asked, dialect: Dialect) -> Filled | None:
        """An answer, equal to what the dialect renders. Shape: None where each answer has to be rendered."""
        answer_key, step = dialect.answer_key, taken.step
        if asked.is_stream or answer_key is None:
            return None
        place = (taken.cursor.conversation.name, step.number)
        known = self._known.get(place, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._known[place] = {} if is_plain_step(step) else None
        if known is None:
            return None
        counted = 0 if step.usage.is_absent or step.usage.input is not None else count_input(asked)
        key = (dialect.name, asked.model, counted, answer_key(asked))
        pattern = known.get(key)
        if pattern is None:
            pattern = self._render(taken, asked, dialect)
            if self._count >= MAX_PATTERNS:
                self._count = 0
                self._known = {place: {}}
            self._count += 1
            (self._known[place] or known)[key] = pattern
        return Filled(pattern, derive_digits(self._script, taken, pattern.marks))

    def said(self, filled: Filled, taken: Taken, dialect: Dialect) -> AskedMessage:
        """What the client will send back of an answer."""
        said = filled.pattern.said
        if not said.calls or not dialect.has_call_ids:
            return said
        own = filled.pattern.own_calls
        calls = tuple(
            replace(call, id=call.id if number in own else derive_id(self._script, taken, "call", number))
            for number, call in enumerate(said.calls)
        )
        return replace(said, calls=calls, digest=b"")

    def _render(self, taken: Taken, asked: Asked, dialect: Dialect) -> Pattern:
        reply = compose_reply(self._script, taken, asked, dialect)
        ids: dict[str, tuple[str, int]] = {reply.id: (dialect.id_kind, 0)}
        for number in range(len(reply.calls)):
            ids[derive_id(self._script, taken, "call", number)] = ("call", number)
        text = dialect.whole(asked, reply).decode("utf-8", "surrogatepass").replace("%", "%%")
        places = re.compile("|".join(map(re.escape, ids)))
        found = [ids[place.group()] for place in places.finditer(text)]
        template = places.sub(lambda place: place.group()[:-ID_LENGTH] + "%s", text)
        headers: tuple[tuple[str, str], ...] = HEADERS
        if dialect.request_id_header:
            found.insert(0, ("req", 0))
            headers = (*headers, (dialect.request_id_header, "mock-req-%s"))
        marks = tuple(mark_of(taken.step.number, kind, number) for kind, number in found)
        own = frozenset(
            number
            for number, call in enumerate(reply.calls)
            if call.id != derive_id(self._script, taken, "call", number)
        )
        said = reply.as_message(has_ids=dialect.has_call_ids)
        return Pattern(template, Head(200, headers), bool(dialect.request_id_header), marks, said, own)


def is_plain_step(step: Step) -> bool:
    """Whether a step gives everybody the same answer, at once and whole, ids aside: whatever else it has is unset."""
    says = all(isinstance(part, Text | Reasoning | RefusalText | ToolCall) for part in step.parts)
    stream = replace(step.stream, split=Split(), events_per_write=1, end_marks=1)  # none of it touches a whole answer
    rest = replace(
        step,
        expect=None,
        parts=(),
        finish="",
        usage=Usage(),
        stream=stream,
        repeat=1,
        is_optional=False,
        model=None,
        mark=NO_MARK,
    )
    return says and "{{" not in repr(step.parts) and rest == Step(step.number)
