"""The fixtures judge the play at the end of a test, and do nothing before one is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Children find the packages where nothing is installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
SUITE = """
import sys
import httpx
from mock_provider.replies import script, step

BODY = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
HEADERS = {"authorization": "Bearer x"}

def test_in_process_good(mock_provider):
    face = mock_provider(script(step("hi")))
    with httpx.Client(transport=face) as client:
        assert client.post(face.mock.base_url() + "/chat/completions", json=BODY, headers=HEADERS).status_code == 200

def test_in_process_another_library(mock_provider):
    import httpx2
    face = mock_provider(script(step("hi", stream={"first_ms": 600000})), library="httpx2", virtual_time=True)
    with httpx2.Client(transport=face, timeout=None) as client:
        assert client.post(face.mock.base_url() + "/chat/completions", json=BODY, headers=HEADERS).status_code == 200
    face.mock.check_request(last_user="x")

def test_in_process_left_over(mock_provider):
    mock_provider(script(step("hi")))

def test_server_good(mock_provider_server):
    mock = mock_provider_server(script(step("hi")))
    assert httpx.post(mock.base_url() + "/chat/completions", json=BODY, headers=HEADERS).status_code == 200

def test_server_unmatched(mock_provider_server):
    mock = mock_provider_server(script(step("hi", optional=True, expect={"last_user": "y"})))
    httpx.post(mock.base_url() + "/chat/completions", json=BODY, headers=HEADERS)
"""


def run_suite(folder: Path, source: str) -> str:
    (folder / "test_suite.py").write_text(source, encoding="utf-8")
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "mock_provider.pytest_fixtures",
            "-rA",
            "test_suite.py",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
        timeout=60,
    )
    return ended.stdout


def test_a_play_that_goes_wrong_fails_the_test_and_shows_the_journal(tmp_path: Path) -> None:
    output = run_suite(tmp_path, SUITE)
    assert "5 passed, 2 errors" in output
    assert "script: step 1 was never taken" in output
    assert "(no request arrived)" in output
    assert "#1 POST /v1/chat/completions → 400, complete: script: request 1 does not fit step 1" in output


def test_nothing_is_imported_before_a_fixture_is_asked_for(tmp_path: Path) -> None:
    unwanted = ["httpx", "h11", "yaml", "mock_provider.mock"]
    source = f"import sys\ndef test_quiet():\n    assert not set({unwanted}) & set(sys.modules)\n"
    assert "1 passed" in run_suite(tmp_path, source)
