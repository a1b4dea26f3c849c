"""What is wrong with a prompt or a frame is refused by the real ACP server, which serves on and stores nothing."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.wire import RealServer, is_answer
from mock_provider.replies import script, step

MIB = 1 << 20
ONE_PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def png() -> bytes:
    """A whole picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"\0\xff\xff\xff"))
    return b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")


def huge() -> bytes:
    """A picture of 64 MiB."""
    whole = png()
    return whole + b"\0" * (64 * MIB - len(whole))


def animated_bomb() -> bytes:
    """A few hundred bytes of a moving picture whose frames together are more pixels than anybody may ask to decode."""
    head, frame, end = ONE_PIXEL[:19], ONE_PIXEL[19:-1], ONE_PIXEL[-1:]
    return head[:6] + struct.pack("<HH", 6000, 6000) + head[10:] + frame * 8 + end


PICTURES: dict[str, tuple[Callable[[], bytes], str]] = {
    "64 MiB": (huge, "image/png"),
    "animated bomb": (animated_bomb, "image/gif"),
    "truncated PNG": (lambda: png()[:-20], "image/png"),
    "another type than it says": (png, "image/gif"),
    "empty": (bytes, "image/png"),
    "no picture": (lambda: b"plain words", "image/webp"),
}


def stored(server: RealServer) -> list[Path]:
    """The objects in the store of pictures."""
    return [path for path in (server.sessions / ".attachments").rglob("*") if path.is_file() and len(path.name) == 64]


def refused(server: RealServer, session: str, picture: bytes, media_type: str) -> tuple[int, str]:
    """How a prompt with that picture is answered: its code, and how its words begin."""
    block = {"type": "image", "mimeType": media_type, "data": "<data>"}
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "look"}, block]}
    identity = server.next_id()
    before, after = server.frame("session/prompt", params, identity).split(b"<data>")
    server.write(before)
    server.write(base64.b64encode(picture))
    server.write(after)
    answer = server.answer(identity)
    return answer["code"], answer["message"].partition(": ")[0]


@pytest.mark.claim("wire.real-servers")
def test_AC10_pictures_that_are_none_are_refused_and_the_server_goes_on_with_an_empty_store(
    channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(step("Fine.", expect={"last_user": "only words"})))
    with RealServer("acp", tmp_path, mock.base_url("openai_chat")) as server:
        assert server.hello()["agentCapabilities"]["promptCapabilities"]["image"] is True
        session = server.open_session()
        found = {name: refused(server, session, make(), of) for name, (make, of) in PICTURES.items()}
        server.answer(server.prompt(session, "only words"))
        said, objects, held = server.texts(), stored(server), server.memory_peak_bytes
        assert server.leave() == 0

    assert found == dict.fromkeys(PICTURES, (-32602, "Invalid params"))
    assert (said, objects) == (["Fine."], [])
    assert held < 1000 * MIB, held


@pytest.mark.claim("wire.real-servers")
def test_AC33_negative_ids_and_unknown_sessions_are_answered_as_what_they_are(
    channels: Channels, tmp_path: Path
) -> None:
    base_url = channels.loopback(script(step("never asked", optional=True))).base_url("openai_chat")
    with RealServer("acp", tmp_path, base_url) as server:
        for identity in (-1, -9_007_199_254_740_993, 0):
            server.write(server.frame("initialize", {"protocolVersion": 1}, identity))
            assert server.answer(identity)["protocolVersion"] == 1
        code = server.answer(server.prompt("nobody", "hi"))["code"]
        server.write(server.frame("session/cancel", {"sessionId": "nobody"}))
        assert (code, server.ask("no/such/method", {})["code"]) == (-32602, -32601)
        assert (server.leave(), stored(server)) == (0, [])
    assert sum(is_answer(frame, -1) for frame in server.frames) == 1
