"""A stored picture reaches a model whose service takes pictures, and no other."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from harness.log.attachments import AttachmentStore
from harness.log.attachments_rules import Upload
from harness.log.events import TurnEnd, UserMessage
from harness.model.messages import ImageBlock, Message, TextBlock, UserSource
from lanes.unit.assemble.place import Place
from lanes.unit.surfaces.scripted import say


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 3), (1, 2, 3)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("provider", "parts", "reason"),
    [
        pytest.param("openai", ["text", "image_url"], "completed", id="takes-pictures"),
        pytest.param("deepseek", None, "error", id="text-only"),
    ],
)
async def test_a_picture_is_sent_where_it_is_taken_and_refused_elsewhere(
    tmp_path: Path, provider: str, parts: list[str] | None, reason: str
) -> None:
    place = Place(tmp_path)
    (reference,) = await AttachmentStore.beside(place.sessions).admit([Upload(png(), "image/png", "dot.png")])
    assembled = await place.make(say("seen"), settings=place.settings(provider=provider))
    content = (TextBlock("what is it?"), ImageBlock(reference))
    assembled.agent.followup(Message(assembled.new_message_id(), "user", content, UserSource()))
    await assembled.agent.when_idle()
    end = assembled.agent.log.last(TurnEnd)
    bodies = place.script.requests
    await assembled.close()
    sent = [bodies[0]["messages"][-1]["content"]] if bodies else [None]
    kinds = None if sent[0] is None else [part["type"] for part in sent[0]]
    assert end is not None
    assert (kinds, end.payload.reason.kind) == (parts, reason)
    if parts:
        assert sent[0][1]["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(png()).decode()


async def test_A03_a_missing_picture_ends_turns_until_it_is_sent_again_and_each_says_so(tmp_path: Path) -> None:
    place = Place(tmp_path)
    store = AttachmentStore.beside(place.sessions)
    (reference,) = await store.admit([Upload(png(), "image/png", "dot.png")])
    assembled = await place.make(say("seen"), say("seen again"), settings=place.settings(provider="openai"))

    async def told(*content: TextBlock | ImageBlock) -> tuple[str, str]:
        assembled.agent.followup(Message(assembled.new_message_id(), "user", content, UserSource()))
        await assembled.agent.when_idle()
        end = assembled.agent.log.last(TurnEnd)
        assert end is not None
        failure = end.payload.reason.failure
        return end.payload.reason.kind, "" if failure is None else f"{failure.message} [{failure.code}]"

    await told(TextBlock("what is it?"), ImageBlock(reference))
    named = assembled.agent.log.last(UserMessage)
    assert named is not None
    (stored,) = [found.path for found in store.files.list()]
    stored.unlink()
    kind, said = await told(TextBlock("and now?"))
    place_of_it = f"session {assembled.agent.id}, event {named.seq}, attachment {reference.attachment_id}: "
    assert (kind, said.startswith(place_of_it), "send the same picture again" in said) == ("error", True, True)
    assert said.endswith("[ATTACHMENT_NOT_FOUND]")
    assert (str(tmp_path) in said, len(place.script.requests)) == (False, 1)
    assert await store.admit([Upload(png(), "image/png", "dot.png")]) == (reference,)
    assert await told(TextBlock("and now?")) == ("completed", "")
    await assembled.close()
