"""What a step says that a dialect has no place for, for scripts that name the dialects they are written for.

Room: pure; the reader of steps comes in. A script that names none is played in every dialect, and what one has no place
for is then left out or said in another way there, as the page of the mock provider tells.
Source: as the rooms of the dialects. Tests hold this table against what they send.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mock_provider.steps import Break, Comment, Part, RefusalText, Step, ToolCall

_WORDS = "[a-zA-Z0-9_-]"


@dataclass(frozen=True, slots=True)
class Fit:
    """What a dialect has no place for, as words of a script; and which names and ids of calls it takes."""

    lacks: frozenset[str] = frozenset()
    name: str = ".*"
    call_id: str = ".*"


FITS: Mapping[str, Fit] = {
    "openai_chat": Fit(name=f"{_WORDS}{{1,64}}"),
    "openai_responses": Fit(frozenset({"times"}), name=f"{_WORDS}{{1,64}}"),
    "anthropic_messages": Fit(name=f"{_WORDS}{{1,128}}", call_id=f"{_WORDS}+"),
    "gemini": Fit(frozenset({"refusal", "index", "times"}), name="[A-Za-z_][A-Za-z0-9_.:-]{0,63}"),
    "ollama": Fit(
        frozenset({"refusal", "comment", "keep_alive", "cached", "reasoning tokens", "times", "content_filter"})
    ),
    "bedrock": Fit(
        frozenset({"refusal", "comment", "keep_alive", "index", "reasoning tokens"}),
        name=f"{_WORDS}{{1,64}}",
        call_id="[a-zA-Z0-9_.:-]{1,64}",
    ),
}
_FITTING: Mapping[str, str] = {
    "refusal": "text, with finish: content_filter where it has that",
    "comment": "no comment",
    "index": "no index",
    "keep_alive": "a stall, or no keep_alive",
    "cached": "no cached",
    "reasoning tokens": "no reasoning",
    "times": "times: 1",
    "content_filter": "another finish",
}
_SHOWN = {"reasoning tokens": "a count of reasoning tokens", "cached": "a count of cached tokens"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """One thing without a place. Shape: part is the index of the part it is in, None for a key of the step."""

    key: str
    part: int | None
    what: str
    expected: str


def find_misfits(step: Step, dialect: str) -> Iterator[Misfit]:
    """What a step says that a dialect has no place for."""
    fit = FITS[dialect]
    for at, part in enumerate(step.parts):
        for word in _words_of(part):
            if word in fit.lacks:
                yield _lack(dialect, word, "reply", at)
        if isinstance(part, ToolCall):
            yield from _call_misfits(part, dialect, fit, at)
    for key, word in _step_words(step):
        if word in fit.lacks:
            yield _lack(dialect, word, key, None)


def _words_of(part: Part) -> Iterator[str]:
    if isinstance(part, RefusalText):
        yield "refusal"
    elif isinstance(part, Comment):
        yield "comment"
    elif isinstance(part, ToolCall) and part.index is not None:
        yield "index"
    elif isinstance(part, Break) and part.kind == "keep_alive":
        yield "keep_alive"


def _step_words(step: Step) -> Iterator[tuple[str, str]]:
    if step.fault is not None and step.fault.kind == "keep_alive":
        yield "fault", "keep_alive"
    if step.stream.keep_alive_ms:
        yield "stream", "keep_alive"
    if step.usage.cached:
        yield "usage", "cached"
    if step.usage.reasoning:
        yield "usage", "reasoning tokens"
    if step.usage.times > 1:
        yield "usage", "times"
    if step.finish == "content_filter":
        yield "finish", "content_filter"


def _lack(dialect: str, word: str, key: str, part: int | None) -> Misfit:
    shown = _SHOWN.get(word, f"'{word}'")
    return Misfit(key, part, f"{dialect} has no place for {shown}", _FITTING[word])


def _call_misfits(call: ToolCall, dialect: str, fit: Fit, at: int) -> Iterator[Misfit]:
    for what, text, pattern in (("name of a tool", call.name, fit.name), ("id of a call", call.id, fit.call_id)):
        if text is not None and not re.fullmatch(pattern, text, re.DOTALL):
            yield Misfit("reply", at, f"'{text}' is no {what} in {dialect}", f"to match {pattern}")
