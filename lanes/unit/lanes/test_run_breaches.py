"""Whole runs of a tiny project in which no test fails and the lane does: what it is blamed for, and by what name."""

from __future__ import annotations

import subprocess

PASSING = "def test_passes():\n    pass\n"
CLAIM = """
schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "It holds."
surface = "none"
required = ["unit"]
owner = "us"
"""


def test_guard_05_a_child_that_tries_after_its_test_has_ended_fails_the_lane_and_names_the_test(project) -> None:
    project.write(
        "lanes/unit/test_child.py",
        "import subprocess, sys, os\n"
        "CHILD = '''\n"
        "import socket, sys\n"
        "sys.stdin.read()\n"
        "try:\n"
        "    socket.getaddrinfo('example.com', 80)\n"
        "except Exception:\n"
        "    pass\n"
        "'''\n"
        "HELD = []\n"
        "def test_leaves_a_child():\n"
        "    HELD.append(subprocess.Popen([sys.executable, '-c', CHILD], stdin=subprocess.PIPE))\n"
        "def test_zz_next():\n"
        "    HELD[0].communicate()\n",
    )

    ended = project.run("run", "unit")

    assert ended.exit_code == 3
    assert (
        "lanes/unit/test_child.py::test_leaves_a_child, after it had ended: look-up of example.com refused"
        in ended.stderr
    )


def test_status_34_a_test_bound_to_an_unknown_claim_is_not_collected(project) -> None:
    project.write("lanes/claims.toml", CLAIM)
    project.write("lanes/unit/test_a.py", f"import pytest\n@pytest.mark.claim('a.clam')\n{PASSING}")

    ended = project.run("run", "unit")

    assert ended.exit_code == 2
    assert "claim 'a.clam' is unknown; did you mean 'a.claim'?" in ended.stdout


def test_lane_10_a_keyless_lane_that_changes_a_tracked_file_fails_and_lists_it(project) -> None:
    tracked = project.write("tracked.txt", "as it was")
    project.write("lanes/unit/test_a.py", f"def test_writes():\n    open({str(tracked)!r}, 'w').write('changed')\n")
    git = ["git", "-C", str(project.root), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    for command in (["init", "-q"], ["add", "tracked.txt"], ["commit", "-q", "-m", "start"]):
        subprocess.run([*git, *command], check=True, capture_output=True)

    ended = project.run("run", "unit")

    assert ended.exit_code == 3
    assert project.bundle("unit").trailer.breaches == ("tracked.txt is tracked and was changed by the lane",)
