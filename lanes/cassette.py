"""Recorded HTTP exchanges: load strictly, match by digest, play in order, use up.

Room: channels, recorder and the replay suite may come in. Nothing here can reach a network: a player holds no socket.

The file has the fields of vcrpy's own format, so vcrpy can play it too. It is written as JSON, which is YAML as well
and loads many times faster; what vcrpy wrote in its usual form is read all the same. vcrpy plays and counts. This room
adds what a lane needs on top: the order is enforced, every exchange must be used, a type-exact digest of the request
decides, and a request that fits nothing is answered with an error that clients do not retry and that `verify` reports.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import yaml
from vcr.cassette import Cassette
from vcr.record_mode import RecordMode
from vcr.request import Request as VcrRequest

from lanes.cassette_checks import check_ids
from lanes.errors import CassetteError
from lanes.event_frames import parse_lines
from lanes.expected import diff_json
from lanes.interaction import Interaction, canonical_json, check_fields, damaged, digest_of, request_view
from lanes.normalize import Json, Place
from lanes.piece_stream import PieceStream, cut, cut_at_events
from lanes.played_answer import MISS_STATUS, PlayedAnswer
from lanes.recorded_origin import weights_of
from lanes.redaction import Redactor

FORMAT_VERSION = 1
MAX_INTERACTIONS = 1000  # a story with more requests is two stories
SEARCHED = 50  # exchanges that are compared to find the nearest one; it only helps people


@dataclass(frozen=True, slots=True)
class CassetteFile:
    """A checked cassette.

    Shape: interactions in recorded order; digest covers the file's bytes.
    """

    path: Path
    name: str
    digest: str
    interactions: tuple[Interaction, ...]

    @property
    def bodies(self) -> list[Json]:
        """The bodies of the recorded requests."""
        return [each.view.get("body") if isinstance(each.view, dict) else None for each in self.interactions]


def load_cassette(
    path: Path, *, redactor: Redactor | None = None, keeps_transient: bool = False, name: str = ""
) -> CassetteFile:
    """Read and check a whole cassette.

    Shape: keeps_transient is for a claim about errors that pass by themselves; name is what messages and evidence call
    it, and where it would stand among the recordings of this project unless that is told.
    Raises: CassetteError with file, interaction and field. A damaged cassette is never an absent one.
    """
    redactor = redactor or Redactor()
    name = name or (f"cassettes/{path.parent.name}/{path.name}" if path.parent.name else path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CassetteError(
            f"cassette cannot be read: {error.strerror or error}",
            where=name,
            expected="a recording",
            fix=f"record it: {_command(name)}",
            code="CASSETTE_MISSING",
        ) from None
    try:
        text = data.decode("utf-8")
        document = json.loads(text) if text.startswith("{") else yaml.load(text, Loader=yaml.CSafeLoader)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        what = f"cannot be decoded: {str(error).splitlines()[0]}"
        raise damaged(name, what, code="CASSETTE_UNDECODABLE") from None
    check_fields(document, frozenset({"version", "interactions"}), name)
    if document["version"] != FORMAT_VERSION:
        raise damaged(name, f"version is {document['version']!r}", f"version {FORMAT_VERSION}")
    entries = document["interactions"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_INTERACTIONS:
        count = len(entries) if isinstance(entries, list) else "no list of"
        raise damaged(name, f"{count} interactions", f"1 to {MAX_INTERACTIONS}")
    interactions = tuple(
        Interaction(entry, f"{name}, interaction {index}", redactor, keeps_transient=keeps_transient)
        for index, entry in enumerate(entries, 1)
    )
    check_ids([interaction.origin for interaction in interactions], name)
    return CassetteFile(path=path, name=name, digest=digest_of(data), interactions=interactions)


class CassettePlayer(httpx.AsyncBaseTransport, httpx.BaseTransport):
    """Plays one cassette, once, in order; use it as an httpx transport.

    Shape: one player is one conversation with its own cursor; two players of one file do not know each other. places
    are this run's folders, which the recording holds as tokens. verify lists what is wrong: misses and left-overs.
    Limits: the recorded piece sizes are kept unless a token had to be put back; then the body is cut at event ends.
    """

    def __init__(
        self,
        path: Path,
        *,
        places: Sequence[Place] = (),
        redactor: Redactor | None = None,
        keeps_transient: bool = False,
        name: str = "",
    ) -> None:
        self._redactor = redactor or Redactor()
        self.file = load_cassette(path, redactor=self._redactor, keeps_transient=keeps_transient, name=name)
        self._places = tuple(places)
        self._cassette = _empty_cassette(path)
        self._cursor = 0
        self.misses: list[str] = []
        self.answers: list[PlayedAnswer] = []

    def reset(self) -> None:
        """Start the conversation again."""
        self._cassette = _empty_cassette(self.file.path)
        self._cursor = 0
        self.misses.clear()
        self.answers.clear()

    def verify(self) -> tuple[str, ...]:
        """What is wrong at the end: every miss, and every exchange that nobody asked for; empty when all is well."""
        left = range(self._cursor + 1, len(self.file.interactions) + 1)
        name = self.file.name
        unused = [f"{name}, interaction {number}: recorded and not asked for [CASSETTE_LEFT]" for number in left]
        return (*self.misses, *unused)

    def facts(self) -> dict[str, Json]:
        """The cassette as evidence shows it."""
        origins = [interaction.origin for interaction in self.file.interactions]
        dates = sorted(str(origin["recorded_at"]) for origin in origins if origin["recorded_at"] is not None)
        return {
            "id": self.file.name,
            "digest": self.file.digest,
            "oldest_recorded_at": dates[0] if dates else None,
            "recorded_model": origins[0]["reported_model"],
            "recorded_weights": weights_of(origins[0]),
            "recorded_host": origins[0]["host"],
            "recorded_commit": origins[0]["commit"],
            "entries": len(origins),
            "consumed": self._cassette.play_count,
            "unmatched": len(self.misses),
            "doubts": [
                f"interaction {number}: {each.doubt}"
                for number, each in enumerate(self.file.interactions, start=1)
                if each.doubt
            ],
            "live_proof_digest": origins[0]["live_proof_digest"],
        }

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request of an asynchronous client."""
        body = b"".join([part async for part in cast("httpx.AsyncByteStream", request.stream)])
        return self._answer(request, body)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request of a synchronous client."""
        return self._answer(request, b"".join(cast("httpx.SyncByteStream", request.stream)))

    def _answer(self, request: httpx.Request, body: bytes) -> httpx.Response:
        view = request_view(request.method, str(request.url), body, redactor=self._redactor, places=self._places)
        digest = digest_of(canonical_json(view))
        expected = self._next()
        if expected is None or expected.digest != digest:
            return self._miss(view, digest)
        self._cursor += 1
        return self._play(expected)

    def _next(self) -> Interaction | None:
        interactions = self.file.interactions
        return interactions[self._cursor] if self._cursor < len(interactions) else None

    def _play(self, interaction: Interaction) -> httpx.Response:
        """Hand the exchange that is due over to vcrpy, and have vcrpy play it."""
        request = VcrRequest(interaction.method, interaction.uri, b"", {})
        self._cassette.append(request, {"body": {"string": interaction.sent}})
        recorded: bytes = self._cassette.play_response(request)["body"]["string"]
        body, events = self._put_back(interaction, recorded)
        parts = cut(body, interaction.pieces) if body == recorded else events
        self._note(interaction.digest, digest_of(body), interaction.status, interaction)
        return httpx.Response(
            interaction.status,
            headers=[(name, value) for name, values in interaction.headers.items() for value in values],
            stream=PieceStream(parts),
        )

    def _put_back(self, interaction: Interaction, body: bytes) -> tuple[bytes, list[bytes]]:
        """The answer with this run's folders, and its events: a frame with another text has another checksum."""
        if interaction.frames is None:
            for place in self._places:
                body = body.replace(place.token.encode("utf-8"), place.spelling.encode("utf-8"))
            return body, cut_at_events(body)
        text = interaction.body
        for place in self._places:
            text = text.replace(place.token, place.spelling)
        frames = [frame.encoded() for frame in parse_lines(text) or ()]
        return b"".join(frames), frames

    def _miss(self, view: Json, digest: str) -> httpx.Response:
        message = self._miss_message(view)
        self.misses.append(message)
        self._note(digest, None, MISS_STATUS, None)
        error: Json = {"error": {"message": message, "type": "invalid_request_error", "code": "cassette_miss"}}
        return httpx.Response(
            MISS_STATUS,
            headers={"content-type": "application/json"},
            stream=PieceStream([canonical_json(error)]),
        )

    def _miss_message(self, view: Json) -> str:
        number = len(self.answers) + 1
        recorded = len(self.file.interactions)
        fix = f"  fix: undo the change, or record again: {_command(self.file.name)}"
        expected = self._next()
        if expected is None:
            return (
                f"{self.file.name}: request {number} arrived, {recorded} interactions are recorded "
                f"[CASSETTE_EXHAUSTED]\n{fix}"
            )
        lines = diff_json(expected.view, view)
        digests = [interaction.digest for interaction in self.file.interactions]
        digest = digest_of(canonical_json(view))
        if digest in digests:
            lines.insert(0, f"it equals interaction {digests.index(digest) + 1}: the order changed")
        lines = [*self._nearer(view, len(lines)), *lines]
        body = "\n".join(f"  {line}" for line in lines[:8])
        code = "CASSETTE_OTHER_MODEL" if _model_of(expected.view) != _model_of(view) else "CASSETTE_MISS"
        return (
            f"{self.file.name}, interaction {self._cursor + 1}: sent request differs from the recorded one "
            f"[{code}]\n{body}\n{fix}"
        )

    def _nearer(self, view: Json, differences: int) -> list[str]:
        """The exchange still to come that this request resembles more than the next one, if there is such."""
        following = self.file.interactions[self._cursor + 1 : self._cursor + 1 + SEARCHED]
        found = [(diff_json(each.view, view), number) for number, each in enumerate(following, self._cursor + 2)]
        lines, number = min(found, key=lambda each: len(each[0]), default=([], 0))
        if not lines or len(lines) >= differences:
            return []
        return [f"nearer is interaction {number}: {lines[0]}"]

    def _note(self, request: str, answer: str | None, status: int, interaction: Interaction | None) -> None:
        origin = interaction.origin if interaction else {}
        self.answers.append(
            PlayedAnswer(
                ordinal=len(self.answers) + 1,
                request_digest=request,
                answer_digest=answer,
                status=status,
                answer_class=interaction.answer_class if interaction else "scripted",
                reported_model=cast("str | None", origin.get("reported_model")),
                provider_id=cast("str | None", origin.get("provider_id")),
                live_proof_digest=cast("str | None", origin.get("live_proof_digest")),
            )
        )


class _HandedOver:
    """vcrpy's persister of a cassette that begins empty: its exchanges are handed over when they are due."""

    @staticmethod
    def load_cassette(_path: str, serializer: object) -> tuple[list[VcrRequest], list[object]]:
        """Nothing yet; the file was read and checked already."""
        del serializer
        return [], []


def _empty_cassette(path: Path) -> Cassette:
    return Cassette.load(path=str(path), record_mode=RecordMode.NONE, persister=_HandedOver)


def _command(name: str) -> str:
    """What records a cassette anew: the stories of this project have a command of their own, others go by the proxy."""
    folder, _slash, file = name.rpartition("/")
    if folder.startswith("cassettes/"):
        return f"tox -e record -- {file.partition('.')[0]}   (needs a key)"
    return "mock-provider record --upstream URL --out recorded -- COMMAND"


def _model_of(view: Json) -> Json:
    body = view.get("body") if isinstance(view, dict) else None
    return body.get("model") if isinstance(body, dict) else None
