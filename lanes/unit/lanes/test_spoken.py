"""What an answer says about itself, in either dialect, streamed or in one piece."""

from __future__ import annotations

import json

import pytest

from lanes.record import Json
from lanes.spoken import Spoken, parse_object, read_spoken

CHAT = [
    {"id": "chatcmpl-1", "model": "m", "choices": [{"delta": {"content": "the "}}]},
    {"id": "chatcmpl-1", "choices": [{"delta": {"content": "token"}, "finish_reason": "stop"}]},
    {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
]
MESSAGES = [
    {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "the "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "token"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


def streamed(events: list[dict[str, Json]], *, end: str = "") -> bytes:
    lines = [f"event: {each['type']}\n" if "type" in each else "" for each in events]
    told = [f"{line}data: {json.dumps(each)}\n\n" for line, each in zip(lines, events, strict=True)]
    return ("".join(told) + end).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            streamed(CHAT, end="data: [DONE]\n\n"),
            Spoken("chatcmpl-1", "m", {"prompt_tokens": 5, "completion_tokens": 2}, "the token", is_whole=True),
            id="chat-streamed",
        ),
        pytest.param(
            streamed(MESSAGES),
            Spoken("msg_1", "m", {"input_tokens": 5, "output_tokens": 2}, "the token", is_whole=True),
            id="messages-streamed",
        ),
        pytest.param(
            streamed(MESSAGES[:4]),
            Spoken("msg_1", "m", {"input_tokens": 5, "output_tokens": 1}, "the token", is_whole=False),
            id="live-22-messages-cut",
        ),
        pytest.param(
            json.dumps(
                {
                    "id": "msg_1",
                    "model": "m",
                    "content": [{"type": "text", "text": "the token"}],
                    "stop_reason": "end_turn",
                    "usage": {"input_tokens": 5, "output_tokens": 2},
                }
            ).encode(),
            Spoken("msg_1", "m", {"input_tokens": 5, "output_tokens": 2}, "the token", is_whole=True),
            id="messages-in-one-piece",
        ),
        pytest.param(
            json.dumps(
                {
                    "id": "chatcmpl-1",
                    "model": "m",
                    "choices": [{"message": {"content": "the token"}, "finish_reason": "stop"}],
                }
            ).encode(),
            Spoken("chatcmpl-1", "m", None, "the token", is_whole=True),
            id="chat-in-one-piece",
        ),
        pytest.param(b"<html>gateway</html>", Spoken(), id="no-answer-at-all"),
        pytest.param(b'data: [1]\n\ndata: {"choices": 7}\n\n', Spoken(), id="another-form"),
        pytest.param(b"", Spoken(), id="nothing"),
    ],
)
def test_an_answer_is_read_in_either_dialect(body: bytes, expected: Spoken) -> None:
    assert read_spoken(body) == expected


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000], ids=["empty", "list", "cut", "bytes", "deep"]
)
def test_what_is_no_object_says_nothing(data: bytes) -> None:
    assert parse_object(data) == {}
