"""Requests to the bytes of their bodies, with the pictures they name.

Room: provider only. The bytes of pictures come from whoever built the model; without a reader a route takes text only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from harness.errors import UsageError
from harness.model.call import ModelRequest
from harness.model.messages import AttachmentRef
from harness.provider.dialects import Dialect
from harness.wire.growing_body import GrowingBody
from harness.wire.pictures import Pictures, pictures_in

# Gives the checked bytes of a stored picture; what it raises ends the request.
PictureReader: TypeAlias = Callable[[AttachmentRef], Awaitable[bytes]]


class Bodies:
    """The bodies of one model's requests, one after the other.

    Shape: a request of text is encoded at once, without a wait, and begins with the bytes of the one before where it
    can. One with pictures is encoded whole, off the event loop, after every picture was read.
    Raises: UsageError [UNSUPPORTED_CONTENT] for pictures on a route without a reader; what the reader raises.
    """

    def __init__(self, dialect: Dialect, read_picture: PictureReader | None) -> None:
        self._dialect = dialect
        self._read_picture = read_picture
        self._encode_text: Callable[[ModelRequest], bytes] = self._encode_whole
        if dialect.growth is not None:
            self._encode_text = GrowingBody(dialect.encode_request, dialect.growth).encode

    async def encode(self, request: ModelRequest) -> bytes:
        """The body of this request."""
        try:
            return self._encode_text(request)
        except UsageError as error:
            if self._read_picture is None or error.error_code != "UNSUPPORTED_CONTENT":
                raise
        pictures = {found.attachment_id: await self._read_picture(found) for found in pictures_in(request)}
        return await asyncio.to_thread(self._encode_whole, request, pictures)

    def _encode_whole(self, request: ModelRequest, pictures: Pictures | None = None) -> bytes:
        return self._dialect.encode_body(self._dialect.encode_request(request, pictures))
