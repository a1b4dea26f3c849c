"""Cassettes made by hand for tests: whole in every field, and scripted, because nobody recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def made_document(count: int = 5) -> Document:
    """A cassette of that many exchanges, as it stands in its file."""
    return {"version": 1, "interactions": [_exchange(number) for number in range(1, count + 1)]}


def write_cassette(folder: Path, document: Document, name: str = "made.yaml") -> Path:
    """Store a cassette in a folder of its dialect."""
    path = folder / "openai_chat" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _exchange(number: int) -> Document:
    body = json.dumps({"id": f"answer-{number}", "model": "m-small", "choices": []})
    asked = {"model": "m-small", "messages": [{"role": "user", "content": f"question {number}"}]}
    origin = {
        "class": "scripted",
        "recorded_at": None,
        "host": "loopback",
        "requested_model": "m-small",
        "reported_model": "m-small",
        "provider_id": f"answer-{number}",
        "commit": None,
        "recorder": "lanes.recording/1",
        "live_proof_digest": None,
        "seal": "",
    }
    return {
        "request": {
            "method": "POST",
            "uri": "http://127.0.0.1/v1/chat/completions",
            "body": json.dumps(asked),
            "headers": {},
        },
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"content-type": ["application/json"]},
            "body": {"string": body},
            "pieces": [[0, len(body)]],
            "origin": origin,
        },
    }
