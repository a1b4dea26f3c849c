"""A run that timed out stays running on the server: its turn finishes and lands in the log, for both clients."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.client import HarnessClient, Launch, RunTimeoutError
from lanes.channels import Channels
from lanes.offline.surfaces.wire import LIMIT_S, MODEL, PROVIDER
from lanes.plugin import not_run
from lanes.policy import DUMMY_KEY
from lanes.program import Program, console_command
from mock_provider import Mock
from mock_provider.replies import gate, script, step, text

NODE_CLIENT = Path(__file__).parents[3] / "clients" / "node" / "harness_client.mjs"
PLAY = script(step(text("Half"), gate("half"), text(" and whole.")))
SHORT_S = 3.0  # the model is held for longer than that, however fast the machine is
NODE_RUN = """
import {{ createInterface }} from "node:readline";
import {{ HarnessClient }} from {client};
const client = new HarnessClient({launch});
await client.start();
const heard = client.subscribe((told) => told.method === "session.status");
const run = client.run("begin", {{ sessionId: "s", timeoutS: {limit} }});
const said = await run.then(
  () => ({{ failed: "" }}),
  (error) => ({{ failed: error.constructor.name, partial: error.partial.finalResponse }}),
);
process.stdout.write(JSON.stringify(said) + "\\n");
for await (const _ of createInterface({{ input: process.stdin }})) break;
while ((await heard.next()).params.status !== "idle") continue;
await client.close();
"""


def launch(folder: Path, mock: Mock) -> Launch:
    """The program as a client starts it."""
    workspace, sessions, base_url = folder / "workspace", folder / "sessions", mock.base_url("openai_chat")
    workspace.mkdir()
    own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": base_url, "HARNESS_SESSION_ROOT": str(sessions)}
    return Launch(
        cwd=workspace,
        provider=PROVIDER,
        model=MODEL,
        command=[*console_command("harness"), "sdk"],
        environment={**Program(workspace, sessions, base_url).environment(), **own},
        request_timeout_s=LIMIT_S,
    )


def ends(folder: Path) -> tuple[list[str], list[str]]:
    """How the turns of the one stored log ended, and what its messages say."""
    (path,) = (folder / "sessions").rglob("session.jsonl")
    rows: list[Any] = [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]]
    reasons = [row["data"]["reason"]["kind"] for row in rows if row["type"] == "turn/end"]
    messages = [row["data"]["message"] for row in rows if row["type"] == "assistant/message"]
    return reasons, ["".join(block["text"] for block in message["content"]) for message in messages]


@pytest.mark.claim("wire.real-servers")
async def test_a_run_of_the_python_client_that_timed_out_finishes_on_the_server_and_lands_in_the_log(
    channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(PLAY)
    async with HarnessClient(launch(tmp_path, mock)) as client:
        heard = client.subscribe(lambda told: told.method == "session.status")
        with pytest.raises(RunTimeoutError, match=f"within {SHORT_S:g} s") as raised:
            await client.run("begin", session_id="s", timeout_s=SHORT_S)
        assert (raised.value.partial.finish_reason, client.pending_calls) == (None, 0)
        await asyncio.to_thread(mock.gate("half").wait_reached, LIMIT_S)
        mock.gate("half").open()
        while (await heard.next()).params["status"] != "idle":
            continue

    assert ends(tmp_path) == (["completed"], ["Half and whole."])


@pytest.mark.claim("wire.real-servers")
def test_a_run_of_the_node_client_that_timed_out_finishes_on_the_server_and_lands_in_the_log(
    channels: Channels, tmp_path: Path
) -> None:
    if shutil.which("node") is None:
        not_run("missing-dependency", "node")
    mock = channels.loopback(PLAY)
    asked = launch(tmp_path, mock)
    spelled = {"cwd": str(asked.cwd), "provider": asked.provider, "model": asked.model, "command": list(asked.command)}
    words = {"client": json.dumps(NODE_CLIENT.as_uri()), "launch": json.dumps(spelled), "limit": SHORT_S}
    program = tmp_path / "run.mjs"
    program.write_text(NODE_RUN.format(**words), "utf-8")

    with subprocess.Popen(
        ["node", str(program)], env=asked.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as node:
        assert node.stdout is not None
        said = json.loads(node.stdout.readline())
        mock.gate("half").wait_reached(LIMIT_S)
        mock.gate("half").open()
        node.communicate("go on\n", LIMIT_S)

    assert (said["failed"], said["partial"], node.returncode) == ("RunTimeoutError", "", 0)
    assert ends(tmp_path) == (["completed"], ["Half and whole."])
