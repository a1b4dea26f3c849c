"""The command loads what the first answer needs, and nothing else: a server starts for every test of some suites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from mock_provider.dialects.places import PLACES

# Children find the packages where nothing is installed; what the lane put first stays first.
SERVE_AND_TELL = """
import sys
before = set(sys.modules)  # not its own: what measures coverage is in there too
from mock_provider.cli import main
code = main(["serve", sys.argv[1]])
sys.stderr.write("".join(f"{name}\\n" for name in sys.modules.keys() - before))
sys.exit(code)
"""
PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
AS_JSON = '{"version": 1, "steps": [{"reply": "hi"}]}'
AS_YAML = "version: 1\nsteps:\n  - reply: hi\n"
MESSAGES = [{"role": "user", "content": "x"}]
CHAT = ("openai_chat", "/chat/completions", {"model": "m", "messages": MESSAGES})
OLLAMA = ("ollama", "/api/chat", {"model": "m", "messages": MESSAGES, "stream": False})
DIALECTS = frozenset(f"mock_provider.dialects.{place.name}" for place in PLACES)
UNNEEDED = frozenset(
    {
        "difflib",  # the near misses of a word
        "httpx",
        "httpx2",
        "importlib.metadata",
        "jsonschema",
        "mock_provider.checks",  # the claims of a test
        "mock_provider.explaining",
        "mock_provider.recording.session",
        "mock_provider.script_yaml",
        "mock_provider.sharing.workers",
        "multiprocessing",
        "pydantic",
        "redis",
        "regex",
        "rich",
        "unittest",
        "yaml",
    }
)


def loaded_by(script: Path, dialect: str, path: str, body: Mapping[str, object]) -> set[str]:
    """Every module that a server has loaded when it has answered one request and was stopped."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE_AND_TELL, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN},
    )
    with process:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())["base_urls"]
        answer = httpx.post(f"{urls[dialect]}{path}", json=body, headers={"authorization": "Bearer x"})
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert (answer.status_code, process.returncode) == (200, 0)
    return set(told.splitlines())


@pytest.mark.parametrize("asked", [pytest.param(CHAT, id="chat"), pytest.param(OLLAMA, id="ollama")])
def test_a_server_loads_the_dialect_it_was_asked_in_and_nothing_that_no_answer_needs(
    tmp_path: Path, asked: tuple[str, str, Mapping[str, object]]
) -> None:
    script = tmp_path / "script.json"
    script.write_text(AS_JSON, encoding="utf-8")
    loaded = loaded_by(script, *asked)
    assert (loaded & DIALECTS, loaded & UNNEEDED) == ({f"mock_provider.dialects.{asked[0]}"}, set())


def test_a_script_in_yaml_loads_its_reader(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(AS_YAML, encoding="utf-8")
    assert loaded_by(script, *CHAT) & UNNEEDED == {"mock_provider.script_yaml", "yaml"}
