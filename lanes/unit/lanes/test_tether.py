"""The tie between a run and its tests, tried by killing the one and looking for the other."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from lanes.observation import not_run

CLAIM = """
schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "It holds."
surface = "none"
required = ["unit"]
owner = "us"
"""
PASSING = "def test_passes():\n    pass\n"
PART = "import pytest\npytestmark = pytest.mark.claim('a.claim')\n" + PASSING
WAITS = """
import os, signal

def test_waits():
    with open("started", "w") as file:
        file.write(str(os.getpid()))
    signal.pause()
"""


def wait_for_the_end_of(process_id: int) -> bool:
    """Whether a process that is not our child ends within a time that only a failure would use up."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(10_000))


def test_a_run_that_is_killed_takes_its_tests_with_it_and_what_passed_by_then_is_no_pass(project) -> None:
    if not sys.platform.startswith("linux"):
        not_run("platform", "prctl(2) and pidfd_open(2) are of Linux")
    os.mkfifo(project.root / "started")
    project.write("lanes/claims.toml", CLAIM)
    project.write("lanes/unit/test_a.py", PART)
    project.write("lanes/unit/test_b.py", WAITS)
    process = project.start("run", "unit")
    tests = int((project.root / "started").read_text("utf-8"))

    process.kill()
    process.wait()
    ended = wait_for_the_end_of(tests)
    if not ended:  # it holds our pipes, and would outlive us
        os.kill(tests, signal.SIGKILL)
    process.communicate()
    report = project.run("report")

    row = next(line for line in report.stdout.splitlines() if line.startswith("a.claim"))
    assert (ended, project.bundle("unit").trailer, [each.verdict for each in project.bundle("unit").records]) == (
        True,
        None,
        ["passed"],
    )
    assert ("blocked: its run was not judged to the end" in row, report.exit_code) == (True, 1)


TIED_TO_ANOTHER = """
from lanes.errors import GuardError
from lanes.tether import tie_to_parent
try:
    tie_to_parent("1" + str(__import__("os").getppid()))
except GuardError as error:
    print(error.what)
"""


def test_tests_whose_run_has_gone_before_they_were_tied_to_it_do_not_start(project) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TIED_TO_ANOTHER], env=project.environ(), capture_output=True, text=True, check=True
    )

    assert done.stdout == "the run that started these tests has ended\n"
