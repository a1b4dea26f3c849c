"""Published clients of the SDK wire drive the installed program: every client, every journey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lanes.channels import Channels
from lanes.offline.clients.protocol.foreign import CLIENTS, Foreign, Journey, Ride
from mock_provider.json_values import JsonObject
from mock_provider.replies import conversation, script, stall, step, text, tool_call

SDK = [client for client in CLIENTS if client.wire == "sdk"]
NOTE: JsonObject = {"path": "note.txt", "content": "noted\n"}


@dataclass(frozen=True, slots=True)
class Told:
    """One journey: what the model says, and what has to come of it."""

    play: JsonObject
    said: Mapping[str, Any]
    exits: tuple[int, ...] = (0,)
    files: Mapping[str, str] = field(default_factory=dict)


JOURNEYS = {
    "hello": Told(
        script(step("Hello.")),
        {"answer": "Hello.", "reason": "completed", "methods": ["session.event", "session.status"]},
    ),
    "tools": Told(
        script(
            step(text("I write it."), tool_call("write_file", NOTE), expect={"tools": ["write_file"]}),
            step("It is written.", expect={"tool_result": {"contains": "note.txt"}}),
        ),
        {"answer": "It is written.", "reason": "completed", "has_tool": True},
        files={"note.txt": "noted\n"},
    ),
    "several prompts at once": Told(
        script(
            conversations={
                "line": conversation(
                    step("One.", expect={"last_user": "Number 1."}),
                    step("Two.", expect={"last_user": "Number 2."}),
                    step("Three.", expect={"last_user": "Number 3."}),
                    when={"user_contains": "Number"},
                ),
                "beside": conversation(step("Beside."), when={"user_contains": "beside"}),
            }
        ),
        {"answers": ["One.", "Two.", "Three."], "are_receipts": True, "beside": "Beside."},
    ),
    "resume": Told(
        script(
            step("The word is elm."),
            step("It was elm.", expect={"any_message": "The word is elm.", "last_user": "What was the word?"}),
        ),
        {"answer": "It was elm.", "reason": "completed", "goes_on": True},
        exits=(0, 0),
    ),
    "death of the process": Told(
        script(
            step(text("Half"), stall(), expect={"last_user": "Begin."}),
            step("Here again.", expect={"any_message": "Begin.", "last_user": "Go on."}),
        ),
        {"failed": "TransportClosedError", "answer": "Here again.", "reason": "completed"},
        exits=(-9, 0),
    ),
    "shutdown in a turn": Told(
        script(step(text("Half"), stall())),
        {"reason": "aborted", "statuses": ["running", "idle"]},
    ),
}


def facts_of(ride: Ride, expected: Mapping[str, Any]) -> dict[str, Any]:
    said = dict(ride.said)
    said["has_tool"] = "tool/result" in said.get("kinds", ())
    return {name: said.get(name) for name in expected}


@pytest.mark.claim("sdk.published-clients")
@pytest.mark.parametrize("journey", JOURNEYS)
@pytest.mark.parametrize("client", SDK, ids=lambda client: f"sdk {client.name}")
def test_SV22_a_published_client_goes_its_journey(
    client: Foreign, journey: str, channels: Channels, tmp_path: Path
) -> None:
    told = JOURNEYS[journey]
    base_url = channels.loopback(told.play).base_url("openai_chat")

    ride = Journey(tmp_path, base_url).ride(client, journey)

    assert facts_of(ride, told.said) == told.said
    assert (ride.impurities(), ride.exits) == ([], list(told.exits))
    assert {name: (ride.workspace / name).read_text("utf-8") for name in told.files} == told.files
