"""A program that others publish for people and scripts drives the agent over the Agent Client Protocol, headless."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.clients.protocol.foreign import HOME, MODEL, PROVIDER, Journey
from lanes.plugin import not_run
from lanes.policy import DUMMY_KEY
from lanes.program import Program
from mock_provider.replies import script, step, text, tool_call

ACPX = HOME / "acpx" / "node_modules" / ".bin" / "acpx"
LIMIT_S = 100
PLAY = {
    "permission given": (["--approve-all"], 0, "It is written.", {"note.txt": "noted\n"}),
    "permission refused": (["--deny-all"], 5, "It is not.", {}),  # acpx says by its status that it was not given
}


@pytest.mark.claim("acp.published-clients")
@pytest.mark.parametrize("journey", PLAY)
@pytest.mark.parametrize("client", ["acp acpx"])
def test_a_published_program_gives_a_task_answers_for_permission_and_shows_what_was_said(
    client: str, journey: str, channels: Channels, tmp_path: Path
) -> None:
    if shutil.which("node") is None or not ACPX.exists():
        not_run("missing-dependency", "node and acpx; tox -e offline-clients has the second")
    flags, status, last, files = PLAY[journey]
    write = tool_call("write_file", {"path": "note.txt", "content": "noted\n"})
    base_url = channels.loopback(script(step(text("I write it."), write), step(last))).base_url("openai_chat")
    place = Journey(tmp_path, base_url)
    place.workspace.mkdir()
    agent = [str(place.program()), "acp", "--provider", PROVIDER, "--model", MODEL, "--ask"]

    options = ["--agent", " ".join(agent), "--cwd", str(place.workspace), "--format", "json", "--timeout", str(LIMIT_S)]
    done = subprocess.run(
        ["node", str(ACPX), *options, *flags, "exec", "Write the note."],
        env=environment(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, frames[-1]["result"]["stopReason"]) == (status, "end_turn"), done.stderr[-2000:]
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    assert [update["content"]["text"] for update in updates] == ["I write it.", last]
    ride = place.ridden({})
    assert (ride.impurities(), len(ride.records)) == ([], 1)
    assert {path.name: path.read_text("utf-8") for path in place.workspace.iterdir()} == files


def environment(place: Journey) -> Mapping[str, str]:
    """What the program is given; it keeps its own state at home, which is a folder of this test."""
    own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": place.base_url, "HOME": str(place.folder)}
    given = Program(place.workspace, place.sessions, place.base_url).environment()
    return {**given, **own, "HARNESS_SESSION_ROOT": str(place.sessions), "PATH": given.get("PATH", os.defpath)}
