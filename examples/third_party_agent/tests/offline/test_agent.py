"""Offline: the agent as a program that is told an address, as any program in any language could be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LUNCH = Path(__file__).parents[1] / "lunch.yaml"
BUSY = {
    "version": 1,
    "steps": [
        {"http_error": {"status": 429, "code": "rate_limit_exceeded", "retry_after": 0}},
        {"reply": [{"tool_call": {"name": "add_expense", "arguments": {"what": "lunch", "cents": 1250}}}]},
        {"reply": "Lunch for 12.50 is in your list."},
    ],
}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(LUNCH, id="ready", marks=pytest.mark.claim("expense.add")),
        pytest.param(BUSY, id="busy", marks=pytest.mark.claim("expense.retry")),
    ],
)
def test_the_program_adds_the_expense_once(channels, tmp_path, script):
    mock = channels.loopback(script)
    environ = {**os.environ, "OPENAI_BASE_URL": mock.base_url("openai"), "OPENAI_API_KEY": "no-key-in-this-lane"}

    done = subprocess.run(
        [sys.executable, "-m", "expense_agent", tmp_path / "list", "I paid 12.50 for lunch."],
        env=environ,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "Lunch for 12.50 is in your list.\n", "")
    assert (tmp_path / "list").read_text("utf-8") == "lunch;1250\n"
