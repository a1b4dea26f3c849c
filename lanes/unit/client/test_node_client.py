"""The client for Node keeps the claims of the Python client: its own tests, against the same server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from lanes.plugin import not_run

NODE = Path(__file__).parents[3] / "clients" / "node"
LIMIT_S = 110  # a process of a server for each test; a dozen seconds where the machine has nothing else to do
CLAIMS = {f"CL{number:02}" for number in range(1, 23)}


def test_the_tests_of_the_client_for_node_pass_and_cover_every_claim_of_a_client() -> None:
    node = shutil.which("node")
    if node is None:
        not_run("missing-dependency", "node")
    done = subprocess.run(
        [node, "--test", "--test-reporter=tap", "harness_client.test.mjs"],
        cwd=NODE,
        env={**os.environ, "FAKE_SERVER_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    passed = re.findall(r"^ok \d+ - (.*)$", done.stdout, re.MULTILINE)
    failed = re.findall(r"^not ok \d+ - (.*)$", done.stdout, re.MULTILINE)

    assert (done.returncode, failed) == (0, []), done.stdout[-4000:]
    assert {name.split(" ")[0] for name in passed} >= CLAIMS
