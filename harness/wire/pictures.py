"""The pictures of a request: which ones it holds, and their bytes as text for a body.

Room: pure; the dialects, the provider's shell and the loop may come in. Who reads the bytes hands them in.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from harness.errors import InternalError, UsageError
from harness.model.call import ModelRequest
from harness.model.messages import AttachmentRef, ImageBlock, Message, ToolResultBlock

# The bytes of every picture of a request by attachment id; None stands for a route that takes text only.
Pictures: TypeAlias = Mapping[str, bytes]


def pictures_in(request: ModelRequest) -> tuple[AttachmentRef, ...]:
    """The pictures of a request, each reference once, in the order in which they are met."""
    return tuple(dict.fromkeys(picture for message in request.messages for picture in pictures_of(message)))


def pictures_of(message: Message) -> Iterator[AttachmentRef]:
    """The pictures of a message, those in the results of its tools too, in their order."""
    for block in message.content:
        for part in block.content if isinstance(block, ToolResultBlock) else (block,):
            if isinstance(part, ImageBlock):
                yield part.attachment


def base64_of(block: ImageBlock, pictures: Pictures | None) -> str:
    """The picture's bytes in base64 with padding and without line breaks.

    Raises: UsageError [UNSUPPORTED_CONTENT] on a text-only route.
    """
    if pictures is None:
        raise picture_refused(block)
    data = pictures.get(block.attachment.attachment_id)
    if data is None:
        raise InternalError(f"the bytes of {block.attachment.attachment_id} were not read", where="model request")
    return base64.b64encode(data).decode("ascii")


def data_url(block: ImageBlock, pictures: Pictures | None) -> str:
    """The picture as a URL that holds it.

    Raises: as base64_of.
    Source: RFC 2397, "data:" [ mediatype ] ";base64" "," data.
    """
    return f"data:{block.attachment.media_type};base64,{base64_of(block, pictures)}"


def picture_refused(block: ImageBlock) -> UsageError:
    """Why a picture cannot be sent; dropping it would change what was asked."""
    return UsageError(
        f"a message holds the picture {block.attachment.attachment_id}, here only text can be sent",
        where="model request",
        expected="text",
        fix="choose a model route that takes pictures, or leave the picture out",
        code="UNSUPPORTED_CONTENT",
    )
