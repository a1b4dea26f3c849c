"""Admits a picture and queues a message that names it, and is killed at the point its arguments say.

Room: started by test_attachments_killed.py as a process of its own: SESSION_ROOT POINT, where POINT is a call of the
disk (sync-1, link-1, sync-2, …), admitted, queued or end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from harness.log.attachments import FOLDER_NAME, AttachmentStore
from harness.log.attachments_rules import Upload
from harness.log.disk import Disk
from harness.log.events import SessionHeader
from harness.log.inbox import Inbox, insert_payload
from harness.log.store import SessionStore
from harness.model.messages import AttachmentRef, ImageBlock, Message, MessageId, SessionId, UserSource


def die_at(name: str, point: str) -> None:
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)


class DyingDisk(Disk):
    """A disk under a process that is killed just behind one of its calls, with everything queued so far on disk."""

    def __init__(self, point: str, flush: Callable[[], None]) -> None:
        self._point = point
        self._flush = flush
        self._counts = {"sync": 0, "link": 0}

    def _after(self, name: str) -> None:
        self._counts[name] += 1
        self._flush()
        die_at(f"{name}-{self._counts[name]}", self._point)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self._after("sync")

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self._after("link")


async def run(root: Path, point: str) -> None:
    writer = await SessionStore(root, clock=lambda: 1).create(SessionHeader(SessionId("s1"), 1))
    loop = asyncio.get_running_loop()
    disk = DyingDisk(point, lambda: asyncio.run_coroutine_threadsafe(writer.flush(), loop).result())
    store = AttachmentStore(root / FOLDER_NAME, disk=disk)

    def queue(references: tuple[AttachmentRef, ...]) -> None:
        die_at("admitted", point)
        content = tuple(ImageBlock(reference) for reference in references)
        message = Message(MessageId("m1"), "user", content, UserSource())
        writer.log.append(insert_payload(Inbox(), message, "next-turn"))

    upload = Upload(sys.stdin.buffer.read(), "image/png", "a.png")
    await store.admit_and_queue([upload], queue, is_cancelled=lambda: False)
    await writer.flush()
    die_at("queued", point)
    await writer.close()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
