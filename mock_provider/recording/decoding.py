"""Which request an exchange was, and what its answer said.

Room: pure; the writer of scripts comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mock_provider.asked import Asked, AskedCall, AskedMessage, Refusal
from mock_provider.caller import Caller, read_caller
from mock_provider.deciding import Decider, Request
from mock_provider.explaining import with_key
from mock_provider.json_values import Json, JsonObject
from mock_provider.kept import Kept
from mock_provider.play import Play
from mock_provider.playback import History
from mock_provider.recording.exchanges import Clean
from mock_provider.recording.frames import parse_frames
from mock_provider.recording.said import Said, a_text_or_none, an_object, events_of, read_json
from mock_provider.recording.said_bedrock import read_bedrock
from mock_provider.recording.said_openai import read_chat, read_response
from mock_provider.recording.said_others import read_gemini, read_message, read_ollama
from mock_provider.redaction import Redactor
from mock_provider.routes import find_route, split_prefix, split_target
from mock_provider.steps import Script

DECODERS: Mapping[str, Callable[..., Said | None]] = {
    "openai_chat": read_chat,
    "openai_responses": read_response,
    "anthropic_messages": read_message,
    "gemini": read_gemini,
    "ollama": read_ollama,
    "bedrock": read_bedrock,
}
_EMPTY = Script(name="recording", digest="", conversations=())


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange understood.

    Shape: needs_step False means that the mock answers such a request by itself, or has no such address; asked None
    that the request cannot be read without what went before. said None means that the answer is kept as it is.
    previous is the answer that the request continues by its id.
    """

    exchange: Clean
    headers: Mapping[str, str]
    dialect: str
    needs_step: bool
    asked: Asked | None = None
    said: Said | None = None
    previous: str | None = None
    id: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether the provider refused."""
        return self.exchange.status >= 400

    def digests(self) -> list[str]:
        """The history of the request, every beginning of it."""
        return [] if self.asked is None else History(self.asked.messages).digests()

    def sealed(self) -> str | None:
        """The history with the answer, by which the next request is known as its continuation."""
        if self.asked is None or self.said is None:
            return None
        calls = tuple(
            AskedCall((part.id or "") if _has_ids(self.dialect) else "", part.name, part.text)
            for part in self.said.parts
            if part.kind == "call"
        )
        text = "".join(part.text for part in self.said.parts if part.kind in ("text", "refusal"))
        return History(self.asked.messages).with_reply(AskedMessage("assistant", (text,) if text else (), calls))


def _has_ids(dialect: str) -> bool:
    return dialect not in ("gemini", "ollama")


def read_turn(exchange: Clean) -> Turn:
    """Understand an exchange."""
    plain = {name: ", ".join(values) for name, values in exchange.headers.items()}
    path, _ = split_target(exchange.target)
    route = find_route(exchange.method, split_prefix(path)[1], plain)
    headers = with_key(plain, _EMPTY, route.dialect)
    caller = read_caller(exchange.method, exchange.target, headers, _EMPTY)
    address = route.address
    if address is None or address.answer is not None:
        return Turn(exchange, headers, route.dialect, needs_step=False)
    body = read_json(exchange.body)
    checked = _check(caller, exchange)
    previous = a_text_or_none(an_object(body).get("previous_response_id"))
    if not isinstance(checked, Asked):
        needs_step = previous is not None or not isinstance(checked, dict)
        if isinstance(checked, Refusal) and exchange.status == checked.status and previous is None:
            needs_step = False  # the mock refuses it by itself, like the provider
        said = _said(exchange, route.dialect, is_stream=an_object(body).get("stream") is True)
        return Turn(exchange, headers, route.dialect, needs_step, None, said, previous, _answer_id(exchange))
    said = _said(exchange, route.dialect, is_stream=checked.is_stream)
    return Turn(exchange, headers, route.dialect, True, checked, said, previous, _answer_id(exchange))


def _check(caller: Caller, exchange: Clean) -> Asked | Refusal | JsonObject | None:
    body = read_json(exchange.body)
    request = Request(caller, body, None, Redactor(), len(exchange.body.encode("utf-8", "surrogatepass")))
    return Decider(Play(_EMPTY), Kept()).check(request)


def _said(exchange: Clean, dialect: str, *, is_stream: bool) -> Said | None:
    if exchange.status != 200 or exchange.has_frames is not (is_stream and dialect == "bedrock"):
        return None
    return DECODERS[dialect](exchange.answer, is_stream=is_stream)


def documents_of(answer: str, *, has_frames: bool) -> list[Json]:
    """The JSON values of an answer, in order."""
    if has_frames:
        return [read_json(one.payload) for one in parse_frames(answer)]
    whole = read_json(answer)
    return [whole] if whole is not None else list(events_of(answer))


def _answer_id(exchange: Clean) -> str | None:
    """The id of a kept answer, by which a later request may name it."""
    whole = an_object(read_json(exchange.answer))
    for value in (whole, *(an_object(event.get("response")) for event in events_of(exchange.answer))):
        found = a_text_or_none(value.get("id"))
        if found:
            return found
    return None
