"""Answers rendered once and filled in for every request that gets them again: only their ids differ.

Room: pure; deciding comes in.
A dialect takes part by saying what, beside the reply itself, its rendering looks at.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TypeAlias

from mock_provider.asked import Asked, AskedMessage
from mock_provider.composing import compose_reply, derive_id
from mock_provider.dialects.codec import Dialect, count_input
from mock_provider.playback import Taken
from mock_provider.script_source import NO_MARK
from mock_provider.steps import Reasoning, RefusalText, Script, Split, Step, Text, ToolCall, Usage

MAX_PATTERNS = 512  # each about as long as one answer; scripts of a test have a few dozen steps

Id: TypeAlias = "tuple[str, int]"  # kind and number, as derive_id takes them


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A rendered answer. Shape: text is a template for the ids; said is what clients send back of it."""

    text: str
    ids: tuple[Id, ...]
    said: AskedMessage


class Patterns:
    """The answers of one script.

    Limits: MAX_PATTERNS, then all are forgotten; not safe for threads. Only for steps that say the same to everybody
    and do nothing but answer, and for answers that are one body.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._known: dict[Hashable, _Pattern] = {}
        self._is_plain: dict[tuple[str, int], bool] = {}

    def fill(self, taken: Taken, asked: Asked, dialect: Dialect) -> tuple[bytes, AskedMessage] | None:
        """The body of an answer, equal to what the dialect renders, and what the client will send back of it.

        Shape: None where each answer has to be rendered.
        """
        if asked.is_stream or dialect.answer_key is None:
            return None
        step = taken.step
        place = (taken.cursor.conversation.name, step.number)
        is_plain = self._is_plain.get(place)
        if is_plain is None:
            is_plain = self._is_plain[place] = is_plain_step(step)
        if not is_plain:
            return None
        counted = 0 if step.usage.is_absent or step.usage.input is not None else count_input(asked)
        key = (place, dialect.name, asked.model, counted, dialect.answer_key(asked))
        pattern = self._known.get(key)
        if pattern is None:
            if len(self._known) >= MAX_PATTERNS:
                self._known.clear()
            pattern = self._known[key] = self._render(taken, asked, dialect)
        ids = [derive_id(self._script, taken, kind, number) for kind, number in pattern.ids]
        body = (pattern.text % tuple(ids)).encode("utf-8", "surrogatepass")
        if not pattern.said.calls or not dialect.has_call_ids:
            return body, pattern.said
        known = dict(zip(pattern.ids, ids, strict=True))
        calls = tuple(
            replace(call, id=known.get(("call", number), call.id)) for number, call in enumerate(pattern.said.calls)
        )
        return body, replace(pattern.said, calls=calls, digest=b"")

    def _render(self, taken: Taken, asked: Asked, dialect: Dialect) -> _Pattern:
        reply = compose_reply(self._script, taken, asked, dialect)
        ids: dict[str, Id] = {reply.id: (dialect.id_kind, 0)}
        for number in range(len(reply.calls)):
            ids[derive_id(self._script, taken, "call", number)] = ("call", number)
        text = dialect.whole(asked, reply).decode("utf-8", "surrogatepass").replace("%", "%%")
        places = re.compile("|".join(map(re.escape, ids)))
        found = tuple(ids[place.group()] for place in places.finditer(text))
        return _Pattern(places.sub("%s", text), found, reply.as_message(has_ids=dialect.has_call_ids))


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
