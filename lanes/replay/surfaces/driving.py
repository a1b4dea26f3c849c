"""One story through each surface of the program, whatever command starts it.

Room: the replay of recorded sessions comes in. A driver gives the task, waits for the end and stops the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from harness.client import HarnessClient, Launch
from harness.model.messages import JsonObject
from harness.transport.rpc import Peer
from lanes.offline.surfaces.peers import talk_to_server
from lanes.offline.surfaces.place import MODEL, PROVIDER, Place
from lanes.program import run_command
from lanes.scenario import Run

SESSION = "chosen-by-the-client"
LIMIT_S = 60


async def headless(place: Place, run: Run) -> None:
    command = place.command(place.program().arguments(run))
    done = await asyncio.to_thread(run_command, command, place.environment(), place.workspace)
    assert (done.exit, done.stdout) == (run.exit, run.stdout), done.stderr


async def client(place: Place, run: Run) -> None:
    launch = Launch(
        cwd=place.workspace,
        provider=PROVIDER,
        model=MODEL,
        command=place.command(["sdk", *run.flags]),
        environment=place.environment(),
    )
    async with HarnessClient(launch) as open_client:
        done = await open_client.run(run.task, session_id=SESSION, timeout_s=LIMIT_S)
    assert f"{done.final_response}\n" == run.stdout


async def sdk(place: Place, run: Run) -> None:
    """The SDK server by hand: no client of ours between the test and the frames."""
    idle = asyncio.Event()

    def hear(method: str, params: JsonObject) -> None:
        if method == "session.status" and (params.get("sessionId"), params.get("status")) == (SESSION, "idle"):
            idle.set()

    async def talk(peer: Peer) -> None:
        await peer.request("initialize", {"cwd": str(place.workspace), "provider": PROVIDER, "model": MODEL})
        blocks = ({"type": "text", "text": run.task},)
        await peer.request("session/prompt", {"sessionId": SESSION, "contentBlocks": blocks})
        await asyncio.wait_for(idle.wait(), LIMIT_S)
        await peer.request("shutdown")

    await _served(place, ["sdk", *run.flags], hear, talk)


async def acp(place: Place, run: Run) -> None:
    async def talk(peer: Peer) -> None:
        await peer.request("initialize", {"protocolVersion": 1})
        made = await peer.request("session/new", {"cwd": str(place.workspace), "mcpServers": ()})
        assert isinstance(made, Mapping)
        blocks = ({"type": "text", "text": run.task},)
        params = {"sessionId": made["sessionId"], "prompt": blocks}
        answer = await peer.request("session/prompt", params, timeout_s=LIMIT_S)
        assert answer == {"stopReason": "end_turn", "_meta": {"ending": "completed"}}

    arguments = ["acp", "--provider", PROVIDER, "--model", MODEL, *run.flags]
    await _served(place, arguments, lambda method, params: None, talk)


async def _served(
    place: Place,
    arguments: Sequence[str],
    hear: Callable[[str, JsonObject], None],
    talk: Callable[[Peer], Awaitable[None]],
) -> None:
    await talk_to_server(place.command(arguments), place.workspace, place.environment(), hear, talk)


SURFACES: dict[str, Callable[[Place, Run], Awaitable[None]]] = {
    "headless": headless,
    "sdk": sdk,
    "client": client,
    "acp": acp,
}
