"""Published agent programs, as they are, against the mock provider: they mend a small program and see that it works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.clients.agent_programs import (
    BROKEN,
    CHECK,
    MENDED,
    PASSES,
    PROGRAMS,
    SAID_AT_THE_END,
    AgentProgram,
)
from lanes.plugin import not_run
from mock_provider.replies import conversation, script

TIME_LIMIT_S = 240  # a machine busy with other work needs a minute to load one of them


@pytest.mark.claim("mock.published-clients")
@pytest.mark.timeout(TIME_LIMIT_S + 30)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name.lower().replace(" ", "-"))
def test_a_published_agent_mends_a_program_and_sees_its_check_pass(
    program: AgentProgram, channels: Channels, tmp_path: Path
) -> None:
    missing = program.why_missing()
    if missing:
        not_run("missing-dependency", f"{missing}; tox -e offline-clients has it, with node on the machine")
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "prices.py").write_text(BROKEN, "utf-8")
    (folder / "check.py").write_text(CHECK, "utf-8")
    played = conversation(*program.steps(folder), when={"user_contains": "check.py"})
    mock = channels.loopback(script(conversations={"task": played}))
    start = program.start(mock.base_url(program.dialect), home)
    for name, content in start.files.items():
        (home / name).write_text(content, "utf-8")

    done = subprocess.run(
        start.command,
        cwd=folder,
        env=os.environ | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"} | dict(start.variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIME_LIMIT_S,
        check=False,
    )

    checked = subprocess.run([sys.executable, "check.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr if done.returncode else "") == (0, "")
    assert (folder / "prices.py").read_text("utf-8") == MENDED
    assert (checked.returncode, checked.stdout.strip()) == (0, PASSES)
    assert SAID_AT_THE_END in done.stdout
    assert [(entry.conversation, entry.step, entry.end) for entry in mock.journal.entries] == [
        ("task", number, "complete") for number in (1, 2, 3, 4)
    ]
