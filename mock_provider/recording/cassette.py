"""Exchanges as a cassette: the text of a file that the replay lane plays.

Room: pure; the recording comes in. Written independently of the lanes to the format that docs/mock-provider.md
describes: vcrpy's, with the sizes and offsets of the pieces and an origin for each answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from mock_provider.json_values import Json, JsonObject, canonical_json
from mock_provider.recording.cleaning import KEPT_IN_CASSETTES, is_loopback
from mock_provider.recording.exchanges import Clean

FORMAT_VERSION = 1
MAX_INTERACTIONS = 50  # of one cassette; a longer conversation is more than one file
RECORDER = "mock_provider.record/1"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of a whole recording. Shape: recorded_at is date and time in UTC, None for one on loopback."""

    host: str
    recorded_at: str | None


def compose_cassettes(exchanges: Sequence[Clean], facts: Facts) -> tuple[str, ...]:
    """The texts of the cassettes, in order: one for every MAX_INTERACTIONS exchanges."""
    parts = [exchanges[at : at + MAX_INTERACTIONS] for at in range(0, len(exchanges), MAX_INTERACTIONS)]
    return tuple(_compose(part, facts) for part in parts)


def _compose(exchanges: Sequence[Clean], facts: Facts) -> str:
    document: JsonObject = {
        "interactions": [_interaction(exchange, facts) for exchange in exchanges],
        "version": FORMAT_VERSION,
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, allow_unicode=True)
    return text


def _interaction(exchange: Clean, facts: Facts) -> JsonObject:
    reported = _reported(exchange.answer)
    origin: JsonObject = {
        "class": "scripted",  # a proxy cannot prove who answered; only a live lane can
        "recorded_at": facts.recorded_at,
        "host": "loopback" if is_loopback(facts.host) else facts.host,
        "requested_model": _text(_json(exchange.body), "model"),
        "reported_model": reported.get("model"),
        "provider_id": reported.get("id"),
        "commit": None,
        "recorder": RECORDER,
        "live_proof_digest": None,
    }
    origin["seal"] = _digest({"request": _digest(_view(exchange)), "body": exchange.answer, "origin": {**origin}})
    pieces: list[Json] = [[offset, size] for offset, size in exchange.pieces]
    return {
        "request": {
            "body": exchange.body,
            "headers": {name: list(values) for name, values in exchange.headers.items() if name in KEPT_IN_CASSETTES},
            "method": exchange.method,
            "uri": exchange.uri,
        },
        "response": {
            "body": {"frames" if exchange.has_frames else "string": exchange.answer},
            "headers": {name: list(values) for name, values in exchange.answer_headers.items()},
            "origin": origin,
            "pieces": pieces,
            "status": {"code": exchange.status, "message": exchange.reason},
        },
    }


def _view(exchange: Clean) -> JsonObject:
    """What a request is matched by: method, path, query and body."""
    parts = urlsplit(exchange.uri)
    query: list[Json] = [[name, value] for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True))]
    body = _json(exchange.body)
    return {
        "method": exchange.method.upper(),
        "path": unquote(parts.path),
        "query": query,
        "body": exchange.body if body is None else body,
    }


def _digest(value: Json) -> str:
    return f"sha256:{hashlib.sha256(canonical_json(value).encode('ascii')).hexdigest()}"


def _json(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value


def _text(value: Json, key: str) -> str | None:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _reported(answer: str) -> dict[str, str]:
    """The model and the id an answer gives itself, from its JSON or from the first event that has them."""
    found: dict[str, str] = {}
    for spelled in (answer, *(line[5:] for line in answer.split("\n") if line.startswith("data:"))):
        value = _json(spelled)
        for key in ("model", "id"):
            told = _text(value, key)
            if told is not None:
                found.setdefault(key, told)
    return found
