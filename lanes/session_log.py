"""A committed session as the other end of the wire: every request rebuilt from its logs, every answer taken from them.

Room: channels, the replay child and the suites may come in. It is one of the few rooms of the lanes that know the
product, and it lets the mock provider speak the answers.

Strict both ways: a request must equal the next one of a session, types included, and every recorded answer must be
asked for. Sessions are tried root first, then children as they were created, so that of equal ones the first begins.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx

from lanes.errors import CassetteError
from lanes.expected import diff_json
from lanes.interaction import canonical_json, digest_of
from lanes.normalize import Json, Place, replace_places
from lanes.piece_stream import PieceStream
from lanes.played_answer import MISS_STATUS, PlayedAnswer
from lanes.recorded_calls import RecordedCall
from lanes.recorded_log import RecordedSession, SessionRecord, load_recorded_session
from lanes.recorded_script import compose_script
from mock_provider.errors import MockError
from mock_provider.httpx_face import MockTransport
from mock_provider.mock import Mock
from mock_provider.script import build_script

SHOWN_LINES = 8


@dataclass(slots=True)
class _Track:
    """One session while it is played. cursor counts the calls that were answered."""

    record: SessionRecord
    transport: MockTransport | None  # None when all of its answers were given before
    cursor: int

    @property
    def next(self) -> RecordedCall | None:
        calls = self.record.calls
        return calls[self.cursor] if self.cursor < len(calls) else None

    def entry(self, at: int) -> str:
        """How a call is named to people: its file, its number there, and what it was."""
        return f"{self.record.name}, entry {at + 1} ({self.record.calls[at].name})"


class SessionLogPlayer(httpx.AsyncBaseTransport):
    """Answers with a recorded session; use it as the transport of the product.

    Shape: one player is one conversation with its children, over as many processes or resumes as the logs have; begun
    is how many calls of each session were answered before. places are this run's folders; the logs hold tokens
    instead. verify lists what is wrong: divergences and answers nobody asked for.
    Raises: CassetteError for a recording that cannot be played as it is.
    """

    def __init__(self, folder: Path, *, places: Sequence[Place] = (), begun: Sequence[int] = ()) -> None:
        self.recording = load_recorded_session(folder)
        self._places = tuple(places)
        sessions = self.recording.sessions
        cursors = tuple(begun) or (0,) * len(sessions)
        self._tracks = [
            _Track(session, _transport(self.recording, at, cursor), cursor)
            for at, (session, cursor) in enumerate(zip(sessions, cursors, strict=True))
        ]
        self.misses: list[str] = []
        self.answers: list[PlayedAnswer] = []

    @property
    def bodies(self) -> list[Json]:
        """The bodies of all requests that the logs imply."""
        return [call.body for track in self._tracks for call in track.record.calls]

    @property
    def cursors(self) -> tuple[int, ...]:
        """How many calls of each session were answered so far; what another process begins with."""
        return tuple(track.cursor for track in self._tracks)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Compare one request with those that may come now, and give the recorded answer.

        Raises: what the recording says the transport raised.
        """
        sent = b"".join([part async for part in cast("httpx.AsyncByteStream", request.stream)])
        request.stream = httpx.ByteStream(sent)
        body = self._parse(sent)
        digest = digest_of(canonical_json(body))
        for track in self._tracks:
            call, transport = track.next, track.transport
            if call is not None and transport is not None and not _difference(call, body):
                track.cursor += 1
                return await self._play(call, transport, request, digest)
        return self._miss(body, digest)

    def verify(self) -> tuple[str, ...]:
        """What is wrong at the end; empty when all is well."""
        left = (
            f"{track.entry(at)}: recorded and not asked for [CASSETTE_LEFT]"
            for track in self._tracks
            for at in range(track.cursor, len(track.record.calls))
        )
        return (*self.misses, *left)

    def facts(self) -> dict[str, Json]:
        """The recording as evidence shows it."""
        origin = self.recording.origin
        return {
            "id": self.recording.name,
            "digest": self.recording.digest,
            "oldest_recorded_at": origin["recorded_at"],
            "recorded_model": origin["model"],
            "recorded_host": None,
            "recorded_commit": None,
            "entries": sum(len(track.record.calls) for track in self._tracks),
            "consumed": sum(self.cursors),
            "unmatched": len(self.misses),
            "live_proof_digest": None,
        }

    async def _play(
        self, call: RecordedCall, transport: MockTransport, request: httpx.Request, digest: str
    ) -> httpx.Response:
        answer = digest_of(canonical_json([f"{type(chunk).__name__}: {chunk!r}" for chunk in call.chunks]))
        try:
            response = await transport.handle_async_request(request)
        except httpx.TransportError as error:
            self._note(digest, None, 0)
            raise _retold(error, call) from None
        self._note(digest, answer, response.status_code)
        if call.ending == "failed":
            response.stream = _RetoldStream(cast("httpx.AsyncByteStream", response.stream), call)
        return response

    def _parse(self, sent: bytes) -> Json:
        parsed: Json = json.loads(replace_places(sent.decode("utf-8"), self._places))
        return parsed

    def _miss(self, body: Json, digest: str) -> httpx.Response:
        fix = f"undo the change, or record the log again: lanes record {self.recording.origin['story']} --scripted"
        text = f"{self._divergence(body)}\n  fix: {fix}"
        self.misses.append(text)
        self._note(digest, None, MISS_STATUS)
        error: Json = {"error": {"message": text, "type": "invalid_request_error", "code": "cassette_miss"}}
        return httpx.Response(
            MISS_STATUS, headers={"content-type": "application/json"}, stream=PieceStream([canonical_json(error)])
        )

    def _divergence(self, body: Json) -> str:
        """What came, and how it differs from the nearest of the entries that could have come."""
        could = [(track, call) for track in self._tracks if (call := track.next) is not None]
        if not could:
            count = sum(self.cursors)
            arrived = f"request {len(self.answers) + 1} arrived, {count} answers are recorded"
            return f"{self.recording.name}: {arrived} [CASSETTE_EXHAUSTED]"
        found = [(_difference(call, body), track) for track, call in could]
        lines, track = min(found, key=lambda each: len(each[0]))
        shown = "\n".join(f"  {line}" for line in [*self._elsewhere(body), *lines][:SHOWN_LINES])
        return f"{track.entry(track.cursor)}: sent body differs from the recorded one [CASSETTE_MISS]\n{shown}"

    def _elsewhere(self, body: Json) -> list[str]:
        return [
            f"it equals {track.entry(at)}: the order changed, or it came once more"
            for track in self._tracks
            for at, call in enumerate(track.record.calls)
            if not _difference(call, body)
        ][:1]

    def _note(self, request: str, answer: str | None, status: int) -> None:
        self.answers.append(
            PlayedAnswer(
                ordinal=len(self.answers) + 1,
                request_digest=request,
                answer_digest=answer,
                status=status,
                answer_class="scripted",  # a log carries no proof that a model spoke
                reported_model=cast("str | None", self.recording.origin["model"]),
                provider_id=None,
            )
        )


class _RetoldStream(httpx.AsyncByteStream):
    """The body of an answer that breaks off, in the words of the recording."""

    def __init__(self, source: httpx.AsyncByteStream, call: RecordedCall) -> None:
        self._source = source
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._source:
                yield piece
        except httpx.TransportError as error:
            raise _retold(error, self._call) from None

    async def aclose(self) -> None:
        await self._source.aclose()


def _difference(call: RecordedCall, body: Json) -> list[str]:
    """How a request differs from the nearest that the log implies for a call; empty when it is one of them."""
    return min((diff_json(each, body) for each in call.bodies()), key=len)


def _retold(error: httpx.TransportError, call: RecordedCall) -> httpx.TransportError:
    """An error of the transport with the words it had when it was recorded: they depend on the way to the provider."""
    kind = type(error)
    return kind(call.said.partition(f"{kind.__name__}: ")[2], request=error.request)


def _transport(recording: RecordedSession, session: int, cursor: int) -> MockTransport | None:
    """The mock provider with the answers of one session that are still to come, None when there are none."""
    record = recording.sessions[session]
    calls = record.calls[cursor:]
    if not calls:
        return None
    overrides = [recording.override(session, number) for number in range(cursor + 1, len(record.calls) + 1)]
    script = compose_script(calls, overrides, str(recording.origin["model"]))
    try:
        return MockTransport(Mock(build_script(script, record.name)))
    except MockError as error:
        raise CassetteError(
            f"its answers cannot be played: {error}",
            where=record.name,
            expected="throws and patches in the words of the mock provider's scripts",
            fix="mend the override file",
            code="CASSETTE_OVERRIDE",
        ) from error
