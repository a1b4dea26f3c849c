"""The types that the client for Node states in its comments hold, as the TypeScript compiler sees them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lanes.offline.clients.protocol.foreign import NODE_MODULES
from lanes.plugin import not_run

NODE_CLIENT = Path(__file__).parents[4] / "clients" / "node"
COMPILER = NODE_MODULES / "typescript" / "bin" / "tsc"


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    """What the compiler says of a folder, strictly."""
    node = shutil.which("node")
    if node is None or not COMPILER.is_file():
        not_run("missing-dependency", "node and typescript; tox -e offline-clients has the second")
    types = ["--typeRoots", str(NODE_MODULES / "@types")]
    command = [node, str(COMPILER), "--project", str(folder), *types]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)


def test_the_client_for_node_and_its_tests_are_as_they_are_typed() -> None:
    done = checked(NODE_CLIENT)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("line", ['client.run(5, { sessionId: "s" });', "const { maxTokens } = result;"])
def test_a_use_that_does_not_fit_is_found(line: str, tmp_path: Path) -> None:
    for name in ("harness_client.mjs", "tsconfig.json"):
        shutil.copy(NODE_CLIENT / name, tmp_path)
    launch = '{ cwd: ".", provider: "p", model: "m" }'
    lines = (
        'import { HarnessClient } from "./harness_client.mjs";',
        f"const client = new HarnessClient({launch});",
        'const result = await client.run("hi", { sessionId: "s" });',
        line,
    )
    (tmp_path / "use.mjs").write_text("\n".join(lines) + "\nexport { result };\n", "utf-8")

    done = checked(tmp_path)

    assert (done.returncode, done.stdout.count("error TS")) == (2, 1), done.stdout
