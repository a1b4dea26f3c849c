"""The contents of a Gemini request, read and found sound in one go, from where the last request ended.

Room: pure; the Gemini dialect comes in. What is wrong with contents that are not sound is said by the rules.
Source: as gemini_history_rules.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from mock_provider.asked import AskedCall, AskedMessage, AskedResult
from mock_provider.dialects.gemini_fields import decode_bytes, pick, pick_object, pick_objects, pick_text
from mock_provider.dialects.gemini_history_rules import calls_of, find_stranger, refuse_content, responses_of
from mock_provider.dialects.gemini_signatures import is_ours
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import Growing, fold
from mock_provider.pieces import size_bytes
from mock_provider.values import value


@value
class Turn:
    """Neighbouring contents of one role, as far as they were read. Shape: is_signed is that of the first call."""

    is_model: bool
    is_first: bool
    responses: tuple[JsonObject, ...] = ()
    calls: tuple[JsonObject, ...] = ()
    is_signed: bool = True


@value
class Heard:
    """Contents in which no rule is broken, as far as they were read.

    Shape: messages are those that are complete, size_bytes is that of all they say; last is one of the model's that may
    go on. turn may go on, too; waiting are the calls that it has to answer. is_signed says that each turn of what the
    user asked last, but this one, has a signature where it needs one.
    """

    messages: Growing[AskedMessage]
    size_bytes: int = 0
    last: AskedMessage | None = None
    turn: Turn | None = None
    waiting: tuple[JsonObject, ...] = ()
    is_signed: bool = True

    def all(self) -> tuple[tuple[AskedMessage, ...], int]:
        """All messages, and the size of all that is said."""
        if self.last is None:
            return self.messages.all(), self.size_bytes
        return (*self.messages.all(), self.last), self.size_bytes + size_bytes(self.last.said())


def read_sound(contents: Json, *, needs_signatures: bool) -> Heard | None:
    """Read contents. Shape: None where a rule may be broken; needs_signatures is for models that want them back."""
    if not isinstance(contents, list) or not contents:
        return None
    start: Heard | None = Heard(Growing())
    heard = fold(_hear, start, contents)
    closed = _close(heard) if heard is not None else None
    if heard is None or closed is None or closed[0] or (needs_signatures and not closed[1]):
        return None
    return heard


def _hear(heard: Heard | None, contents: Sequence[Json]) -> Heard | None:
    """Contents after those before them."""
    if heard is None:
        return None
    new: list[AskedMessage] = []
    last, turn, waiting, is_signed = heard.last, heard.turn, heard.waiting, heard.is_signed
    for content in contents:
        if not isinstance(content, dict) or refuse_content(content, 0) or not _is_ours(content):
            return None
        is_model = pick_text(content, "role") == "model"
        if turn is None or turn.is_model is not is_model:
            closed = _close(Heard(heard.messages, 0, None, turn, waiting, is_signed))
            if closed is None:
                return None
            waiting, is_signed = closed
            turn = Turn(is_model, is_first=turn is None)
        turn = _go_on(turn, content)
        for message in read_content(content):
            if message.role != "assistant":
                new += (message,) if last is None else (last, message)
                last = None
            else:
                last = message if last is None else join(last, message)
    size = heard.size_bytes
    for message in new:
        size += size_bytes(message.said())
    return Heard(heard.messages.plus(new), size, last, turn, waiting, is_signed)


def _is_ours(content: JsonObject) -> bool:
    given = [pick_text(part, "thoughtSignature") for part in pick_objects(content, "parts") if _has_signature(part)]
    return all(is_ours(one, decode_bytes(one) or b"") for one in given)


def _has_signature(part: JsonObject) -> bool:
    return pick(part, "thoughtSignature") is not None


def _go_on(turn: Turn, content: JsonObject) -> Turn:
    calls, responses = tuple(calls_of(content)), tuple(responses_of(content))
    is_signed = turn.is_signed
    if calls and not turn.calls:
        first = next(part for part in pick_objects(content, "parts") if pick(part, "functionCall") is not None)
        is_signed = bool(pick_text(first, "thoughtSignature"))
    return Turn(turn.is_model, turn.is_first, turn.responses + responses, turn.calls + calls, is_signed)


def _close(heard: Heard) -> tuple[tuple[JsonObject, ...], bool] | None:
    """End the turn that may go on. Shape: its calls, and is_signed with it; None where a rule is broken in it."""
    turn, waiting = heard.turn, heard.waiting
    if turn is None:
        return (), True
    if len(turn.responses) != len(waiting) or find_stranger(list(waiting), list(turn.responses)) is not None:
        return None
    if turn.calls and turn.is_first:
        return None
    is_asked = not turn.is_model and not turn.responses
    return turn.calls, turn.is_signed and (is_asked or heard.is_signed)


def read_content(content: JsonObject) -> list[AskedMessage]:
    """Read one content; each response becomes a message of its own, as in the other dialects.

    Ids of calls are left out: not all clients give them back, and a history is the same with and without.
    """
    responses = [_result(response) for response in responses_of(content)]
    calls = tuple(
        AskedCall("", pick_text(call, "name"), json.dumps(pick_object(call, "args"))) for call in calls_of(content)
    )
    texts = read_texts(content)
    images = sum(
        pick(part, name) is not None for part in pick_objects(content, "parts") for name in ("inlineData", "fileData")
    )
    found = [AskedMessage("tool", (), (), (response,)) for response in responses]
    if texts or calls or images or not responses:
        role: Literal["assistant", "user"] = "assistant" if pick_text(content, "role") == "model" else "user"
        found.append(AskedMessage(role, texts, calls, (), images))
    return found


def join(before: AskedMessage, after: AskedMessage) -> AskedMessage:
    """Neighbouring contents of the model are one message: its client keeps each chunk of a stream as its own."""
    texts, calls = (*before.texts, *after.texts), (*before.calls, *after.calls)
    return AskedMessage("assistant", texts, calls, (), before.images + after.images)


def read_texts(content: JsonObject) -> tuple[str, ...]:
    """What is said, without the thoughts."""
    parts = [part for part in pick_objects(content, "parts") if pick(part, "thought") is not True]
    return tuple(filter(None, (pick_text(part, "text") for part in parts)))


def _result(response: JsonObject) -> AskedResult:
    """A response's text: what its client put under `result` or `output`, or under `error`, else all of it as JSON.

    Source: the provider's reference names `output` and `error`; its Python client writes `result` and `error`.
    """
    content = pick_object(response, "response")
    for name in ("result", "output", "error"):
        found = content.get(name)
        if found is not None:
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            return AskedResult(pick_text(response, "id"), pick_text(response, "name"), text, name == "error")
    text = json.dumps(content, ensure_ascii=False)
    return AskedResult(pick_text(response, "id"), pick_text(response, "name"), text)
