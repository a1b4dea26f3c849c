"""One recorded exchange: its fields checked, what a request is matched by, and who gave the answer.

Room: cassette and the recorder come in. It knows HTTP addresses and nothing of the product.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

import httpx

from lanes.cassette_checks import check_model, check_status
from lanes.errors import CassetteError
from lanes.event_frames import EventFrame, parse_lines
from lanes.normalize import Json, Place, replace_places
from lanes.recorded_origin import PROOF_FIELD, origin_problem
from lanes.redaction import Redactor

REQUEST_FIELDS = frozenset({"method", "uri", "body", "headers"})
RESPONSE_FIELDS = frozenset({"status", "headers", "body", "pieces", "origin"})
ORIGIN_FIELDS = frozenset(
    {
        "class", "recorded_at", "host", "requested_model", "reported_model", "provider_id", "commit", "recorder",
        "live_proof_digest", "seal",
    }
)  # fmt: skip


def canonical_json(value: Json) -> bytes:
    """One spelling for one value; 1, 1.0 and true stay three values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest_of(data: bytes) -> str:
    """A SHA-256 digest as it is written in evidence."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def request_view(method: str, url: str, body: bytes, *, redactor: Redactor, places: Sequence[Place]) -> Json:
    """What a request is matched by: method, path, and the body without secrets and without this run's folders."""
    cleaned_url = httpx.URL(redactor.url(url))
    text = replace_places(body.decode("utf-8", errors="backslashreplace"), places)
    try:
        parsed: Json = json.loads(text, object_pairs_hook=_pairs)
    except ValueError:
        parsed = text
    query = cast("Json", sorted([name, value] for name, value in cleaned_url.params.multi_items()))
    return {"method": method.upper(), "path": cleaned_url.path, "query": query, "body": redactor.json(parsed)}


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object; a key given twice makes it another request, so it may not vanish."""
    found = dict(pairs)
    if len(found) != len(pairs):
        found["duplicate keys"] = [[key, value] for key, value in pairs]
    return found


class Interaction:
    """One recorded exchange as it stands in the file, its fields checked.

    Shape: body is the text of the answer, sent what went over the wire: the same, or the frames that its lines spell.
    view is what a request is matched by, and doubt says why an answer that calls itself a model's counts as
    scripted, empty for any other. Both are worked out when they are first asked for: nobody plays a whole file to look
    at one exchange.
    Raises: CassetteError with place and field.
    """

    def __init__(self, entry: object, where: str, redactor: Redactor, *, keeps_transient: bool) -> None:
        check_fields(entry, frozenset({"request", "response"}), where)
        parts = cast("dict[str, dict[str, Json]]", entry)
        request, response = parts["request"], parts["response"]
        check_fields(request, REQUEST_FIELDS, f"{where}, request")
        check_fields(response, RESPONSE_FIELDS, f"{where}, response")
        told = response["origin"]
        proven = {PROOF_FIELD} if isinstance(told, dict) and PROOF_FIELD in told else set()
        check_fields(told, ORIGIN_FIELDS | proven, f"{where}, response.origin")
        self.origin: Mapping[str, Json] = cast("dict[str, Json]", told)
        self.body, self.frames = _body_text(response["body"], f"{where}, response.body")
        self.pieces = _piece_sizes(response["pieces"], len(self.sent), f"{where}, response.pieces")
        if not isinstance(request["body"], str) or not isinstance(request["uri"], str):
            raise damaged(f"{where}, request", "body or uri is not text", "texts")
        check_status(response["status"], where, keeps_transient=keeps_transient)
        check_model(self.origin, _parsed(request["body"]), where)
        self.status = cast("dict[str, int]", response["status"])["code"]
        self.headers = _header_lists(response["headers"], f"{where}, response.headers")
        self._request = request
        self._redactor = redactor

    @property
    def sent(self) -> bytes:
        """The bytes of the answer."""
        if self.frames is None:
            return self.body.encode("utf-8")
        return b"".join(frame.encoded() for frame in self.frames)

    @property
    def method(self) -> str:
        """The method of the request."""
        return str(self._request["method"])

    @property
    def uri(self) -> str:
        """The address of the request, as it was recorded."""
        return str(self._request["uri"])

    @property
    def header_names(self) -> tuple[str, ...]:
        """The names of the answer's headers."""
        return tuple(self.headers)

    @cached_property
    def view(self) -> Json:
        """What a request has to be to get this answer."""
        body = str(self._request["body"]).encode("utf-8")
        return request_view(self.method, self.uri, body, redactor=self._redactor, places=())

    @cached_property
    def digest(self) -> str:
        """The digest of the view."""
        return digest_of(canonical_json(self.view))

    @cached_property
    def doubt(self) -> str:
        """Why an answer that calls itself a model's is none."""
        origin = self.origin
        if origin["class"] != "live":
            return ""
        sealed = origin["seal"] == seal_of(self.digest, self.body, origin)
        return origin_problem(origin) if sealed else "it was altered after it was recorded"

    @property
    def answer_class(self) -> str:
        """Who gave the answer: `recorded` from a model, or `scripted`."""
        return "recorded" if self.origin["class"] == "live" and not self.doubt else "scripted"


def seal_of(request_digest: str, body: str, origin: Mapping[str, Json]) -> str:
    """The digest that ties an origin to its exchange: one byte changed by hand and the entry counts as scripted."""
    facts: dict[str, Json] = {key: value for key, value in origin.items() if key != "seal"}
    return digest_of(canonical_json({"request": request_digest, "body": body, "origin": facts}))


def check_fields(value: object, wanted: frozenset[str], where: str) -> None:
    """Check that a value is an object with exactly these fields.

    Raises: CassetteError with code CASSETTE_FIELD.
    """
    if isinstance(value, dict) and value.keys() == wanted:
        return
    expected = ", ".join(sorted(wanted))
    if not isinstance(value, dict):
        raise damaged(where, "is not an object", f"an object with {expected}", code="CASSETTE_FIELD")
    unknown = sorted(str(key) for key in set(value) - wanted)
    missing = sorted(wanted - set(value))
    what = f"unknown field {unknown[0]!r}" if unknown else f"field {missing[0]!r} is missing"
    raise damaged(where, what, f"exactly {expected}", code="CASSETTE_FIELD")


def damaged(
    where: str, what: str, expected: str = "the file as it was recorded", code: str = "CASSETTE_DAMAGED"
) -> CassetteError:
    """The error about a cassette that is not as it was recorded."""
    return CassetteError(what, where=where, expected=expected, fix="restore the file, or record it again", code=code)


def _body_text(body: Json, where: str) -> tuple[str, tuple[EventFrame, ...] | None]:
    """The text of a body, and the frames that it spells where it is a binary event stream."""
    text = next(iter(body.values())) if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(body, dict) or not isinstance(text, str) or set(body) - {"string", "frames"}:
        raise damaged(where, "is not text", "an object with the text under string, or the lines under frames")
    if "string" in body:
        return text, None
    frames = parse_lines(text)
    if frames is None:
        raise damaged(where, "holds a line that is no frame", '{"headers": {…}, "payload": …} in each line')
    return text, frames


def _piece_sizes(pieces: Json, whole: int, where: str) -> tuple[int, ...]:
    listed = pieces if isinstance(pieces, list) else []
    sizes = [piece[1] for piece in listed if isinstance(piece, list) and len(piece) == 2]
    if not all(isinstance(size, int) for size in sizes) or sum(cast("list[int]", sizes)) != whole:
        raise damaged(where, f"do not add up to the body's {whole} bytes", "[[ms, bytes], …]")
    return tuple(cast("list[int]", sizes))


def _header_lists(headers: Json, where: str) -> Mapping[str, list[str]]:
    if not isinstance(headers, dict) or not all(isinstance(values, list) for values in headers.values()):
        raise damaged(where, "are no lists by name", "an object from name to values")
    return cast("dict[str, list[str]]", headers)


def _parsed(body: str) -> Json:
    try:
        value: Json = json.loads(body)
    except ValueError:
        return None
    return value
