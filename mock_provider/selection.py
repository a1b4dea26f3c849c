"""Choosing among many conditions without trying each: those that cannot hold are left out by what they ask for.

Room: pure; playback comes in.
A condition that wants a text to be equal to something, or to contain it, is filed under that; only what is filed
nowhere, or under something that the request has, is looked at. The conditions themselves still decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from mock_provider.asked import Asked, AskedMessage
from mock_provider.expect import Expect, TextRule, try_fit

Item = TypeVar("Item")
Source: TypeAlias = Literal["system", "last_user", "user", "any_message", "model"]

MIN_ITEMS = 16  # fewer are tried one after the other
GRAM = 4  # characters; shorter ones are in every text, longer ones leave short conditions unfiled


class Selection(Generic[Item]):
    """Things with conditions, in their order.

    Shape: fitting gives those whose conditions hold; candidates may give more, never fewer. No conditions: no fit.
    """

    def __init__(self, items: Sequence[Item], expect_of: Callable[[Item], Expect | None]) -> None:
        self._items = items
        self._expect_of = expect_of
        self._is_filed = len(items) >= MIN_ITEMS
        self._unfiled: list[int] = []
        self._equal: dict[tuple[Source, str], list[int]] = {}
        self._grams: dict[tuple[Source, str], list[int]] = {}
        if self._is_filed:
            self._file()
        self._sources = sorted({source for source, _ in (*self._equal, *self._grams)})

    def fitting(self, asked: Asked) -> list[Item]:
        """Those whose conditions hold for this request."""
        found: list[Item] = []
        for item in self.candidates(asked):
            expect = self._expect_of(item)
            if expect is not None and try_fit(expect, asked) is not None:
                found.append(item)
        return found

    def candidates(self, asked: Asked) -> Sequence[Item]:
        """Those whose conditions may hold, in their order."""
        if not self._is_filed:
            return self._items
        places = set(self._unfiled)
        for source in self._sources:
            for text in _texts(source, asked):
                places.update(self._equal.get((source, text), ()))
                places.update(self._containing(source, text))
        return [self._items[place] for place in sorted(places)]

    def _containing(self, source: Source, text: str) -> Iterator[int]:
        for at in range(len(text) - GRAM + 1) if self._grams else ():
            filed = self._grams.get((source, text[at : at + GRAM]))
            if filed:
                yield from filed

    def _file(self) -> None:
        wanted: list[tuple[int, Source, str]] = []
        for place, item in enumerate(self._items):
            rule = _telling(self._expect_of(item))
            if rule is None:
                self._unfiled.append(place)
            elif rule[1].kind == "equals":
                self._equal.setdefault((rule[0], rule[1].value), []).append(place)
            else:
                wanted.append((place, rule[0], rule[1].value))
        uses: dict[tuple[Source, str], int] = {}
        for _, source, value in wanted:
            for gram in _grams(value):
                uses[source, gram] = uses.get((source, gram), 0) + 1
        for place, source, value in wanted:
            rarest = min((uses[source, gram], gram) for gram in _grams(value))[1]
            self._grams.setdefault((source, rarest), []).append(place)


def _grams(value: str) -> set[str]:
    return {value[at : at + GRAM] for at in range(len(value) - GRAM + 1)}


def _telling(expect: Expect | None) -> tuple[Source, TextRule] | None:
    """The condition that tells a thing apart best; None when there is none to file it under."""
    if expect is None:
        return None
    rules: list[tuple[Source, TextRule | None]] = [
        ("last_user", expect.last_user),
        ("user", expect.user),
        ("any_message", expect.any_message),
        ("system", expect.system),
        ("model", expect.model),
    ]
    given = [(source, rule) for source, rule in rules if rule is not None]
    equal = [(source, rule) for source, rule in given if rule.kind == "equals"]
    parts = [(source, rule) for source, rule in given if rule.kind == "contains" and len(rule.value) >= GRAM]
    told = [pair for pair in (*equal, *parts) if pair[0] != "model"] or [*equal, *parts]
    return told[0] if told else None


def _texts(source: Source, asked: Asked) -> Iterator[str]:
    """Every text that a condition on this source may look at."""
    if source == "model":
        yield asked.model
        return
    messages: Sequence[AskedMessage] = asked.messages
    if source == "last_user":
        messages = [asked.last_user] if asked.last_user else []
    elif source != "any_message":
        messages = [message for message in messages if message.role == source]
    for message in messages:
        yield message.text
        if len(message.texts) > 1:
            yield from message.texts
        if source == "any_message":
            yield from (result.text for result in message.results)
