"""The program that serves the model, as far as it can be tried without the model."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lanes.local_server import describe


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lanes.local_server", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_server_whose_starter_has_gone_serves_nobody() -> None:
    ended = run("--serve", json.dumps({"parent": "1", "weights": "", "model": "m", "descriptor": 0}))

    assert (ended.returncode != 0, "the run that started these tests has ended" in ended.stderr) == (True, True)


def test_it_says_what_is_missing_as_one_line_of_json() -> None:
    ended = run("--describe", "no-such-weights", "no-such-server")

    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"missing": "no-such-server"})


def test_a_distribution_that_is_there_is_named_with_its_version() -> None:
    assert describe("no-such-weights", "pytest") == {"missing": "no-such-weights"}


@pytest.mark.parametrize(
    "arguments", [(), ("--serve",), ("--describe", "one")], ids=["none", "no-document", "one-name"]
)
def test_it_is_no_command_for_people(arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)

    assert (ended.returncode, ended.stderr) == (1, "lanes.local_server is started by lanes.local_model\n")
