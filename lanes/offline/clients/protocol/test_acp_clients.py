"""Published clients of the Agent Client Protocol drive the installed program: every client, every journey."""

from __future__ import annotations

import base64
import importlib.util
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lanes.channels import Channels
from lanes.offline.clients.protocol.acp_schema import deviations
from lanes.offline.clients.protocol.foreign import CLIENTS, Foreign, Journey
from mock_provider.json_values import JsonObject
from mock_provider.replies import conversation, script, step, text, tool_call

ACP = [client for client in CLIENTS if client.wire == "acp"]
LONG_WORK = tool_call("shell", {"command": "sleep 60"})


@dataclass(frozen=True, slots=True)
class Told:
    """One journey: what the model says, what has to come of it, and the files that are there at the end."""

    play: JsonObject
    said: Mapping[str, Any]
    flags: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def _write(name: str) -> JsonObject:
    return step(tool_call("write_file", {"path": name, "content": name}), expect={"last_user": f"Write {name}."})


_NOTHING = script(step("never said", optional=True))

JOURNEYS = {
    "initialize": Told(
        _NOTHING, {"version": 1, "agent": "five-lanes-acp", "image": True, "audio": False, "load": False}
    ),
    "new": Told(_NOTHING, {"are_two": True, "refused": -32602}),
    "prompt": Told(
        script(step("Hello. "), step("And again.", expect={"any_message": "Hello. "})),
        {"stops": ["end_turn", "end_turn"], "words": "Hello. And again."},
    ),
    "image prompt": Told(
        script(step("A dot.", expect={"json_path": {"messages[-1].content[1].type": "image_url"}})),
        {"stop": "end_turn", "words": "A dot."},
    ),
    "cancel": Told(
        script(step(text("I work."), LONG_WORK), step("Still here.", expect={"last_user": "Still there?"})),
        {"stop": "cancelled", "words": "I work.", "after": "end_turn", "later": "Still here."},
    ),
    "permission": Told(
        script(
            _write("one"),
            step("Written."),
            _write("two"),
            step("Not written.", expect={"tool_result": {"contains": "did not allow"}}),
            _write("three"),
            step("Not written either.", expect={"tool_result": {"contains": "cancelled"}}),
        ),
        {"stops": ["end_turn"] * 3, "asked": ["write_file: allow_once reject_once"] * 3},
        flags=("--ask",),
        files={"one": "one"},
    ),
    "permission withdrawn": Told(
        script(_write("one"), step("Still here.", expect={"last_user": "Still there?"})),
        {
            "stop": "cancelled",
            "asked": ["write_file: allow_once reject_once"],
            "after": "end_turn",
            "later": "Still here.",
        },
        flags=("--ask",),
    ),
    "two sessions at once": Told(
        script(
            conversations={
                "left": conversation(step(text("I work."), LONG_WORK), when={"user_contains": "Work"}),
                "right": conversation(step("Beside."), when={"user_contains": "beside"}),
            }
        ),
        {"right": ["end_turn", "Beside."], "left": ["cancelled", "I work."]},
    ),
}


def dot() -> str:
    """A picture of one dot as PNG, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"\0\xff\xff\xff"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")).decode("ascii")


@pytest.mark.claim("acp.published-clients")
@pytest.mark.parametrize("journey", JOURNEYS)
@pytest.mark.parametrize("client", ACP, ids=lambda client: f"acp {client.name}")
def test_AC34_a_published_client_goes_its_journey_and_every_frame_is_of_the_schema(
    client: Foreign, journey: str, channels: Channels, tmp_path: Path
) -> None:
    told = JOURNEYS[journey]
    base_url = channels.loopback(told.play).base_url("openai_chat")

    ride = Journey(tmp_path, base_url, told.flags, more={"picture": dot()}).ride(client, journey)

    assert ride.said == told.said
    assert (ride.impurities(), ride.exits) == ([], [0])
    assert {path.name: path.read_text("utf-8") for path in ride.workspace.iterdir()} == told.files
    if importlib.util.find_spec("acp") is not None:  # the schema comes with the Python client
        (sent,), (received,) = ride.frames(sent=True), ride.frames()
        assert deviations(sent, received) == []
