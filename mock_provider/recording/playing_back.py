"""Holding a new script against what was recorded: every request again, every answer compared.

Room: pure but for the engine; the recording comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mock_provider.actions import Head, Send
from mock_provider.errors import ScriptError
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json
from mock_provider.mock import Mock
from mock_provider.recording.decoding import DECODERS, Turn, documents_of
from mock_provider.recording.frames import read_frames, spell_frames
from mock_provider.recording.said import Said, an_object, events_of, read_json
from mock_provider.script import parse_script

# What a provider hands out and wants back: a script hands out its own, so that requests are rewritten to these.
_HANDLES = ("id", "encrypted_content", "signature", "thoughtSignature")
_OWN_IDS = ("openai_responses",)  # of the other dialects, calls keep the ids that were recorded


def differences(text: str, turns: Sequence[Turn]) -> list[str]:
    """What a script does not reproduce, in words; empty when all is well."""
    try:
        mock = Mock(parse_script(text, "script.yaml"))
    except ScriptError as error:
        return [str(error)]
    found: list[str] = []
    renamed: dict[str, str] = {}
    for turn in turns:
        if turn.needs_step:
            found += _difference(mock, turn, renamed)
    verdict = mock.verify()
    return found if verdict.ok or found else [str(verdict)]


def _difference(mock: Mock, turn: Turn, renamed: dict[str, str]) -> list[str]:
    exchange = turn.exchange
    body = exchange.body
    for given, own in renamed.items():
        body = body.replace(json.dumps(given), json.dumps(own))
    headers = {**turn.headers, "content-type": "application/json"}
    played = mock.handle(Incoming(exchange.method, exchange.target, headers, body.encode("utf-8", "surrogatepass")))
    actions = [action for action, _ in played.plan]
    head = next((action for action in actions if isinstance(action, Head)), None)
    sent = b"".join(action.data for action in actions if isinstance(action, Send))
    frames = read_frames(sent) if exchange.has_frames else None
    answer = sent.decode("utf-8", "replace") if frames is None else spell_frames(frames)
    where = f"answer {exchange.number}"
    if head is None or head.status != exchange.status:
        problem = played.entry.problem if played.entry is not None else None
        return [f"{where}: status {head.status if head else 'none'} instead of {exchange.status}: {problem or answer}"]
    if turn.said is None and exchange.has_frames:
        return [f"{where}: its frames cannot be said in parts"]
    if turn.said is None:
        return [] if answer == exchange.answer else [f"{where}: its body is another one"]
    if answer == exchange.answer:
        return []
    is_stream = turn.asked.is_stream if turn.asked else an_object(read_json(body)).get("stream") is True
    said = DECODERS[turn.dialect](answer, is_stream=is_stream)
    old, new = (_handles(one, turn.dialect, has_frames=exchange.has_frames) for one in (exchange.answer, answer))
    renamed |= dict(zip(old, new, strict=False))
    if said is None:
        return [f"{where}: it cannot be read"]
    return list(_compare(where, turn.said.comparable(), said.comparable()))


def _compare(where: str, recorded: Said, played: Said) -> Iterator[str]:
    if recorded.parts != played.parts:
        yield f"{where}: what it says differs"
    if recorded.model is not None and recorded.model != played.model:
        yield f"{where}: its model differs"
    if recorded.failure is not None:
        if played.failure is None or recorded.failure[0] != played.failure[0]:
            yield f"{where}: its error differs"
    elif (recorded.finish, recorded.counts) != (played.finish, played.counts):
        yield f"{where}: its finish or its counts differ"


def _handles(answer: str, dialect: str, *, has_frames: bool) -> list[str]:
    """What an answer hands out, in order."""
    documents = documents_of(answer, has_frames=has_frames)
    if dialect in _OWN_IDS and read_json(answer) is None:
        ends = [event["response"] for event in events_of(answer) if isinstance(event.get("response"), dict)]
        documents = ends[-1:]
    return [value for document in documents for value in _found(document, has_ids=dialect in _OWN_IDS)]


def _found(value: Json, *, has_ids: bool) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _found(item, has_ids=has_ids)
    elif isinstance(value, dict):
        for key in _HANDLES:
            held = value.get(key)
            if isinstance(held, str) and held and (has_ids or key != "id"):
                yield held
        for item in value.values():
            yield from _found(item, has_ids=has_ids)
