"""The field case of cancel races: a cancel that meets work of any kind, through both real servers."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.wire import OPEN, RealServer, is_answer
from mock_provider import Mock
from mock_provider.json_values import JsonObject
from mock_provider.replies import gate, script, stall, step, text, tool_call

CASES = Path(__file__).parents[2] / "cases" / "rpc"
NOISY = str(Path(__file__).parent / "noisy.py")
WIRES = ("sdk", "acp")
RACES = json.loads((CASES / "B29-cancel-races.json").read_text("utf-8"))
IDLE = ("cancel with no turn running", "late cancel")  # test_case_b29_idle.py
NAMES = [run["name"] for run in RACES["runs"] if run["name"] not in IDLE]
BUSY_S = 20.0  # what a machine with much else to do may add to the bound of the case
CANCELLED = {"sdk": "aborted", "acp": "cancelled"}
ENDED = {"sdk": "completed", "acp": "end_turn"}
NEXT = step("next", expect={"last_user": "and then"})

Race = Callable[["Bench"], float]


class Bench:
    """One race: a server that shook hands, its session, and how long the prompt took from its cancel to its end."""

    def __init__(self, server: RealServer, mock: Mock) -> None:
        self.server, self.mock = server, mock
        server.hello()
        self.session = server.open_session()
        os.mkfifo(server.workspace / "started")

    def prompt(self, words: str = "work") -> int:
        return self.server.prompt(self.session, words)

    def cancel(self) -> None:
        self.server.write(self.server.cancel_line(self.session))

    def until_ended(self, prompts: int = 1) -> float:
        """Wait until so many prompts have ended; seconds it took."""
        begin = time.monotonic()
        self.server.ended(prompts)
        return time.monotonic() - begin

    def question(self) -> Any:
        """The id of the permission request."""
        asked = self.server.until(
            lambda frames: [one["id"] for one in frames if one.get("method") == "session/request_permission"]
        )
        return asked[0]

    def reply(self, question: Any, outcome: JsonObject) -> None:
        answer = {"jsonrpc": "2.0", "id": question, "result": {"outcome": outcome}}
        self.server.write(json.dumps(answer).encode() + b"\n")

    def until_tool_runs(self) -> None:
        """Wait until the tool has written to its pipe."""
        end = os.open(self.server.workspace / "started", os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert select.select([end], [], [], 60)[0]
        finally:
            os.close(end)


def at_once(bench: Bench) -> float:
    _, line = bench.server.prompt_line(bench.session, "work")
    bench.server.write(line + bench.server.cancel_line(bench.session))
    return bench.until_ended()


def permission_answered(bench: Bench) -> float:
    bench.prompt()
    question = bench.question()
    bench.cancel()
    bench.reply(question, {"outcome": "cancelled"})
    return bench.until_ended()


def permission_never_answered(bench: Bench) -> float:
    bench.prompt()
    bench.question()
    bench.cancel()
    return bench.until_ended()


def permission_answered_late(bench: Bench) -> float:
    bench.prompt()
    question = bench.question()
    bench.cancel()
    took_s = bench.until_ended()
    bench.reply(question, {"outcome": "selected", "optionId": "allow-once"})
    return took_s


def stubborn_tool(bench: Bench) -> float:
    bench.prompt()
    bench.until_tool_runs()
    bench.cancel()
    return bench.until_ended()


def two_cancels(bench: Bench) -> float:
    bench.prompt()
    bench.cancel()
    bench.cancel()
    return bench.until_ended()


def raising_stop(bench: Bench) -> float:
    bench.prompt()
    assert bench.mock.gate("half").wait_reached()
    bench.cancel()
    return bench.until_ended()


WRITES = step(tool_call("write_file", {"path": "written.txt", "content": "x"}))
STUBBORN = "trap '' TERM INT HUP; echo > started; sleep 60"
SLOW = step(text("never"), stall(), optional=True, expect={"last_user": "work"})
HALF = step(text("never"), gate("half"), text(" more"))
RUNS: dict[str, tuple[Race, JsonObject]] = {
    "cancel at once": (at_once, SLOW),
    "cancel while a permission answer is awaited; client answers cancelled": (permission_answered, WRITES),
    "cancel while a permission answer is awaited; client never answers": (permission_never_answered, WRITES),
    "late permission answer": (permission_answered_late, WRITES),
    "cancel while a stubborn tool runs": (stubborn_tool, step(tool_call("shell", {"command": STUBBORN}))),
    "two cancels": (two_cancels, SLOW),
    "the stop itself raises": (raising_stop, HALF),
}
OF_ACP_ALONE = frozenset(name for name in NAMES if "permission" in name)  # the SDK wire has no question to answer
PLAYED = [(wire, name) for name in NAMES for wire in WIRES if wire == "acp" or name not in OF_ACP_ALONE]


def test_the_races_are_those_of_the_case() -> None:
    assert list(RUNS) == NAMES
    assert (len(NAMES), len(OF_ACP_ALONE), len(RACES["runs"]), RACES["bound_s"]) == (7, 3, 9, 2.0)


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize(("wire", "name"), PLAYED, ids=[f"{wire}-{name}" for wire, name in PLAYED])
def test_case_B29_a_race_ends_with_one_answer_and_the_next_prompt_works(
    wire: str, name: str, channels: Channels, tmp_path: Path
) -> None:
    race, first_step = RUNS[name]
    mock = channels.loopback(script(first_step, NEXT))
    flags = ["--ask"] if "permission" in name else []
    command = [sys.executable, NOISY, "raises", *OPEN[wire]] if race is raising_stop else None
    with RealServer(wire, tmp_path, mock.base_url("openai_chat"), *flags, command=command) as server:
        bench = Bench(server, mock)
        took_s = race(bench)
        first, before = server.ended(1), len(server.texts())
        bench.prompt("and then")
        endings, said = server.ended(2), server.texts()
        left = server.children()
        assert server.leave() == 0

    assert (first, endings, said) == ([CANCELLED[wire]], [CANCELLED[wire], ENDED[wire]], ["next"])
    assert (before, b"the stream is closed" in server.errors) == (0, race is raising_stop)
    assert took_s < RACES["bound_s"] + BUSY_S
    assert (left, (server.workspace / "written.txt").exists(), "never" in str(said)) == ([], False, False)
    prompts = [frame for frame in server.frames if "stopReason" in str(frame.get("result"))]
    assert all(sum(is_answer(one, frame["id"]) for one in server.frames) == 1 for frame in prompts)
