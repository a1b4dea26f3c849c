"""A process that is killed while it keeps a picture leaves no message without it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from harness.log.attachments import FOLDER_NAME
from harness.log.attachments_objects import ObjectFiles
from harness.log.attachments_rules import attachment_id_of
from harness.log.attachments_sweep import LEAST_GRACE_MS, sweep
from harness.log.store import SessionStore

ROOT = Path(__file__).parents[3]
CHILD = Path(__file__).with_name("attachments_child.py")


def _picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), (1, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


PICTURE = _picture()
DIGEST = attachment_id_of(PICTURE).removeprefix("sha256:")
POINTS = [*(f"sync-{number}" for number in range(1, 9)), "link-1", "admitted"]


def killed_at(point: str, root: Path) -> tuple[int, list[str], list[str]]:
    """The exit code of the child, the pictures the log names, and the objects."""
    command = [sys.executable, str(CHILD), str(root), point]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, input=PICTURE, env=environment, capture_output=True, timeout=60, check=False)
    sessions = SessionStore(root, clock=lambda: 1)
    named = [
        block.attachment.attachment_id
        for listing in sessions.list()
        if listing.header is not None
        for event in sessions.inspect(listing.header.id).events
        for message in getattr(event.payload, "inserted", ())
        for block in message.content
    ]
    objects = [found.name for found in ObjectFiles(root / FOLDER_NAME).list()]
    return ended.returncode, named, objects


@pytest.mark.parametrize("point", POINTS)
def test_A04_a_process_killed_before_the_message_leaves_no_message(tmp_path: Path, point: str) -> None:
    code, named, objects = killed_at(point, tmp_path)
    assert (code, named, set(objects) <= {DIGEST}) == (-signal.SIGKILL, [], True)


@pytest.mark.parametrize("point", ["queued", "end"])
def test_A04_a_message_that_reached_the_disk_has_its_picture(tmp_path: Path, point: str) -> None:
    code, named, objects = killed_at(point, tmp_path)
    assert (code, named, objects) == (0 if point == "end" else -signal.SIGKILL, [f"sha256:{DIGEST}"], [DIGEST])


async def test_A04_what_a_killed_process_left_is_an_orphan_and_is_swept(tmp_path: Path) -> None:
    _, _, objects = await asyncio.to_thread(killed_at, "admitted", tmp_path)
    files = ObjectFiles(tmp_path / FOLDER_NAME)
    (orphan,) = files.list()
    now = orphan.changed_ms
    young = await sweep(tmp_path, clock=lambda: now + LEAST_GRACE_MS, grace_ms=LEAST_GRACE_MS)
    old = await sweep(tmp_path, clock=lambda: now + LEAST_GRACE_MS + 1, grace_ms=LEAST_GRACE_MS)
    assert (young.removed, list(old.removed), files.list(), files.staged()) == ((), objects, (), ())
