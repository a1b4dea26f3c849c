"""The field case of cancel races where nothing runs: a cancel before the first prompt, and one after its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.wire import RealServer, is_answer
from mock_provider.replies import script, step

RACES = json.loads((Path(__file__).parents[2] / "cases" / "rpc" / "B29-cancel-races.json").read_text("utf-8"))
BEFORE, LATE = "cancel with no turn running", "late cancel"
ENDED = {"sdk": "completed", "acp": "end_turn"}


def test_nothing_runs_in_two_races_of_the_case() -> None:
    steps = {run["name"]: run["steps"] for run in RACES["runs"] if run["name"] in {BEFORE, LATE}}
    assert [(steps[BEFORE].index("send cancel"), len(steps[BEFORE])), steps[LATE].index("send cancel")] == [(0, 2), 2]


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("name", [BEFORE, LATE])
@pytest.mark.parametrize("wire", ENDED)
def test_case_B29_a_cancel_while_nothing_runs_is_forgotten_and_the_next_prompt_works(
    wire: str, name: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(step("one"), step("next", expect={"last_user": "and then"})))
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        session = server.open_session()
        asked = []
        for number, words in enumerate(["work", "and then"], start=1):
            if number == [BEFORE, LATE].index(name) + 1:
                server.write(server.cancel_line(session))
            asked.append(server.prompt(session, words))
            endings = server.ended(number)
        said, left = server.texts(), server.children()
        assert server.leave() == 0

    assert (endings, said, left) == ([ENDED[wire]] * 2, ["one", "next"], [])
    assert [sum(is_answer(frame, one) for frame in server.frames) for one in asked] == [1, 1]
