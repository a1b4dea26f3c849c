"""Whose work is whose, from the stored log alone: in both clients, in a third process, after a kill and a resume."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.client import HarnessClient, Launch, RunResult, ServerDiedError
from harness.log.interval import receipt_interval
from harness.log.store import SessionStore
from harness.model.messages import MessageId, SessionId
from lanes.channels import Channels
from lanes.plugin import not_run
from lanes.policy import DUMMY_KEY
from lanes.program import Program, console_command
from mock_provider.json_values import JsonObject
from mock_provider.replies import script, stall, step, text

NODE_SCRIPT = Path(__file__).parents[2] / "unit" / "client" / "intervals.mjs"
ROOT = Path(__file__).parents[3]
PLAY: JsonObject = script(
    step("One."),
    step("Two."),
    step(text("Half"), stall()),
    step("Late.", expect={"last_user": "never begun"}),
    step("Four.", expect={"last_user": "fourth"}),
    step("Five.", expect={"last_user": "fifth"}),
    step("Six.", expect={"last_user": "sixth"}),
)


def offline_python(sessions: Path, session: str, ids: list[str]) -> dict[str, list[int | None] | None]:
    """What `harness.log` says of a stored log, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, str(sessions), session, *ids],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[int | None] | None] = json.loads(done.stdout)
    return found


def offline_node(log: Path, ids: list[str]) -> dict[str, list[int | None] | None]:
    """What the client for Node says of it."""
    done = subprocess.run(["node", str(NODE_SCRIPT), str(log), *ids], capture_output=True, text=True, check=True)
    found: dict[str, list[int | None] | None] = json.loads(done.stdout)
    return found


def live(result: RunResult) -> list[int | None]:
    """What a run collected: its first event, and its last turn end."""
    seqs = [event["seq"] for event in result.events if event["type"] == "turn/end"]
    return [result.events[0]["seq"], seqs[-1]]  # type: ignore[list-item] # numbers


@pytest.mark.claim("client.stored-intervals")
async def test_CL11_intervals_are_rebuilt_from_the_log_after_a_kill_and_repeated_reconnects(
    channels: Channels, tmp_path: Path
) -> None:
    if shutil.which("node") is None:
        not_run("missing-dependency", "node")
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    base_url = channels.loopback(PLAY).base_url("openai_chat")
    own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": base_url, "HARNESS_SESSION_ROOT": str(sessions)}
    launch = Launch(
        cwd=workspace,
        provider="openai",
        model="m-small",
        command=[*console_command("harness"), "sdk"],
        environment={**Program(workspace, sessions, base_url).environment(), **own},
        request_timeout_s=60,
    )

    async def run(client: HarnessClient, words: str) -> RunResult:
        return await client.run(words, session_id="s", timeout_s=60)

    done: list[RunResult] = []
    first = HarnessClient(launch)
    done += await asyncio.gather(*(run(first, word) for word in ("first", "second")))
    heard = first.subscribe(lambda told: told.method == "session.event")
    lost = asyncio.ensure_future(run(first, "third"))
    while "assistant/chunk" not in str((await heard.next()).params["event"]):
        continue
    waiting = await first.prompt("never begun", session_id="s")
    process = first._process
    assert process is not None
    os.kill(process._process.pid, signal.SIGKILL)
    with pytest.raises(ServerDiedError) as died:
        await lost
    await first.close()
    assert died.value.partial is not None
    async with HarnessClient(launch) as second:
        done.append(await run(second, "fourth"))
    async with HarnessClient(launch) as third:
        done += await asyncio.gather(*(run(third, word) for word in ("fifth", "sixth")))

    (log,) = sessions.rglob("session.jsonl")
    ids = [*(result.message_id for result in done), died.value.partial.message_id, waiting]
    rebuilt = offline_python(sessions, "s", ids)
    assert offline_node(log, ids) == rebuilt
    assert {result.message_id: live(result) for result in done} == {name: rebuilt[name] for name in ids[:-2]}
    assert [rebuilt[name] is not None for name in ids] == [True] * len(ids)


def main(sessions: str, session: str, ids: list[str]) -> None:
    """Say as JSON which interval belongs to each receipt of a stored session."""
    events = SessionStore(Path(sessions), clock=lambda: 0).inspect(SessionId(session)).events
    found = {name: receipt_interval(events, MessageId(name)) for name in ids}
    said = {name: interval and [interval.first, interval.last] for name, interval in found.items()}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
