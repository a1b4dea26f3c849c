"""A run that goes on with a session which was cut off says so, and goes on."""

from __future__ import annotations

from pathlib import Path

from lanes.unit.surfaces.conftest import Bench
from lanes.unit.surfaces.scripted import say


def tear(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b'{"type":"turn/sta')


async def test_a_torn_session_is_repaired_and_the_person_is_told(bench: Bench) -> None:
    await bench.run(say("one"))
    (log,) = bench.sessions.rglob("session.jsonl")
    tear(log)
    outcome = await bench.run(say("two"), resume=bench.session_ids()[0])
    assert (outcome.exit_code, outcome.out) == (0, "two\n")
    assert outcome.err == (
        "harness: the session was repaired: the last record is torn; its 17 bytes are not part of the log\n"
    )
