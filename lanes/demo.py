"""First contact: one journey shown as it happens, on a real folder, without a key.

Room: the command line comes in; it shows the board afterwards. The parts are started as a person would start them.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lanes.policy import DUMMY_KEY
from lanes.program import Program, console_command
from lanes.scenario import Scenario, find_scenario, script_text, write_workspace
from lanes.world import check_world

STORY = "fix-test"
EXIT_FAILED = 1


def show_journey(write: Callable[[str], None]) -> int:
    """Play the journey with everything it prints, then check the folder from outside; gives the exit code.

    Shape: write puts text on standard output; what the program and the mock provider print goes straight through.
    """
    scenario = find_scenario(STORY)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        place = Path(folder)
        return _play(scenario, place, write)


def _play(scenario: Scenario, place: Path, write: Callable[[str], None]) -> int:
    workspace, sessions, script = place / "project", place / "sessions", place / "script.json"
    workspace.mkdir()
    sessions.mkdir()
    write_workspace(scenario, workspace)
    script.write_text(script_text(scenario), encoding="utf-8")
    run = scenario.runs[0]
    program = Program(workspace, sessions, None, environ={"OPENAI_API_KEY": DUMMY_KEY})
    write(f"{scenario.story}\n")
    write("No model takes part: the answers are scripted, and the mock provider plays them over loopback HTTP.\n\n")
    before = _check(workspace, write)
    shown = shlex.join(["harness", "run", run.task])
    write(f"\n$ mock-provider run {script.name} -- {shown}\n")
    command = [*console_command("mock-provider"), "run", str(script), "--"]
    arguments = program.arguments(run)
    done = subprocess.run(
        [*command, *console_command("harness"), arguments[0], "--verbose", *arguments[1:]],
        cwd=workspace,
        env=program.environment(),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    write("\n")
    after = _check(workspace, write)
    problems = check_world(scenario.world, workspace)
    if done.returncode != run.exit:
        problems.insert(0, f"the program ended with {done.returncode}, expected {run.exit}")
    if before == 0 or after != 0:
        problems.append(f"check.py ended with {before} before and {after} after, expected a failure and then 0")
    for problem in problems:
        write(f"not as the story says: {problem}\n")
    if not problems:
        write("\nThe program did this on real files. A script spoke; what a model would do is not shown here.\n")
    return EXIT_FAILED if problems else 0


def _check(workspace: Path, write: Callable[[str], None]) -> int:
    """Run the project's test from outside and show it."""
    done = subprocess.run(
        [sys.executable, "-B", "check.py"],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    write(f"$ python -B check.py\n{done.stdout}{done.stderr}(exit {done.returncode})\n")
    return done.returncode
