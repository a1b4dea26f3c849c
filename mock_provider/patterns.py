"""Answers rendered once and filled in for every request that gets them again: only their ids differ.

Room: pure; deciding comes in.
A dialect takes part by saying what, beside the reply itself, its rendering looks at.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from mock_provider.asked import Asked, AskedMessage
from mock_provider.composing import compose_reply, derive_digits, derive_id, mark_of
from mock_provider.dialects.codec import Dialect, Reply, count_input
from mock_provider.faults import Action, Head, Plan, Send
from mock_provider.filled import ID_LENGTH, Filled, Pattern
from mock_provider.filled_stream import MAX_STREAM_BYTES, FilledStream, StreamPattern, keep_stream
from mock_provider.playback import Taken
from mock_provider.script_source import NO_MARK
from mock_provider.steps import Reasoning, RefusalText, Script, Split, Step, Text, ToolCall, Usage

MAX_STREAMS = 16  # each up to MAX_STREAM_BYTES, mostly some hundred KB
MAX_PATTERNS = 512  # each about as long as one answer; scripts of a test have a few dozen steps
HEADERS = (("content-type", "application/json"), ("x-mock-provider", "scripted"))  # as deciding.head_of spells them

_UNKNOWN: dict[Hashable, Pattern] = {}
_TELLING = 7_310_000_000_000  # a count that is told by its looks, and so are numbers that differ from it by a little
_COUNT = re.compile(r"(?<![0-9.])7310{3}[0-9]{7}(?![0-9.])|(?<![0-9.])7309{3}[0-9]{7}(?![0-9.])")
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
        self._streams: dict[Hashable, StreamPattern] = {}

    def fill(self, taken: Taken, asked: Asked, dialect: Dialect) -> Filled | None:
        """An answer, equal to what the dialect renders. Shape: None where each answer has to be rendered."""
        answer_key, step = dialect.answer_key, taken.step
        if asked.is_stream or answer_key is None:
            return None
        place = (taken.cursor.conversation.name, step.number)
        known = self._of(place, step)
        if known is None:
            return None
        key: tuple[Hashable, ...] = (dialect.name, asked.model, answer_key(asked))
        pattern = known.get(key)
        usage = step.usage
        counted = 0
        if not usage.is_absent and usage.input is None:
            counted = max(count_input(asked), usage.cached or 0)
            if pattern is None:
                pattern = known.get((*key, counted))
        if pattern is None:
            pattern = self._render(taken, asked, dialect, counted)
            if self._count >= MAX_PATTERNS:
                self._count = 0
                known = {}
                self._known = {place: known}
            self._count += 1
            known[key if pattern.is_for_all else (*key, counted)] = pattern
        return Filled(pattern, derive_digits(self._script, taken, pattern.marks), counted)

    def _of(self, place: tuple[str, int], step: Step) -> _Of | None:
        """The answers of a step; None for one that does more than answer."""
        known = self._known.get(place, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._known[place] = {} if is_plain_step(step) else None
        return known

    def stream(self, taken: Taken, asked: Asked, dialect: Dialect) -> FilledStream | None:
        """A streamed answer, equal to what the dialect writes; None where it has to be written anew."""
        pattern = self._streams.get(self._stream_key(taken, asked, dialect))
        if pattern is None:
            return None
        return FilledStream(pattern, derive_digits(self._script, taken, (pattern.mark,))[0])

    def learn_stream(self, taken: Taken, asked: Asked, dialect: Dialect, reply: Reply, plan: Plan) -> Plan:
        """Keep a streamed answer while it is sent, if the step does nothing but answer, and calls nothing.

        Shape: a plan of the same.
        """
        key = self._stream_key(taken, asked, dialect)
        if key is None or plan.is_waiting or plan.is_broken or reply.calls:
            return plan
        mark = mark_of(taken.step.number, dialect.id_kind, 0)
        said = reply.as_message()

        def watched(actions: Iterable[Action]) -> Iterator[Action]:
            sends: list[Send] = []
            size = 0
            for action in actions:
                if isinstance(action, Send) and size <= MAX_STREAM_BYTES:
                    sends.append(action)
                    size += len(action.data)
                yield action
            pattern = keep_stream(sends, reply.id.encode("ascii"), mark, said) if size <= MAX_STREAM_BYTES else None
            if pattern is not None:
                if len(self._streams) >= MAX_STREAMS:
                    self._streams.clear()
                self._streams[key] = pattern

        return replace(plan, actions=watched(plan.actions))

    def _stream_key(self, taken: Taken, asked: Asked, dialect: Dialect) -> Hashable:
        """What a streamed answer depends on, its id aside; None where on more than can be told."""
        step = taken.step
        place = (taken.cursor.conversation.name, step.number)
        if dialect.stream_key is None or self._of(place, step) is None:
            return None
        tells = asked.wants_usage or self._script.flavour != "openai"
        return place, dialect.name, asked.model, count_input(asked) if tells else 0, dialect.stream_key(asked)

    def said(self, filled: Filled, taken: Taken, *, has_ids: bool) -> AskedMessage:
        """What the client will send back of an answer, with the ids of its calls or without."""
        said = filled.pattern.said
        if not said.calls or not has_ids:
            return said
        own = filled.pattern.own_calls
        calls = tuple(
            replace(call, id=call.id if number in own else derive_id(self._script, taken, "call", number))
            for number, call in enumerate(said.calls)
        )
        return replace(said, calls=calls, digest=b"")

    def _render(self, taken: Taken, asked: Asked, dialect: Dialect, counted: int) -> Pattern:
        """Render an answer once, if possible for any count of the input."""
        reply = compose_reply(self._script, taken, asked, dialect)
        text = dialect.whole(asked, reply).decode("utf-8", "surrogatepass")
        if counted and reply.counts is not None:
            other = replace(reply, counts=replace(reply.counts, input=_TELLING))
            telling = dialect.whole(asked, other).decode("utf-8", "surrogatepass")
            pattern = self._pattern(telling, reply, taken, asked, dialect, has_counts=True, is_for_all=True)
            filled = Filled(pattern, derive_digits(self._script, taken, pattern.marks), counted)
            if filled.body() == text.encode("utf-8", "surrogatepass"):
                return pattern
        return self._pattern(text, reply, taken, asked, dialect, has_counts=False, is_for_all=not counted)

    def _pattern(
        self,
        text: str,
        reply: Reply,
        taken: Taken,
        asked: Asked,
        dialect: Dialect,
        *,
        has_counts: bool,
        is_for_all: bool,
    ) -> Pattern:
        """Make a template of an answer. With has_counts, what looks like a count behind all ids is taken for one."""
        ids: dict[str, tuple[str, int]] = {reply.id: (dialect.id_kind, 0)}
        own: set[int] = set()
        for number, call in enumerate(reply.calls):
            derived = derive_id(self._script, taken, "call", number)
            ids[derived] = ("call", number)
            if call.id != derived:
                own.add(number)
        text = text.replace("%", "%%")
        places = re.compile("|".join(map(re.escape, ids)))
        found = [ids[place.group()] for place in places.finditer(text)]
        template = places.sub(lambda place: place.group()[:-ID_LENGTH] + "%s", text)
        offsets: tuple[int, ...] = ()
        if has_counts:
            last = template.rfind("%s") + 1
            offsets = tuple(int(place.group()) - _TELLING for place in _COUNT.finditer(template, last))
            template = template[:last] + _COUNT.sub("%d", template[last:])
        headers: tuple[tuple[str, str], ...] = HEADERS
        if dialect.request_id_header:
            headers = (*headers, (dialect.request_id_header, "mock-req-%s"))
        spelled = template.encode("utf-8", "surrogatepass")
        filler = (*(b"0" * ID_LENGTH for _ in found), *(0 for _ in offsets))
        marks = [("req", 0), *found] if dialect.request_id_header else found
        return Pattern(
            text=spelled,
            head=Head(200, headers),
            has_request_id=bool(dialect.request_id_header),
            marks=tuple(mark_of(taken.step.number, kind, number) for kind, number in marks),
            offsets=offsets,
            said=reply.as_message(has_ids=dialect.has_call_ids and asked.has_call_ids),
            own_calls=frozenset(own),
            spelled_bytes=len(spelled % filler) - len(offsets),
            count_format=b"%d" * len(offsets),
            is_for_all=is_for_all,
        )


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
