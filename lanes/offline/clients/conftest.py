"""What the tests of this folder need beyond the lane's own packages, and what they say where it is not there.

Room: pytest loads it. A test file names the modules it needs in PACKAGES; it imports them inside its tests only, so
that it can be collected without them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mock_provider
from lanes.offline.clients.protocol.matrix import pytest_terminal_summary as pytest_terminal_summary  # a hook
from lanes.plugin import not_run
from mock_provider.json_values import JsonObject

# A child in another folder finds the package also where it is not installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join(
    (*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(mock_provider.__file__).parents[1]))
)


@pytest.fixture(autouse=True)
def packages(request: pytest.FixtureRequest) -> None:
    """Run only where the packages are: in the environment `offline-clients`."""
    wanted: tuple[str, ...] = getattr(request.module, "PACKAGES", ())
    missing = [name.replace("_", "-") for name in wanted if not _is_there(name)]
    if missing:
        not_run("missing-dependency", f"{', '.join(missing)}; tox -e offline-clients has them")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is not there either
        return False


@pytest.fixture
def run_wrapped(tmp_path: Path) -> Callable[[JsonObject, str], str]:
    """Run a program with `mock-provider run`, which tells it address and key; what it printed, after a good verdict."""

    def run(played: JsonObject, program: str) -> str:
        (tmp_path / "script.json").write_text(json.dumps(played), encoding="utf-8")
        (tmp_path / "client.py").write_text(program, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "mock_provider", "run", "script.json", "--", sys.executable, "client.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN},
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run
