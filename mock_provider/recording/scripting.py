"""A recording as a script: steps that say again what was said, checked by playing them.

Room: pure; the recording comes in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

from mock_provider.expect import compare
from mock_provider.expect_read import read_expect
from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.decoding import Turn
from mock_provider.recording.said import Said, SaidPart, an_object, events_of, read_json
from mock_provider.script_fields import Findings
from mock_provider.script_source import from_plain
from mock_provider.step_read import FINISHES

TELLING = 60  # characters of a text by which a request is known again
MANY_PIECES = 2  # a stream of fewer pieces is one write
LEAST_CHARS = 4  # about a token: many events of a stream carry no text
HIDDEN = "redacted"
HEADER = """\
# Written by mock-provider record. It says again what was recorded: edit it as you like.
# `expect` names what the requests looked like; take away what your program may change.
"""


@dataclass(slots=True)
class Chain:
    """The turns of one conversation, in order."""

    turns: list[Turn] = field(default_factory=list)


def find_chains(turns: Sequence[Turn]) -> list[Chain]:
    """Tell the conversations apart: a request continues the one whose exchange so far it begins with."""
    chains: list[Chain] = []
    by_history: dict[str, Chain] = {}
    by_id: dict[str, Chain] = {}
    for turn in turns:
        if not turn.needs_step:
            continue
        known = by_id.get(turn.previous or "")
        if known is None:
            known = next((by_history[one] for one in reversed(turn.digests()) if one in by_history), None)
        if known is None:
            known = Chain()
            chains.append(known)
        known.turns.append(turn)
        for sealed in (turn.sealed(), *turn.digests()[-1:]):
            if sealed is not None:
                by_history[sealed] = known
        if turn.id is not None:
            by_id[turn.id] = known
    return chains


def compose_script(turns: Sequence[Turn], *, name: str, as_they_came: bool = False, verbatim: bool = False) -> str:
    """The text of the script.

    Shape: as_they_came puts everything into one conversation; verbatim keeps every body as it was, in pieces or not.
    """
    script: JsonObject = {"version": 1, "name": name}
    flavour = _flavour(turns)
    if flavour != "openai":
        script["flavour"] = flavour
    chains = find_chains(turns)
    whens = None if as_they_came or len(chains) == 1 else _whens(chains)
    if whens is None:
        listed = [turn for turn in turns if turn.needs_step]
        script["steps"] = [_step(turn, verbatim=verbatim) for turn in listed]
    else:
        script["conversations"] = {
            f"c{number}": {"when": when, "steps": [_step(turn, verbatim=verbatim) for turn in chain.turns]}
            for number, (chain, when) in enumerate(zip(chains, whens, strict=True), start=1)
        }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(script, Dumper=dumper, allow_unicode=True, sort_keys=False, width=110)
    return HEADER + text


def _whens(chains: Sequence[Chain]) -> list[JsonObject] | None:
    """How requests find each conversation; None when that cannot be told."""
    whens: list[JsonObject] = []
    for chain in chains:
        asked = chain.turns[0].asked
        when: JsonObject = {}
        for message in asked.messages if asked else ():
            key = {"user": "user_contains", "system": "system"}.get(message.role)
            told = _telling(message.text)
            if key is not None and key not in when and told:
                when[key] = told
        if not when:
            return None
        whens.append(when)
    for at, when in enumerate(whens):
        expect = read_expect(from_plain(when, "recording"), "when", Findings("recording"))
        for other, chain in enumerate(chains):
            asked = chain.turns[0].asked
            if asked is None or (other != at and not compare(expect, asked).differences):
                return None
    return whens


def _telling(text: str) -> str:
    """The beginning of a text by which it is known again: within one line, and without what was hidden."""
    for line in text.split("\n"):
        told = line.partition(HIDDEN)[0].strip()[:TELLING].strip()
        if told:
            return told
    return ""


def _step(turn: Turn, *, verbatim: bool) -> JsonObject:
    step: JsonObject = {}
    expect = _expect(turn)
    if expect:
        step["expect"] = expect
    said = turn.said
    if said is None or verbatim:
        return {**step, "http_error": _as_it_was(turn)}
    step["reply"] = _reply(said)
    if said.failure is None and said.finish != _usual_finish(said):
        step["finish"] = said.finish if said.finish is None or said.finish in FINISHES else {"raw": said.finish}
    elif said.failure is not None:
        step["finish"] = None
    step["usage"] = _usage(said)
    if said.model is not None and (turn.asked is None or said.model != turn.asked.model):
        step["model"] = said.model
    stream = _stream(turn, said)
    if stream:
        step["stream"] = stream
    return step


def _expect(turn: Turn) -> JsonObject:
    asked = turn.asked
    if asked is None:
        return {}
    expect: JsonObject = {}
    last = asked.last_user
    told = _telling(last.text) if last else ""
    if told:
        expect["last_user"] = told
    expect["messages"] = len(asked.messages)
    return expect


def _as_it_was(turn: Turn) -> JsonObject:
    """An answer whose body is kept as it is."""
    exchange = turn.exchange
    kept: JsonObject = {"status": exchange.status, "body": exchange.answer}
    if exchange.content_type:
        kept["content_type"] = exchange.content_type
    more: JsonObject = {
        name: values[0] for name, values in exchange.answer_headers.items() if name in ("retry-after", "retry-after-ms")
    }
    if more:
        kept["headers"] = more
    return kept


def _usual_finish(said: Said) -> str:
    return "tool_calls" if any(part.kind == "call" for part in said.parts) else "stop"


def _reply(said: Said) -> list[Json]:
    parts: list[Json] = [_part(part) for part in said.parts]
    if said.failure is not None:
        message, kind, code = said.failure
        event: JsonObject = {"message": message}
        event |= {"type": kind} if kind else {}
        event |= {"code": code} if code else {}
        parts.append({"error_event": event})
    return parts


def _part(part: SaidPart) -> JsonObject:
    if part.kind != "call":
        return {part.kind: escaped(part.text)}
    call: JsonObject = {"name": part.name}
    value = read_json(part.text or "{}")
    if isinstance(value, dict):
        if value:
            call["arguments"] = _escaped_values(value)
    else:
        call["raw"] = escaped(part.text)
    return {"tool_call": {**call, "id": part.id}}


def _escaped_values(value: Json) -> Json:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [_escaped_values(item) for item in value]
    if isinstance(value, dict):
        return {key: _escaped_values(item) for key, item in value.items()}
    return value


def escaped(text: str) -> str:
    """The text as a template that gives it back: two opening braces become four, and two closing ones after them."""
    done: list[str] = []
    at = opened = 0
    while at < len(text):
        if text.startswith("{{", at):
            done.append("{{{{")
            opened += 1
            at += 2
        elif opened and text.startswith("}}", at):
            done.append("}}}}")
            opened -= 1
            at += 2
        else:
            done.append(text[at])
            at += 1
    return "".join(done)


def _usage(said: Said) -> Json:
    counts = said.counts
    if counts is None:
        return "none"
    usage: JsonObject = {"input": counts.input, "output": counts.output}
    usage |= {"cached": counts.cached} if counts.cached else {}
    usage |= {"reasoning": counts.reasoning} if counts.reasoning else {}
    return usage


def _stream(turn: Turn, said: Said) -> JsonObject:
    """Texts cut about as finely as they came; the exact pieces are in the cassette."""
    pieces = len(turn.exchange.pieces)
    longest = max((len(part.text) for part in said.parts if part.kind != "call"), default=0)
    if turn.asked is None or not turn.asked.is_stream or pieces < MANY_PIECES or not longest:
        return {}
    total = sum(len(part.text) for part in said.parts)
    return {"split": {"chars": max(total // pieces, LEAST_CHARS)}}


def _flavour(turns: Sequence[Turn]) -> str:
    """The service that spoke, by fields that only it has."""
    for turn in turns:
        if turn.dialect != "openai_chat":
            continue
        answers = [an_object(read_json(turn.exchange.answer)), *events_of(turn.exchange.answer)]
        for answer in answers:
            if "prompt_cache_hit_tokens" in an_object(answer.get("usage")):
                return "deepseek"
            if "native_finish_reason" in json.dumps(answer.get("choices")):
                return "openrouter"
    return "openai"
