"""A picture of the store reaches the service as a picture, or the request says why not."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from harness.errors import AttachmentError
from harness.log.attachments import AttachmentStore
from harness.log.attachments_rules import Upload
from harness.model.call import CancelSignal, ModelRequest
from harness.model.chunks import Failure, Finish
from harness.model.messages import AttachmentRef, ImageBlock, Message, MessageId, TextBlock, UserSource
from harness.provider.http import build_model

ENDS = {
    "openai_chat": b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    "openai_responses": b'data: {"type":"response.output_text.delta","output_index":0,"delta":"ok"}\n\n'
    b'data: {"type":"response.completed","response":{}}\n\n',
    "anthropic_messages": b'data: {"type":"content_block_start","content_block":{"type":"text","text":"ok"}}\n\n'
    b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n',
}

Reader = Callable[[AttachmentRef], Awaitable[bytes]]


class Cancel:
    """A cancel signal the test can give."""

    def __init__(self) -> None:
        self._given = asyncio.Event()

    @property
    def cancelled(self) -> bool:
        return self._given.is_set()

    async def wait(self) -> None:
        await self._given.wait()

    def give(self) -> None:
        self._given.set()


class Service(httpx.AsyncBaseTransport):
    """A service that keeps what it was sent and always answers."""

    def __init__(self, dialect: str) -> None:
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self._dialect = dialect

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        self.bodies.append(json.loads(await request.aread()))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=ENDS[self._dialect])


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), (9, 8, 7)).save(buffer, "PNG")
    return buffer.getvalue()


def asking(*references: AttachmentRef) -> ModelRequest:
    content = (TextBlock("what is this?"), *(ImageBlock(reference) for reference in references))
    return ModelRequest("p", "m", (Message(MessageId("u"), "user", content, UserSource()),))


async def ask(
    dialect: str, request: ModelRequest, reader: Reader | None, cancel: CancelSignal | None = None, **options: float
) -> tuple[Finish, Service]:
    service = Service(dialect)
    model = build_model(
        base_url="http://127.0.0.1:9/v1",
        api_key=None,
        transport=service,
        dialect=dialect,
        read_picture=reader,
        **options,  # type: ignore[arg-type] # time limits by name
    )
    chunks = [chunk async for chunk in model.stream(request, cancel or Cancel())]
    last = chunks[-1]
    assert isinstance(last, Finish)
    return last, service


@pytest.fixture
async def stored(tmp_path: Path) -> tuple[AttachmentStore, AttachmentRef]:
    store = AttachmentStore(tmp_path / "pictures")
    (reference,) = await store.admit([Upload(picture(), "image/png", "a.png")])
    return store, reference


TEXT = base64.b64encode(picture()).decode()
PARTS = {
    "openai_chat": ("messages", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{TEXT}"}}),
    "openai_responses": (
        "input",
        {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{TEXT}"},
    ),
    "anthropic_messages": (
        "messages",
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": TEXT}},
    ),
}


@pytest.mark.parametrize("dialect", ENDS)
async def test_a_stored_picture_is_sent_as_a_picture(
    dialect: str, stored: tuple[AttachmentStore, AttachmentRef]
) -> None:
    store, reference = stored
    finish, service = await ask(dialect, asking(reference), store.read)
    field, part = PARTS[dialect]
    assert (finish, service.bodies[0][field][0]["content"][1]) == (Finish("stop"), part)


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        ("openai_chat", "/v1/chat/completions"),
        ("openai_responses", "/v1/responses"),
        ("anthropic_messages", "/v1/messages"),
    ],
)
async def test_each_dialect_is_spoken_at_its_own_path(dialect: str, path: str) -> None:
    finish, service = await ask(dialect, asking(), None)
    assert (finish, service.paths) == (Finish("stop"), [path])


@pytest.mark.parametrize("dialect", ENDS)
async def test_a_text_only_route_sends_nothing(dialect: str, stored: tuple[AttachmentStore, AttachmentRef]) -> None:
    finish, service = await ask(dialect, asking(stored[1]), None)
    assert (finish.failure and finish.failure.code, service.bodies) == ("UNSUPPORTED_CONTENT", [])


async def test_A03_a_damaged_picture_ends_the_request_with_its_own_code(
    stored: tuple[AttachmentStore, AttachmentRef],
) -> None:
    store, reference = stored
    (found,) = store.files.list()
    found.path.write_bytes(picture()[:-1])
    damaged, service = await ask("openai_chat", asking(reference), store.read)
    found.path.unlink()
    missing, _ = await ask("openai_chat", asking(reference), store.read)
    where = f"attachment {reference.attachment_id}"
    assert (damaged.failure, missing.failure, service.bodies) == (
        Failure(
            f"{where}: the stored picture is damaged: its bytes are not those that were stored", "ATTACHMENT_CORRUPT"
        ),
        Failure(
            f"{where}: the picture is not in the store; send the same picture again in any session of this root, put "
            "its file back, or fork the session before the message that names it",
            "ATTACHMENT_NOT_FOUND",
        ),
        [],
    )


async def test_a_request_of_text_asks_the_reader_for_nothing() -> None:
    async def read(reference: AttachmentRef) -> bytes:
        raise AttachmentError(reference.attachment_id)

    finish, service = await ask("openai_chat", asking(), read)
    assert (finish, len(service.bodies)) == (Finish("stop"), 1)


async def test_S08_a_cancel_while_pictures_are_read_is_a_cancel() -> None:
    cancel = Cancel()

    async def read(reference: AttachmentRef) -> bytes:
        cancel.give()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")

    reference = AttachmentRef("sha256:1", "image/png", 1, 1, 1)
    finish, service = await ask("openai_chat", asking(reference), read, cancel)
    assert (finish.kind, finish.failure and finish.failure.code, service.bodies) == ("aborted", "ABORTED", [])


async def test_a_reader_that_never_answers_is_a_timeout() -> None:
    async def read(reference: AttachmentRef) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")

    reference = AttachmentRef("sha256:1", "image/png", 1, 1, 1)
    finish, service = await ask("openai_chat", asking(reference), read, first_byte_timeout_s=0.05)
    assert (finish.failure and finish.failure.code, service.bodies) == ("TIMEOUT", [])
