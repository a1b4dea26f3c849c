"""Witnesses: how an answer really came about, as a note that no test writes.

Room: channels and children come in. It is given what the mock provider or a player saw, and knows neither of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from lanes.normalize import Place, places_of, replace_places
from lanes.policy import Channel
from lanes.record import Json, JsonObject, canonical_json, digest_bytes

_WHOLE_DIGEST = re.compile(r"[0-9a-f]{64}")


class PlayedAnswer(Protocol):
    """One answer of a recording, as its player tells it."""

    @property
    def request_digest(self) -> str: ...
    @property
    def answer_digest(self) -> str | None: ...
    @property
    def status(self) -> int: ...
    @property
    def answer_class(self) -> str: ...
    @property
    def reported_model(self) -> str | None: ...
    @property
    def provider_id(self) -> str | None: ...
    @property
    def live_proof_digest(self) -> str | None: ...


def item_places(folder: Path) -> tuple[Place, ...]:
    """Every spelling of an item's own folder, so that the same request has the same digest in every run."""
    return places_of({"<item>": sorted({str(folder), str(folder.resolve())})})


def digest_request(body: Json, places: Sequence[Place]) -> str:
    """The digest of a request body, with places as tokens."""
    text = replace_places(canonical_json(body).decode("ascii"), places)
    return digest_bytes(text.encode("ascii", "surrogatepass"))


def scripted_notes(
    entries: Iterable[Mapping[str, Json]], channel: Channel, places: Sequence[Place]
) -> list[dict[str, Json]]:
    """The answer notes of a mock provider's journal: one for each request that a step of the script answered."""
    return [
        {
            "channel": channel,
            "class": "scripted",
            "request_digest": digest_request(entry["body"], places),
            "answer_digest": _digest_spelling(entry["reply_digest"]),
            "status": entry["status"],
            "finished": entry["end"] == "complete",
            "conversation": entry["conversation"],
            "step": entry["step"],
        }
        for entry in entries
        if entry["step"] is not None
    ]


def played_notes(answers: Iterable[PlayedAnswer], channel: Channel) -> list[dict[str, Json]]:
    """The answer notes of a recording's player, each with the proof of its own exchange."""
    return [
        {
            "channel": channel,
            "class": answer.answer_class,
            "request_digest": answer.request_digest,
            "answer_digest": answer.answer_digest,
            "status": answer.status,
            "reported_model": answer.reported_model,
            "provider_id": answer.provider_id,
            "live_proof_digest": answer.live_proof_digest if answer.answer_class == "recorded" else None,
        }
        for answer in answers
    ]


def script_facts(name: str, used: int, left: int, unmatched: int) -> JsonObject:
    """What a script was and how much of it was used."""
    return {"script_id": name, "entries": used + left, "consumed": used, "unmatched": unmatched}


def append_notes(path: Path, notes: Iterable[Mapping[str, Json]], token: str) -> None:
    """Write notes for the item whose token this is; its process takes them over."""
    with path.open("a", encoding="utf-8") as file:
        for note in notes:
            file.write(json.dumps({**note, "token": token}) + "\n")


def _digest_spelling(value: Json) -> Json:
    return f"sha256:{value}" if isinstance(value, str) and _WHOLE_DIGEST.fullmatch(value) else value
