"""Sessions are killed and keep their word, and loops that give a word too early are found out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lanes.cli import main
from lanes.crash import SHOWN, Totals, report_lines
from lanes.crash_child import DyingDisk, places_in

# Each takes one guard away before the sessions are killed.
WITHOUT = {
    "barriers": """
durable = SessionWriter.flush
async def flush(self):
    if self._closed:
        await durable(self)
SessionWriter.flush = flush
""",
    "repair": """
import harness.log.store
harness.log.store.repair = lambda log: ()
""",
}
RUN = """
import sys
from harness.log.writer import SessionWriter
{change}
from lanes.cli import main
sys.exit(main(["crash", "--kills", "8", "--seed", "5"]))
"""


def numbers(text: str) -> dict[str, int]:
    """The counts of a report by their words."""
    return {words: int(count) for words, count in re.findall(r"^([a-z ]+?) (\d+)\b", text, re.MULTILINE)}


def test_sessions_killed_at_disk_calls_and_at_random_times_lose_no_promise_and_run_no_tool_twice(
    run_python: Any,
) -> None:
    done = run_python("-m", "lanes", "crash", "--kills", "16", "--seed", "3")
    found = numbers(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (found["kills"], found["lost promises"], found["tools run twice"]) == (16, 0, 0)
    assert found["sessions that did not go on"] == 0


@pytest.mark.parametrize("guard", sorted(WITHOUT))
def test_a_log_without_them_is_found_out(run_python: Any, guard: str) -> None:
    done = run_python("-c", RUN.format(change=WITHOUT[guard]))
    found = numbers(done.stdout)
    assert (done.returncode, found["kills"]) == (1, 8)
    assert found[{"barriers": "lost promises", "repair": "sessions that did not go on"}[guard]] > 0


def test_every_place_of_a_write_and_of_another_call_is_a_place_to_die() -> None:
    assert places_in("wc") == ((1, "before"), (1, "half"), (1, "after"), (2, "before"), (2, "after"))


def test_a_disk_that_is_not_to_die_counts_its_calls(tmp_path: Path) -> None:
    disk = DyingDisk(0, "before")
    with (tmp_path / "a").open("wb") as file:
        disk.write(file.fileno(), b"abc")
        disk.truncate(file.fileno(), 2)
        disk.sync(file.fileno())
    disk.link(tmp_path / "a", tmp_path / "b")
    assert (disk.trace, (tmp_path / "b").read_bytes()) == ("wccc", b"ab")


def test_the_report_shows_the_first_problems_and_counts_the_rest() -> None:
    lost = [f"session {number}: gone" for number in range(SHOWN + 3)]
    totals = Totals(Counter(disk=4, time=3), Counter(receipt=9), 2, lost, ["session 0: call c ran twice"])
    assert report_lines(totals).splitlines() == [
        *lost[:SHOWN],
        "and 4 more",
        "kills 7 (4 at disk calls, 3 at random times)",
        "sessions 2",
        "promises heard: 9 receipt, 0 asked, 0 call, 0 result, 0 idle",
        f"lost promises {SHOWN + 3}",
        "tools run twice 1",
        "sessions that did not go on 0",
    ]


@pytest.mark.parametrize("arguments", [("--kills", "0"), ("--kills", "x"), ("--seed", "-1")], ids=" ".join)
def test_a_number_that_is_none_is_a_usage_error(arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crash", *arguments]) == 2
    assert f"{arguments[0]} is '{arguments[1]}'" in capsys.readouterr().err
