"""Journeys with the tools of public MCP servers: the installed program, its model played, the servers as published."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.policy import DUMMY_KEY
from lanes.program import Program, check_story
from lanes.scenario import find_scenario, write_workspace
from lanes.story_log import check_log, read_rows
from lanes.world import check_world

PACKAGES = ("mcp", "mcp_server_git", "mcp_server_time")
STORIES = Path(__file__).parent / "stories"
# A server is given none of our variables unless it is named: these put the lane's guard in front of it too.
GUARDED = {
    name: f"${{{name}}}" for name in os.environ if name.startswith("LANES_") or name in {"PYTHONPATH", "LANE_MARK"}
}
SERVERS = {
    "git": {"command": "mcp-server-git", "args": ["--repository", "."], "env": GUARDED},
    "time": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"], "env": GUARDED},
}


def begin_repository(folder: Path) -> None:
    """One commit of what is in the folder, by an author the folder names."""
    for command in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("config", "user.name", "An Agent"),
        ("config", "user.email", "agent@example.com"),
        ("add", "."),
        ("commit", "--quiet", "--message", "Begin"),
    ):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


@pytest.mark.claim("journey.mcp-tools")
@pytest.mark.parametrize("server", SERVERS)
def test_an_agent_works_with_the_tools_of_a_public_server(server: str, channels: Channels, tmp_path: Path) -> None:
    scenario = find_scenario(f"mcp-{server}", STORIES)
    workspace, sessions, configured = tmp_path / "workspace", tmp_path / "sessions", tmp_path / "mcp.json"
    workspace.mkdir()
    write_workspace(scenario, workspace)
    begin_repository(workspace)
    configured.write_text(json.dumps({"servers": {server: SERVERS[server]}}), encoding="utf-8")
    mock = channels.loopback(scenario.script)
    program = Program(workspace, sessions, mock.base_url("openai_chat"), environ={"OPENAI_API_KEY": DUMMY_KEY})

    finished = [program.run(replace(run, flags=(*run.flags, "--mcp", str(configured)))) for run in scenario.runs]

    problems = check_story(scenario, finished)
    problems += check_world(scenario.world, workspace)
    problems += check_log(scenario.log, read_rows(program.log_file()))
    problems += [done.stderr for done in finished if done.stderr]
    assert problems == []
