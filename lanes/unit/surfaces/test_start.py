"""A surface loads what its first answer needs: editors and tests wait for it, and most never see a model called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

# Children find the packages where nothing is installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
RUN_AND_TELL = """
import sys
before = set(sys.modules)  # not its own: what measures coverage is in there too
from harness.cli import main
code = main(sys.argv[1:])
sys.stderr.write("".join(f"{name}\\n" for name in sys.modules.keys() - before))
sys.exit(code)
"""
INITIALIZE = {
    "acp": {"protocolVersion": 1, "clientCapabilities": {}},
    "sdk": {"provider": "deepseek", "model": "m", "cwd": "/"},
}
OF_A_MODEL_CALL = frozenset(
    {"acp", "anyio", "h11", "harness.provider.http", "httpcore", "httpx", "httpx2", "mcp", "pydantic", "tomllib"}
)
OF_ANY_WORK = frozenset({"asyncio", "harness.assemble", "harness.loop", "harness.surfaces", "ssl"})


def run(folder: Path, arguments: Sequence[str], given: str) -> tuple[str, set[str]]:
    """What the command prints, and every module that it has loaded itself by its end."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HARNESS_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_TELL, *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment, "PYTHONPATH": PATH_OF_CHILDREN, "HARNESS_SESSION_ROOT": str(folder / "sessions")},
        check=True,
        timeout=60,
    )
    return done.stdout, set(done.stderr.splitlines())


@pytest.mark.parametrize("surface", sorted(INITIALIZE))
def test_a_served_surface_answers_before_anything_of_a_model_call_is_loaded(tmp_path: Path, surface: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE[surface]}
    printed, loaded = run(tmp_path, [surface], json.dumps(request) + "\n")
    assert ("result" in json.loads(printed), loaded & OF_A_MODEL_CALL) == (True, set())


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("run", "--help")], ids=" ".join)
def test_what_the_command_says_of_itself_needs_no_agent(tmp_path: Path, arguments: Sequence[str]) -> None:
    printed, loaded = run(tmp_path, arguments, "")
    assert (printed != "", loaded & (OF_ANY_WORK | OF_A_MODEL_CALL)) == (True, set())
