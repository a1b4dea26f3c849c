"""The field cases of stray output and of cancel races, through both real servers."""

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
from lanes.offline.surfaces.noisy import BEFORE, BETWEEN, END, TURN
from lanes.offline.surfaces.wire import OPEN, RealServer, is_answer
from mock_provider import Mock
from mock_provider.json_values import JsonObject
from mock_provider.replies import gate, script, stall, step, text, tool_call

CASES = Path(__file__).parents[2] / "cases" / "rpc"
NOISY = str(Path(__file__).parent / "noisy.py")
WIRES = ("sdk", "acp")
STRAY = json.loads((CASES / "B27-stray-output.json").read_text("utf-8"))
RACES = json.loads((CASES / "B29-cancel-races.json").read_text("utf-8"))
NAMES = [run["name"] for run in RACES["runs"]]
BUSY_S = 20.0  # what a machine with much else to do may add to the bound of the case
CANCELLED = {"sdk": "aborted", "acp": "cancelled"}
ENDED = {"sdk": "completed", "acp": "end_turn"}
NEXT = step("next", expect={"last_user": "and then"})

WORDS = (
    "noise one", "noise two", "noise three", "noise four logged", "noise four", "noise five", "noise of a task",
    "noise of a thread", "noise six", "noise seven", "noise of C",
)  # fmt: skip


def test_the_kinds_of_noise_and_their_moments_are_those_of_the_case() -> None:
    assert STRAY["when"] == [BEFORE, BETWEEN, TURN, END]
    spelled = json.dumps(STRAY["noise_sources"])
    numbers = [word for word in ("one", "two", "three", "four", "five", "six", "seven") if f"noise {word}" in spelled]
    assert (len(STRAY["noise_sources"]), len(numbers), "background task" in spelled) == (8, 7, True)


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B27_noise_of_every_kind_at_every_moment_is_on_standard_error_and_the_turn_is_as_without_it(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(step("Said."), step("Said again.")))
    command = [sys.executable, NOISY, "noise", *OPEN[wire]]
    with RealServer(wire, tmp_path, mock.base_url("openai_chat"), command=command) as server:
        server.hello()
        session = server.open_session()
        for number in (1, 2):
            server.answer(server.prompt(session, f"say {number}"))
            endings = server.ended(number)
        said = server.texts()
        assert server.leave() == 0  # which has seen that every line of standard output is a frame

    assert (endings, said) == ([ENDED[wire]] * 2, ["Said.", "Said again."])
    told = server.errors.decode()
    assert [f"{word} {when}" for word in WORDS for when in STRAY["when"] if f"{word} {when}" not in told] == []


# cancel races

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


def no_turn(bench: Bench) -> float:
    bench.cancel()
    bench.prompt()
    return bench.until_ended()


def late(bench: Bench) -> float:
    bench.prompt()
    took_s = bench.until_ended()
    bench.cancel()
    return took_s


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
    took_s = bench.until_ended()
    assert b"the stream is closed" in bench.server.errors
    return took_s


ONE, WRITES = step("one"), step(tool_call("write_file", {"path": "written.txt", "content": "x"}))
STUBBORN = "trap '' TERM INT HUP; echo > started; sleep 60"
SLOW = step(text("never"), stall(), optional=True, expect={"last_user": "work"})
HALF = step(text("never"), gate("half"), text(" more"))
RUNS: dict[str, tuple[Race, tuple[JsonObject, ...], str]] = {
    "cancel at once": (at_once, (SLOW,), "cancelled"),
    "cancel with no turn running": (no_turn, (ONE,), "ended"),
    "late cancel": (late, (ONE,), "ended"),
    "cancel while a permission answer is awaited; client answers cancelled": (
        permission_answered, (WRITES,), "cancelled",
    ),
    "cancel while a permission answer is awaited; client never answers": (
        permission_never_answered, (WRITES,), "cancelled",
    ),
    "late permission answer": (permission_answered_late, (WRITES,), "cancelled"),
    "cancel while a stubborn tool runs": (
        stubborn_tool, (step(tool_call("shell", {"command": STUBBORN})),), "cancelled",
    ),
    "two cancels": (two_cancels, (SLOW,), "cancelled"),
    "the stop itself raises": (raising_stop, (HALF,), "cancelled"),
}  # fmt: skip
OF_ACP_ALONE = frozenset(name for name in NAMES if "permission" in name)  # the SDK wire has no question to answer
PLAYED = [(wire, name) for name in NAMES for wire in WIRES if wire == "acp" or name not in OF_ACP_ALONE]


def test_the_races_are_those_of_the_case() -> None:
    assert list(RUNS) == NAMES
    assert (len(NAMES), len(OF_ACP_ALONE), RACES["bound_s"]) == (9, 3, 2.0)


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize(("wire", "name"), PLAYED, ids=[f"{wire}-{name}" for wire, name in PLAYED])
def test_case_B29_a_race_ends_with_one_answer_and_the_next_prompt_works(
    wire: str, name: str, channels: Channels, tmp_path: Path
) -> None:
    race, steps, ending = RUNS[name]
    mock = channels.loopback(script(*steps, NEXT))
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

    wanted = CANCELLED[wire] if ending == "cancelled" else ENDED[wire]
    assert (first, endings, said[before:]) == ([wanted], [wanted, ENDED[wire]], ["next"])
    assert said[:before] == (["one"] if steps == (ONE,) else [])
    assert took_s < RACES["bound_s"] + BUSY_S
    assert (left, (server.workspace / "written.txt").exists(), "never" in str(said)) == ([], False, False)
    prompts = [frame for frame in server.frames if "stopReason" in str(frame.get("result"))]
    assert all(sum(is_answer(one, frame["id"]) for one in server.frames) == 1 for frame in prompts)
