"""One story through every surface of the installed program: the same answer, the same world and the same log."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.client import HarnessClient, Launch
from harness.model.messages import JsonObject
from harness.transport.rpc import Peer
from lanes.channels import Channels
from lanes.normalize import Json
from lanes.offline.surfaces.peers import talk_to_server
from lanes.offline.surfaces.place import MODEL, PROVIDER, Place, lay_out
from lanes.program import console_command
from lanes.scenario import Run, find_scenario
from lanes.story_log import check_log
from lanes.world import check_world

STORIES = ("fix-test", "parallel-tools")


def installed(arguments: Sequence[str]) -> list[str]:
    return [*console_command("harness"), *arguments]


async def headless(place: Place, task: str) -> str:
    done = await asyncio.to_thread(place.program().run, Run(task))
    assert done.exit == 0, done.stderr
    return done.stdout.removesuffix("\n")


async def client(place: Place, task: str) -> str:
    launch = Launch(
        cwd=place.workspace,
        provider=PROVIDER,
        model=MODEL,
        command=place.command(["sdk"]),
        environment=place.environment(),
    )
    async with HarnessClient(launch) as open_client:
        return (await open_client.run(task, session_id="story", timeout_s=60)).final_response


async def sdk_wire(place: Place, task: str) -> str:
    """The SDK server by hand: no client of ours between the test and the frames."""
    idle = asyncio.Event()
    texts: list[str] = []

    def hear(method: str, params: JsonObject) -> None:
        event = params.get("event")
        if isinstance(event, Mapping) and event.get("type") == "assistant/message":
            texts.append(_text_of(event))
        if method == "session.status" and params.get("status") == "idle":
            idle.set()

    async def talk(peer: Peer) -> None:
        await peer.request("initialize", {"cwd": str(place.workspace), "provider": PROVIDER, "model": MODEL})
        blocks = ({"type": "text", "text": task},)
        await peer.request("session/prompt", {"sessionId": "story", "contentBlocks": blocks})
        await asyncio.wait_for(idle.wait(), 60)
        await peer.request("shutdown")

    await _served(place, ["sdk"], hear, talk)
    return [text for text in texts if text][-1]


async def acp(place: Place, task: str) -> str:
    texts: list[str] = []

    def hear(method: str, params: JsonObject) -> None:
        update = params.get("update")
        content = update.get("content") if isinstance(update, Mapping) else None
        if isinstance(content, Mapping):
            texts.append(str(content.get("text")))

    async def talk(peer: Peer) -> None:
        await peer.request("initialize", {"protocolVersion": 1})
        made = await peer.request("session/new", {"cwd": str(place.workspace), "mcpServers": ()})
        assert isinstance(made, Mapping)
        blocks = ({"type": "text", "text": task},)
        answer = await peer.request("session/prompt", {"sessionId": made["sessionId"], "prompt": blocks}, timeout_s=60)
        assert answer == {"stopReason": "end_turn", "_meta": {"ending": "completed"}}

    await _served(place, ["acp", "--provider", PROVIDER, "--model", MODEL], hear, talk)
    return texts[-1]


async def _served(
    place: Place,
    arguments: list[str],
    hear: Callable[[str, JsonObject], None],
    talk: Callable[[Peer], Awaitable[None]],
) -> None:
    record = place.folder / "record"
    command = [sys.executable, "-m", "lanes.tap", str(record), *place.command(arguments)]
    await talk_to_server(command, place.workspace, place.environment(), hear, talk)
    assert impurities(Path(f"{record}.out")) == []


def impurities(written: Path) -> list[bytes]:
    """The lines of a server's standard output that are no frame."""
    return [line for line in written.read_bytes().split(b"\n")[:-1] if json.loads(line).get("jsonrpc") != "2.0"]


def _text_of(event: Mapping[str, object]) -> str:
    data = event["data"]
    assert isinstance(data, Mapping)
    return "".join(str(block.get("text", "")) for block in data["message"]["content"] if block["type"] == "text")


SURFACES = {"headless": headless, "sdk": sdk_wire, "client": client, "acp": acp}


async def played(name: str, story: str, channels: Channels, folder: Path) -> tuple[str, list[Json]]:
    """The answer and the log of a story through one surface, after its world and its log were found as it is told."""
    scenario = find_scenario(story)
    (run,) = scenario.runs
    workspace = lay_out(scenario, folder)
    place = Place(folder, channels.loopback(scenario.script).base_url("openai_chat"), installed)
    answer = await SURFACES[name](place, run.task)
    rows = place.rows()
    assert (check_world(scenario.world, workspace), check_log(scenario.log, rows)) == ([], [])
    return answer, rows


@pytest.mark.claim("surfaces.one-loop")
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("name", SURFACES)
async def test_a_story_through_each_surface_is_as_it_is_told_and_as_through_headless(
    name: str, story: str, channels: Channels, tmp_path: Path
) -> None:
    assert await played(name, story, channels, tmp_path / "own") == await played(
        "headless", story, channels, tmp_path / "headless"
    )
