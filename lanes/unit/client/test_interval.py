"""The interval of a receipt when runs overlap: as each client collects it live, and as it reads it off the log."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.client.runs import RunCollector, Told
from harness.log.events import Cause, Event, InboxSpliced, TurnEnd, UserMessage
from harness.log.interval import receipt_interval
from harness.log.json_form import event_to_json
from harness.loop.agent import StatusChange
from harness.model.messages import MessageId
from lanes.plugin import not_run
from lanes.unit.loop.rig import Rig, message
from lanes.unit.loop.scripted_model import failing, text

Make = Callable[..., Rig]
Pair = tuple[int | None, int | None]
ANSWERS = (text("fine"), text("cut", kind="max-tokens"), failing("BAD_REQUEST"))
ACTIONS = ("followup", "steer", "inject", "cancel", "park", "nothing", "nothing")
NODE_SCRIPT = Path(__file__).parent / "intervals.mjs"


async def told_of(seed: int) -> tuple[Rig, list[tuple[str, dict[str, Any]]]]:
    """A session with work that overlaps at random, and what a client is told of it, in wire order."""
    chance = random.Random(seed)  # noqa: S311 - chooses what a test does
    rig = Rig(endless=lambda request: chance.choice(ANSWERS))
    told: list[tuple[str, dict[str, Any]]] = []
    left = [12]

    def on_event(event: Event) -> None:
        told.append(("session.event", {"sessionId": "s", "event": event_to_json(event)}))

    def on_status(change: StatusChange) -> None:
        told.append(("session.status", {"sessionId": "s", "status": change.status}))

    def act(event: Event) -> None:
        if not isinstance(event.payload, UserMessage) or left[0] == 0:
            return
        left[0] -= 1
        action = chance.choice(ACTIONS)
        if action in ("followup", "steer", "inject"):
            getattr(rig.agent, action)(message(f"more-{event.seq}"))
        elif action in ("cancel", "park"):
            rig.agent.cancel(Cause("user"), keep_inbox=action == "park")
            if chance.random() < 0.5:
                rig.agent.followup(message(f"after-{event.seq}"))

    rig.log.observe(on_event)
    rig.agent.observe_status(on_status)
    rig.log.observe(act)
    for at in range(3):
        for number in range(chance.randint(1, 3)):
            rig.agent.followup(message(f"go-{at}-{number}"))
        await rig.idle()
    return rig, json.loads(json.dumps(told))


def messages_of(rig: Rig) -> list[MessageId]:
    """Every message that came in, each once."""
    spliced = [event.payload for event in rig.log if isinstance(event.payload, InboxSpliced)]
    return list(dict.fromkeys(inserted.id for payload in spliced for inserted in payload.inserted))


def live(told: list[tuple[str, dict[str, Any]]], message_id: MessageId) -> Pair:
    """What a run of the Python client collects: its first event, and its last turn end."""
    collector = RunCollector("s", message_id, None)
    for method, params in told:
        if collector.take(Told(method, params)):
            break
    events = collector.result().events
    ends = [event["seq"] for event in events if event["type"] == "turn/end"]
    return (events[0]["seq"] if events else None, ends[-1] if ends else None)  # type: ignore[return-value]


def off_log(rig: Rig, message_id: MessageId) -> Pair:
    """What the log alone says."""
    found = receipt_interval(rig.log, message_id)
    return (None, None) if found is None else (found.first, found.last)


def ends_with_a_turn(rig: Rig, pair: Pair) -> bool:
    """Whether an interval ends with a turn, and not because its message was taken out before any turn took it."""
    return pair[1] is not None and isinstance(rig.log[pair[1]].payload, TurnEnd)


@pytest.mark.parametrize("first_seed", range(0, 60, 20))
async def test_CL11_what_a_client_collects_is_the_interval_of_the_log(first_seed: int) -> None:
    shapes: set[int] = set()
    for seed in range(first_seed, first_seed + 20):
        rig, told = await told_of(seed)
        intervals = {name: off_log(rig, name) for name in messages_of(rig)}
        ended = [name for name, pair in intervals.items() if ends_with_a_turn(rig, pair)]
        assert {name: live(told, name) for name in ended} == {name: intervals[name] for name in ended}, seed
        assert all(live(told, name)[0] == pair[0] for name, pair in intervals.items()), seed
        shapes.add(len(ended) - len({intervals[name][1] for name in ended}))
    assert max(shapes) > 1  # runs that share their end were among them


async def test_CL11_both_clients_find_the_same_intervals_live_and_in_the_log(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        not_run("missing-dependency", "node")
    sessions = [await told_of(seed) for seed in range(100)]
    given = tmp_path / "sessions.json"
    asked = [{"told": told, "messages": messages_of(rig)} for rig, told in sessions]
    given.write_text(json.dumps(asked), "utf-8")

    command = [node, str(NODE_SCRIPT), str(given)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)

    expected = [
        {name: {"live": list(live(told, name)), "log": list(off_log(rig, name))} for name in messages_of(rig)}
        for rig, told in sessions
    ]
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == expected
