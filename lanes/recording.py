"""Taking a recording: a transport that notes what really came, and a file that appears whole or not at all.

Room: the recorder may come in. Like cassette it knows HTTP and vcrpy, and nothing of the product.

The answer is passed on piece by piece while it is noted, so a recorded run streams as any other. vcrpy's Cassette
collects the exchanges and spells the file; what enters it has been redacted, and the finished text is searched again.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx
from vcr.cassette import Cassette
from vcr.record_mode import RecordMode
from vcr.request import Request as VcrRequest
from vcr.serialize import serialize

from lanes.cassette import MAX_INTERACTIONS, load_cassette
from lanes.cassette_checks import TRANSIENT
from lanes.errors import CassetteError
from lanes.event_frames import STREAM_TYPE, EventFrame, clean_frames, decode_frames, parse_lines, spell_lines
from lanes.fragments import joined_texts
from lanes.interaction import canonical_json, digest_of, request_view, seal_of
from lanes.normalize import Json, Place, replace_places
from lanes.record import JsonObject
from lanes.recorded_origin import PROOF_FIELD, compose_proof, origin_problem, proof_digest
from lanes.redaction import REQUEST_HEADERS, RESPONSE_HEADERS, Redactor, is_loopback
from lanes.whole_file import whole_file

RECORDER = "lanes.recording/1"
_PAIR = re.compile(r"\[\s+(\d+),\s+(\d+)\s+\]")  # no text holds a bare line break in JSON, so this is never one
END_MARK = b"data: [DONE]"


@dataclass(slots=True)
class _Exchange:
    request: httpx.Request
    body: bytes
    status: int = 0
    reason: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    complete: bool = False
    live_proof: JsonObject | None = None


class RecordingTransport(httpx.AsyncBaseTransport):
    """Passes requests on to the real transport and notes each exchange with its pieces.

    Shape: now_ms is a monotonic clock; the offset of a piece is counted from the request.
    Limits: asks for an unpacked answer, because a packed one can be neither searched nor cut.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, *, now_ms: Callable[[], int]) -> None:
        self._inner = inner
        self._now_ms = now_ms
        self.exchanges: list[_Exchange] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and give its answer back as it arrives."""
        request.headers["accept-encoding"] = "identity"
        body = b"".join([part async for part in cast("httpx.AsyncByteStream", request.stream)])
        request.stream = httpx.ByteStream(body)
        exchange = _Exchange(request=request, body=body)
        self.exchanges.append(exchange)
        started = self._now_ms()
        response = await self._inner.handle_async_request(request)
        exchange.status = response.status_code
        exchange.reason = response.reason_phrase
        exchange.headers = response.headers.multi_items()
        source = cast("httpx.AsyncByteStream", response.stream)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_NotedStream(source, exchange, lambda: self._now_ms() - started),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the real transport."""
        await self._inner.aclose()

    def prove(self, notes: Sequence[JsonObject], facts: JsonObject) -> None:
        """Keep with each exchange what the witness inside noted of it, and of the whole conversation.

        Raises: CassetteError when the witness saw other exchanges than these.
        """
        if len(notes) != len(self.exchanges):
            raise _refused(f"{len(notes)} of {len(self.exchanges)} exchanges were witnessed", "all", "record again")
        for exchange, note in zip(self.exchanges, notes, strict=True):
            exchange.live_proof = compose_proof(note, facts)


class _NotedStream(httpx.AsyncByteStream):
    def __init__(self, source: httpx.AsyncByteStream, exchange: _Exchange, offset_ms: Callable[[], int]) -> None:
        self._source = source
        self._exchange = exchange
        self._offset_ms = offset_ms

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._source:
            self._exchange.pieces.append((self._offset_ms(), piece))
            yield piece
        self._exchange.complete = True

    async def aclose(self) -> None:
        await self._source.aclose()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is true of a whole recording session.

    Shape: recorded_at is an ISO date and time in UTC, None when no live model was asked: such a recording has no age.
    """

    recorded_at: str | None
    commit: str | None
    places: tuple[Place, ...] = ()
    keeps_transient: bool = False


def compose_cassette(exchanges: Sequence[_Exchange], redactor: Redactor, facts: Circumstances) -> str:
    """The text of the cassette file.

    Raises: CassetteError for nothing recorded, too much, a cut or undecodable answer, a transient error, or a secret
    that is still there. The message names places and kinds, never values.
    """
    if not 1 <= len(exchanges) <= MAX_INTERACTIONS:
        raise _refused(f"{len(exchanges)} exchanges were seen", f"1 to {MAX_INTERACTIONS}", "record another story")
    for number, exchange in enumerate(exchanges, start=1):  # every secret is learnt before the first text is cleaned
        _clean_request(exchange, redactor, facts.places)
        redactor.headers(exchange.headers, RESPONSE_HEADERS)
        _clean_body(exchange, redactor, facts.places, number)
    held = _Held()
    cassette = Cassette("cassette", record_mode=RecordMode.ALL, serializer=JsonForm, persister=held)
    for number, exchange in enumerate(exchanges, start=1):
        request, response = _interaction(exchange, number, redactor, facts)
        cassette.append(request, response)
    cassette._save(force=True)  # noqa: SLF001 -- vcrpy saves only from its own patching context, which is not used here
    said = [text for exchange in exchanges for text in joined_texts(_clean_body(exchange, redactor, facts.places, 0))]
    found = redactor.findings("\n".join([held.text, *said]))
    if found:
        raise _refused(
            f"a secret is still in the recording: {'; '.join(found)}",
            "no secret in any form",
            "add the field's name to the redaction list",
            code="CASSETTE_SECRET",
        )
    return held.text


def store_cassette(path: Path, text: str, *, keeps_transient: bool = False) -> None:
    """Replace the whole file at once; whoever reads it sees the old one or the new one.

    Shape: keeps_transient is for a claim about errors that pass by themselves.
    Raises: CassetteError when the text does not load as a cassette; the old file is then left as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, synced=True) as file:  # a provider was paid for it
        file.write(text.encode("utf-8"))
        file.flush()
        name = f"cassettes/{path.parent.name}/{path.name}"
        load_cassette(Path(file.name), keeps_transient=keeps_transient, name=name)


class JsonForm:
    """vcrpy's serializer that writes JSON, a field or a piece a line: it is YAML as well, and loads much faster."""

    @staticmethod
    def serialize(cassette_dict: Mapping[str, object]) -> str:
        """The text of the file."""
        text = json.dumps(cassette_dict, indent=1, sort_keys=True, ensure_ascii=False)
        return _PAIR.sub(r"[\1, \2]", text) + "\n"

    @staticmethod
    def deserialize(cassette_string: str) -> dict[str, object]:
        """The document in a text."""
        document: dict[str, object] = json.loads(cassette_string)
        return document


@dataclass(slots=True)
class _Held:
    """vcrpy's persister that keeps the text, because storing has rules of its own here."""

    text: str = ""

    def save_cassette(self, _path: str, cassette_dict: Mapping[str, object], serializer: object) -> None:
        """Keep the text that vcrpy would write."""
        self.text = str(serialize(cassette_dict, serializer))


def _interaction(
    exchange: _Exchange, number: int, redactor: Redactor, facts: Circumstances
) -> tuple[VcrRequest, dict[str, Json]]:
    if exchange.status in TRANSIENT and not facts.keeps_transient:
        raise _refused(
            f"answer {number} has the status {exchange.status}", "a lasting answer", "record again when it is well"
        )
    raw = b"".join(piece for _, piece in exchange.pieces)
    if not (exchange.complete or raw.rstrip().endswith(END_MARK)):  # a client may stop reading at the end mark
        raise _refused(f"answer {number} was cut off", "an answer that came to its end", "record again")
    url, headers, body_text = _clean_request(exchange, redactor, facts.places)
    whole = _clean_body(exchange, redactor, facts.places, number)
    answer_headers = redactor.headers(exchange.headers, RESPONSE_HEADERS)
    pieces: list[Json] = [[offset, len(piece)] for offset, piece in exchange.pieces if piece]
    frames = _frames_of(exchange)
    events = (
        [part.encode("utf-8") for part in _events(whole)]
        if frames is None
        else [frame.encoded() for frame in parse_lines(whole) or ()]
    )
    if b"".join(events) != raw:  # something was taken out, so the sizes are those of the events that are left
        last = exchange.pieces[-1][0] if exchange.pieces else 0
        pieces = [[last, len(part)] for part in events]
    view = request_view(exchange.request.method, url, body_text.encode("utf-8"), redactor=redactor, places=facts.places)
    proof = exchange.live_proof
    reported = reported_facts(whole)
    origin: dict[str, Json] = {
        "class": "scripted" if proof is None else "live",
        "recorded_at": facts.recorded_at,
        "host": "loopback" if is_loopback(exchange.request.url.host) else exchange.request.url.host,
        "requested_model": _requested_model(body_text),
        "reported_model": reported.get("model"),
        "provider_id": reported.get("id"),
        "commit": facts.commit,
        "recorder": RECORDER,
        "live_proof_digest": None if proof is None else proof_digest(proof),
    }
    if proof is not None:
        origin[PROOF_FIELD] = cast("Json", proof)
    if proof is not None and (problem := origin_problem(origin)):
        raise _refused(f"answer {number} shows no model: {problem}", "an answer of a model", "record again")
    origin["seal"] = seal_of(digest_of(canonical_json(view)), whole, origin)
    response: dict[str, Json] = {
        "status": {"code": exchange.status, "message": exchange.reason},
        "headers": cast("Json", answer_headers),
        "body": {"string" if frames is None else "frames": whole},
        "pieces": pieces,
        "origin": origin,
    }
    return VcrRequest(exchange.request.method, url, body_text, headers), response


def _clean_request(
    exchange: _Exchange, redactor: Redactor, places: Sequence[Place]
) -> tuple[str, dict[str, list[str]], str]:
    headers = redactor.headers(exchange.request.headers.multi_items(), REQUEST_HEADERS)
    url = redactor.url(str(exchange.request.url))
    body = redactor.body(replace_places(exchange.body.decode("utf-8"), places).encode("utf-8"))
    return url, headers, body


def _clean_body(exchange: _Exchange, redactor: Redactor, places: Sequence[Place], number: int) -> str:
    raw = b"".join(piece for _, piece in exchange.pieces)
    frames = _frames_of(exchange)
    if frames is not None:
        cleaned = clean_frames(frames, lambda text: replace_places(redactor.body(text.encode("utf-8")), places))
        return spell_lines(cleaned)
    try:
        return replace_places(redactor.body(raw), places)
    except UnicodeDecodeError:
        expected = "UTF-8, or frames of an event stream"
        raise _refused(f"answer {number} is not text", expected, "record an endpoint that answers with text") from None


def _frames_of(exchange: _Exchange) -> tuple[EventFrame, ...] | None:
    """The frames of an answer that is a binary event stream."""
    is_stream = any(name.lower() == "content-type" and STREAM_TYPE in value for name, value in exchange.headers)
    return decode_frames(b"".join(piece for _, piece in exchange.pieces)) if is_stream else None


def reported_facts(body: str) -> dict[str, str]:
    """The model and the id an answer gives itself, from its JSON or from the first event that has them."""
    found: dict[str, str] = {}
    lines = [body, *(line[5:] for line in body.split("\n") if line.startswith("data:"))]
    for line in lines:
        try:
            value: Json = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            for key in ("model", "id"):
                if isinstance(value.get(key), str) and key not in found:
                    found[key] = str(value[key])
    return found


def _requested_model(body: str) -> str | None:
    try:
        value: Json = json.loads(body)
    except ValueError:
        return None
    model = value.get("model") if isinstance(value, dict) else None
    return model if isinstance(model, str) else None


def _events(text: str) -> list[str]:
    parts = text.split("\n\n")
    return [f"{part}\n\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def _refused(what: str, expected: str, fix: str, *, code: str = "CASSETTE_REFUSED") -> CassetteError:
    return CassetteError(what, where="recording", expected=expected, fix=f"{fix}; nothing was written", code=code)
