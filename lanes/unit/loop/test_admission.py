"""From a stored picture to a queued message: the gap in which a cancel must never be lost."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from harness.log.attachments import AttachmentStore
from harness.log.attachments_rules import Upload
from harness.log.events import Cause
from harness.model.messages import AttachmentRef, ImageBlock, Message, MessageId, UserSource
from lanes.unit.loop.rig import Rig
from lanes.unit.loop.scripted_model import text

Make = Callable[..., Rig]
ONE_PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


class Client:
    """Whoever sent the picture: cancels once, and reaches the agent only when its message is already queued."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.is_cancelled = False
        self.is_queued = False
        self.cancelling: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.is_queued:
            self._rig.agent.cancel(Cause("user"))

    def did_cancel(self) -> bool:
        return self.is_cancelled

    def queue(self, references: tuple[AttachmentRef, ...]) -> None:
        self.is_queued = True
        content = tuple(ImageBlock(reference) for reference in references)
        self._rig.agent.followup(Message(MessageId("m-1"), "user", content, UserSource()))


def cancel_soon(client: Client, by: str) -> None:
    """Cancel as soon as anybody else runs: from a callback of the event loop, or from a task."""

    async def cancel() -> None:
        client.cancel()

    loop = asyncio.get_running_loop()
    if by == "callback":
        loop.call_soon(client.cancel)
    else:
        client.cancelling = loop.create_task(cancel())


class Storing(AttachmentStore):
    """Lets something happen as soon as anybody else may run after the pictures were stored."""

    then: Callable[[], object]

    async def admit(self, uploads: Sequence[Upload]) -> tuple[AttachmentRef, ...]:
        references = await super().admit(uploads)
        self.then()
        return references


async def test_C10_a_cancel_in_the_gap_between_stored_pictures_and_the_hand_over_asks_no_model(
    make_rig: Make, tmp_path: Path
) -> None:
    for attempt, by in enumerate(["callback", "task"] * 3):
        rig = make_rig(text("too late"))
        rig.may_leave_replies = True
        client = Client(rig)
        store = Storing(tmp_path / str(attempt))
        store.then = partial(cancel_soon, client, by)
        await store.admit_and_queue([Upload(ONE_PIXEL, "image/gif")], client.queue, is_cancelled=client.did_cancel)
        await rig.idle()
        late = len(rig.model.requests)
        assert late == 0, f"model requests after cancel: {late}: {rig.model.requests}"
        assert (client.is_cancelled, "turn+" in rig.shape, rig.agent.pending) == (True, False, 0)


async def test_C10_a_cancel_before_the_gap_leaves_the_log_empty(make_rig: Make, tmp_path: Path) -> None:
    rig = make_rig()
    client = Client(rig)
    store = Storing(tmp_path)
    store.then = client.cancel
    await store.admit_and_queue([Upload(ONE_PIXEL, "image/gif")], client.queue, is_cancelled=client.did_cancel)
    await rig.idle()
    assert (rig.shape, client.is_queued) == ([], False)
