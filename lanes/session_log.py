"""A committed session log as the other end of the wire: every request rebuilt from the log, every answer taken from it.

Room: channels and the replay suite may come in. It is one of the few rooms of the lanes that know the product: it reads
the log with the product's own reader and spells requests with the product's own codec, and it lets the mock provider
speak the answers.

Strict both ways: a request must equal the rebuilt one, types included, and every recorded answer must be asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx

from harness.errors import HarnessError
from harness.log.events import AssistantChunk, Event, SessionHeader
from harness.log.load import scan
from harness.loop.request import rebuild_request
from harness.model.chunks import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta, Usage, UsageChunk
from harness.wire.openai_chat import encode_body, encode_request
from lanes.cassette import MISS_STATUS, PieceStream, PlayedAnswer, canonical_json, digest_of
from lanes.errors import CassetteError
from lanes.expected import diff_json
from lanes.normalize import Json, Place, replace_places
from mock_provider.httpx_face import MockTransport
from mock_provider.mock import Mock
from mock_provider.script import build_script

LOG_NAME = "session.jsonl"
ORIGIN_NAME = "origin.json"
ORIGIN_FIELDS = frozenset({"class", "story", "model", "recorder", "recorded_at", "note"})
FINISH_WORDS = {"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"}


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One model call of the log: the body that must be sent, and the answer."""

    turn: int
    step: int
    body: Json
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class RecordedLog:
    """A checked recording. digest covers the log's bytes; origin says who spoke."""

    name: str
    digest: str
    header: SessionHeader
    events: tuple[Event, ...]
    exchanges: tuple[RecordedExchange, ...]
    origin: Mapping[str, Json]


def load_recorded_log(folder: Path) -> RecordedLog:
    """Read a recording: a folder with the log and its origin.

    Raises: CassetteError with the file and what is wrong; a damaged log is never played in part.
    """
    name = f"cassettes/session-logs/{folder.name}"
    data = _read(folder / LOG_NAME, f"{name}/{LOG_NAME}")
    origin = _origin(_read(folder / ORIGIN_NAME, f"{name}/{ORIGIN_NAME}"), f"{name}/{ORIGIN_NAME}")
    where = f"{name}/{LOG_NAME}"
    try:
        found = scan(data, clock=lambda: 0)
    except HarnessError as error:
        raise _damaged(where, error.what) from None
    if found.damage is not None or found.lacks_newline:
        raise _damaged(where, found.damage or "the last line has no newline")
    events = tuple(found.log)
    return RecordedLog(
        name=name,
        digest=digest_of(data),
        header=found.log.header,
        events=events,
        exchanges=_exchanges(events, where),
        origin=origin,
    )


def _exchanges(events: Sequence[Event], where: str) -> tuple[RecordedExchange, ...]:
    exchanges: list[RecordedExchange] = []
    open_at: int | None = None
    chunks: list[Chunk] = []
    for event in events:
        payload = event.payload
        if not isinstance(payload, AssistantChunk):
            if open_at is not None:
                raise _damaged(where, f"the answer that begins at seq {open_at} has no end")
            continue
        if open_at is None:
            open_at = event.seq
        chunks.append(payload.chunk)
        if isinstance(payload.chunk, Finish):
            if payload.chunk.kind not in FINISH_WORDS:
                raise _damaged(where, f"the answer that ends at seq {event.seq} failed; a failure is not in the log")
            request = rebuild_request(events[:open_at])
            body: Json = json.loads(encode_body(encode_request(request)))
            exchanges.append(RecordedExchange(payload.turn, payload.step, body, tuple(chunks)))
            open_at, chunks = None, []
    if open_at is not None:
        raise _damaged(where, f"the answer that begins at seq {open_at} has no end")
    if not exchanges:
        raise _damaged(where, "no model call is recorded")
    return tuple(exchanges)


class SessionLogPlayer(httpx.AsyncBaseTransport):
    """Answers with the recorded log; use it as the transport of the product.

    Shape: one player is one conversation, over as many processes or resumes as the log has. places are this run's
    folders; the log holds a token instead. verify lists what is wrong: divergences and answers nobody asked for.
    """

    def __init__(self, folder: Path, *, places: Sequence[Place] = ()) -> None:
        self.log = load_recorded_log(folder)
        self._places = tuple(places)
        self._mock = MockTransport(Mock(build_script(compose_script(self.log), self.log.name)))
        self._cursor = 0
        self.misses: list[str] = []
        self.answers: list[PlayedAnswer] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Compare one request with the one the log implies, and give the recorded answer."""
        sent = b"".join([part async for part in cast("httpx.AsyncByteStream", request.stream)])
        request.stream = httpx.ByteStream(sent)
        body = self._parse(sent)
        digest = digest_of(canonical_json(body))
        number = self._cursor
        if number >= len(self.log.exchanges):
            return self._miss(
                digest,
                f"{self.log.name}: request {number + 1} arrived, {number} answers are recorded [CASSETTE_EXHAUSTED]",
            )
        exchange = self.log.exchanges[number]
        differences = diff_json(exchange.body, body)
        if differences:
            lines = "\n".join(f"  {line}" for line in differences[:8])
            return self._miss(
                digest,
                f"{self.log.name}, turn {exchange.turn} step {exchange.step}: "
                f"sent body differs from the recorded one [CASSETTE_MISS]\n{lines}",
            )
        self._cursor += 1
        response = await self._mock.handle_async_request(request)
        self._note(digest, digest_of(canonical_json(_chunk_facts(exchange.chunks))), response.status_code)
        return response

    def verify(self) -> tuple[str, ...]:
        """What is wrong at the end; empty when all is well."""
        left = self.log.exchanges[self._cursor :]
        return (
            *self.misses,
            *(
                f"{self.log.name}, turn {each.turn} step {each.step}: recorded and not asked for [CASSETTE_LEFT]"
                for each in left
            ),
        )

    def facts(self) -> dict[str, Json]:
        """The recording as evidence shows it."""
        return {
            "id": self.log.name,
            "digest": self.log.digest,
            "oldest_recorded_at": self.log.origin["recorded_at"],
            "recorded_model": self.log.origin["model"],
            "recorded_host": None,
            "recorded_commit": None,
            "entries": len(self.log.exchanges),
            "consumed": self._cursor,
            "unmatched": len(self.misses),
            "live_proof_digest": None,
        }

    def _parse(self, sent: bytes) -> Json:
        text = replace_places(sent.decode("utf-8"), self._places)
        parsed: Json = json.loads(text)
        return parsed

    def _miss(self, digest: str, message: str) -> httpx.Response:
        text = (
            f"{message}\n  fix: undo the change, or record the log again: lanes record-log {Path(self.log.name).name}"
        )
        self.misses.append(text)
        self._note(digest, None, MISS_STATUS)
        error: Json = {"error": {"message": text, "type": "invalid_request_error", "code": "cassette_miss"}}
        return httpx.Response(
            MISS_STATUS, headers={"content-type": "application/json"}, stream=PieceStream([canonical_json(error)])
        )

    def _note(self, request: str, answer: str | None, status: int) -> None:
        self.answers.append(
            PlayedAnswer(
                ordinal=len(self.answers) + 1,
                request_digest=request,
                answer_digest=answer,
                status=status,
                answer_class="scripted",  # a log carries no proof that a model spoke
                reported_model=cast("str | None", self.log.origin["model"]),
                provider_id=None,
            )
        )


def compose_script(log: RecordedLog) -> dict[str, Json]:
    """The recorded answers as a script of the mock provider, one step an answer, one part a piece."""
    steps: list[Json] = [_step(exchange.chunks) for exchange in log.exchanges]
    return {"version": 1, "model": str(log.origin["model"]), "steps": steps}


def _step(chunks: Sequence[Chunk]) -> dict[str, Json]:
    step: dict[str, Json] = {"reply": _parts(chunks)}
    for chunk in chunks:
        if isinstance(chunk, UsageChunk):
            step["usage"] = cast("Json", _usage(chunk.usage))
        elif isinstance(chunk, Finish):
            step["finish"] = FINISH_WORDS[chunk.kind]
    step.setdefault("usage", "none")
    return step


def _parts(chunks: Sequence[Chunk]) -> list[Json]:
    """The parts in order of arrival, each piece on its own."""
    parts: list[Json] = []
    called: set[str] = set()
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            parts.append({"text": _escaped(chunk.text)})
        elif isinstance(chunk, ReasoningDelta):
            parts.append({"reasoning": _escaped(chunk.text)})
        elif isinstance(chunk, ToolCallDelta) and chunk.id not in called:
            called.add(chunk.id)
            parts.extend(_call_parts([each for each in chunks if isinstance(each, ToolCallDelta)], chunk))
    return parts


def _call_parts(deltas: Sequence[ToolCallDelta], opening: ToolCallDelta) -> list[Json]:
    """One tool call: a part of the script when it came as the mock provider sends calls, else event by event.

    Limits: the fragments of calls that came interleaved are sent call by call.
    """
    own = [delta for delta in deltas if delta.id == opening.id]
    index = list(dict.fromkeys(delta.id for delta in deltas)).index(opening.id)
    fragments = [delta.arguments_delta for delta in own]
    if len(fragments) == 2 and not fragments[0] and opening.name is not None:
        return [{"tool_call": {"id": opening.id, "name": opening.name, "raw": _escaped(fragments[1])}}]
    return [{"hex": _event(delta, index).hex()} for delta in own]


def _event(delta: ToolCallDelta, index: int) -> bytes:
    """One fragment as an event of the chat dialect."""
    function: dict[str, Json] = {"arguments": delta.arguments_delta}
    call: dict[str, Json] = {"index": index, "id": delta.id, "type": "function", "function": function}
    if delta.name is not None:
        function["name"] = delta.name
    event: Json = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    return b"data: " + canonical_json(event) + b"\n\n"


def _usage(usage: Usage) -> dict[str, int]:
    """Counts as a script gives them: cached input is part of the input there, and apart in the log."""
    cached = usage.cache_read_tokens or 0
    counts = {"input": usage.input_tokens + cached, "output": usage.output_tokens}
    if usage.cache_read_tokens is not None:
        counts["cached"] = cached
    if usage.reasoning_tokens is not None:
        counts["reasoning"] = usage.reasoning_tokens
    return counts


def _escaped(text: str) -> str:
    """A text as a script writes it: braces that would copy from the request are doubled."""
    return text.replace("{{", "{{{{").replace("}}", "}}}}")


def _chunk_facts(chunks: Sequence[Chunk]) -> Json:
    return [f"{type(chunk).__name__}: {chunk!r}" for chunk in chunks]


def _origin(data: bytes, where: str) -> Mapping[str, Json]:
    try:
        value: Json = json.loads(data)
    except ValueError as error:
        raise _damaged(where, f"not valid JSON: {error}") from None
    if not isinstance(value, dict) or set(value) != ORIGIN_FIELDS:
        raise _damaged(where, "fields are not the known ones", f"an object with {', '.join(sorted(ORIGIN_FIELDS))}")
    if value["class"] != "scripted":
        raise _damaged(where, f"class is {value['class']!r}", "'scripted': a session log carries no live proof")
    return value


def _read(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CassetteError(
            f"cannot be read: {error.strerror or error}",
            where=where,
            expected="a recording",
            fix="restore the file, or record the log again",
            code="CASSETTE_MISSING",
        ) from None


def _damaged(where: str, what: str, expected: str = "the recording as it was committed") -> CassetteError:
    return CassetteError(what, where=where, expected=expected, fix="restore the file", code="CASSETTE_DAMAGED")
