"""Cancels at random moments of admission: never a late message, and no orphan that the sweep does not find."""

from __future__ import annotations

import asyncio
import base64
import random
from pathlib import Path

import pytest

from harness.log.attachments_sweep import LEAST_GRACE_MS, sweep
from harness.model.messages import ImageBlock
from lanes.unit.surfaces.acp_bench import ONE_PIXEL, PICTURE, AcpBench, stop, storing, words
from lanes.unit.surfaces.scripted import say

pytestmark = pytest.mark.claim("acp.admission")


async def test_a_hundred_cancels_at_random_moments_queue_no_late_message(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - repeatable, and no secret
    store = storing(tmp_path)
    bench = AcpBench(tmp_path, *[say("ok")] * 100, store=store)
    session = await bench.ready()
    agent = bench.agent(session)
    late = 0
    for attempt in range(100):
        picture = PICTURE | {"data": base64.b64encode(_gif(attempt)).decode()}
        number = bench.prompt(session, words("a"), picture)
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0 if chance.random() < 0.7 else 0.001)
        asked = len(bench.script.requests)
        was_answered = any(frame.get("id") == number for frame in bench.sink.frames)
        bench.cancel(session)
        answer = await bench.answer(number)
        assert was_answered or stop(answer) == "cancelled"
        late += len(bench.script.requests) - asked
    named = {
        block.attachment.attachment_id.removeprefix("sha256:")
        for event in agent.log
        for message in getattr(event.payload, "inserted", ())
        for block in message.content
        if isinstance(block, ImageBlock)
    }
    await bench.leave()
    orphans = set(bench.pictures()) - named
    root = tmp_path / "sessions"
    newest = max(path.stat().st_mtime_ns for path in root.rglob("*")) // 1_000_000
    swept = await sweep(root, clock=lambda: newest + 2 * LEAST_GRACE_MS, grace_ms=LEAST_GRACE_MS)
    assert (late, set(swept.removed)) == (0, orphans)


def _gif(number: int) -> bytes:
    """A picture of its own: the palette differs."""
    return ONE_PIXEL[:13] + bytes([number]) + ONE_PIXEL[14:]
