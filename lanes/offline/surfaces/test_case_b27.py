"""The field case of stray output, through both real servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.noisy import BEFORE, BETWEEN, END, TURN
from lanes.offline.surfaces.wire import OPEN, RealServer
from mock_provider.replies import script, step

CASES = Path(__file__).parents[2] / "cases" / "rpc"
NOISY = str(Path(__file__).parent / "noisy.py")
STRAY = json.loads((CASES / "B27-stray-output.json").read_text("utf-8"))
ENDED = {"sdk": "completed", "acp": "end_turn"}
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
@pytest.mark.parametrize("wire", ENDED)
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
