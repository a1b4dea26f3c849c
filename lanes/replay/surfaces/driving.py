"""One story through each surface of the program, whatever command starts it.

Room: the replay of recorded sessions comes in. A driver gives the task, waits for the end and stops the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client import HarnessClient, Launch
from harness.model.messages import JsonObject
from harness.transport.rpc import Peer
from lanes.normalize import Identities, Json, normalize_log
from lanes.offline.surfaces.peers import talk_to_server
from lanes.playing import workspace_places
from lanes.policy import DUMMY_KEY
from lanes.program import Program, run_command
from lanes.scenario import Run
from lanes.story_log import read_rows, unpack_rows

MODEL, PROVIDER = "m-small", "openai"
SESSION = "chosen-by-the-client"
LIMIT_S = 60

Command = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class Place:
    """Where one surface works, and what starts the program there."""

    folder: Path
    base_url: str
    command: Command

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    def program(self) -> Program:
        return Program(self.workspace, self.sessions, self.base_url, MODEL, PROVIDER, self.own_environment())

    def own_environment(self) -> dict[str, str]:
        return {
            "OPENAI_API_KEY": DUMMY_KEY,
            "OPENAI_BASE_URL": self.base_url,
            "HARNESS_SESSION_ROOT": str(self.sessions),
            "HARNESS_RETRY_BASE_MS": "0",
        }

    def environment(self) -> dict[str, str]:
        return self.program().environment()

    def rows(self) -> list[Json]:
        """The logs of the session and of its children, one after the other, without what differs between two runs."""
        return comparable(self.program().log_files(), self.workspace)


def comparable(logs: Sequence[Path], workspace: Path) -> list[Json]:
    """The rows of a session's logs, root first, unpacked and without what differs between two runs."""
    rows = [row for path in logs for row in unpack_rows(read_rows(path))]
    return normalize_log(rows, workspace_places(workspace), Identities())


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
