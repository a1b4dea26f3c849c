"""What a picture must be to be kept, and what a reference to one must look like.

Room: pure; the attachment rooms and surfaces come in. Nothing here decodes a picture or touches a disk.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from harness.errors import AttachmentError, UsageError
from harness.model.messages import AttachmentRef

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")  # what all model services with pictures take
MAX_NAME_CHARACTERS = 255  # the longest name a file system holds, and more than a person reads

_ID = re.compile(r"sha256:[0-9a-f]{64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")  # groups of four would be remembered one by one, far beyond the text
# Characters that make a name read otherwise than it is written: "gpj.exe" turned round.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Upload:
    """A picture as it is offered: its bytes, what it is said to be, and the name it had."""

    data: bytes = field(repr=False)
    media_type: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is taken.

    Units: max_pixels is for one frame, max_decoded_pixels for all frames of a moving picture together; the others are
    counts and bytes; max_frames is for one picture. A message's pictures together are one batch.
    """

    max_images: int = 20
    max_batch_bytes: int = 100 << 20
    max_image_bytes: int = 5 << 20
    max_pixels: int = 40_000_000
    max_decoded_pixels: int = 200_000_000  # 5 MiB of GIF can hold thousands of frames; this decodes within seconds
    max_frames: int = 10_000  # and so does this, where each of them is a single pixel


def attachment_id_of(data: bytes) -> str:
    """The id of these bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_in(attachment_id: str) -> str:
    """The 64 digits of an id.

    Raises: AttachmentError [INVALID_ATTACHMENT_REF].
    """
    if not _ID.fullmatch(attachment_id):
        raise AttachmentError(
            f"{attachment_id[:80]!r} is no attachment id",
            where="attachment reference",
            expected="sha256: and 64 lower-case hexadecimal digits",
            code="INVALID_ATTACHMENT_REF",
        )
    return attachment_id.removeprefix("sha256:")


def check_reference(reference: AttachmentRef) -> str:
    """The 64 digits of a reference that no store of ours can have failed to write.

    Raises: AttachmentError [INVALID_ATTACHMENT_REF].
    """
    digest = digest_in(reference.attachment_id)
    if reference.media_type not in MEDIA_TYPES or min(reference.bytes, reference.width, reference.height) < 1:
        raise reference_refused(reference, "it describes no picture")
    return digest


def reference_refused(reference: AttachmentRef, what: str) -> AttachmentError:
    """The error of a reference that does not fit its object."""
    return AttachmentError(
        what,
        where=f"attachment {reference.attachment_id}",
        expected="the reference as it was given when the picture was stored",
        code="INVALID_ATTACHMENT_REF",
    )


def parse_base64(text: str, where: str) -> bytes:
    """The bytes of canonical base64.

    Raises: UsageError [INVALID_IMAGE_BASE64]; the text itself never stands in it.
    Source: RFC 4648 section 4, with padding and without line breaks; section 3.5, unused bits must be zero.
    """
    if len(text) % 4 == 0 and _BASE64.fullmatch(text):
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error:
            data = b""
        if base64.b64encode(data).decode("ascii") == text:
            return data
    raise UsageError(
        f"image data of {len(text)} characters is not canonical base64",
        where=where,
        expected="RFC 4648 section 4, with padding, without line breaks",
        code="INVALID_IMAGE_BASE64",
    )


def check_batch(uploads: Sequence[Upload], limits: Limits, accepted: AbstractSet[str]) -> None:
    """Refuse a batch for what can be seen without decoding: count, bytes, media types, in this order.

    Raises: UsageError [TOO_MANY_IMAGES], [IMAGES_TOO_LARGE], [UNSUPPORTED_IMAGE_TYPE], [IMAGE_TOO_LARGE].
    """
    if len(uploads) > limits.max_images:
        raise UsageError(
            f"{len(uploads)} pictures are too many for one message",
            where="pictures",
            expected=f"up to {limits.max_images}",
            fix="send them in several messages",
            code="TOO_MANY_IMAGES",
        )
    total = sum(len(upload.data) for upload in uploads)
    if total > limits.max_batch_bytes:
        raise UsageError(
            f"the pictures of this message are {total} bytes together",
            where="pictures",
            expected=f"up to {limits.max_batch_bytes} bytes",
            fix="send them in several messages, or smaller",
            code="IMAGES_TOO_LARGE",
        )
    for position, upload in enumerate(uploads):
        if upload.media_type not in accepted:
            raise _type_refused(position, upload, accepted)
    for position, upload in enumerate(uploads):
        if len(upload.data) > limits.max_image_bytes:
            raise UsageError(
                f"the picture is {len(upload.data)} bytes",
                where=place_of(position, upload),
                expected=f"up to {limits.max_image_bytes} bytes",
                fix="make it smaller",
                code="IMAGE_TOO_LARGE",
            )


def _type_refused(position: int, upload: Upload, accepted: AbstractSet[str]) -> UsageError:
    if not accepted:
        return UsageError(
            "no pictures are taken here, the package that reads them is not installed",
            where=place_of(position, upload),
            fix='python -m pip install "five-lanes[images]"',
            code="UNSUPPORTED_IMAGE_TYPE",
        )
    return UsageError(
        f"{upload.media_type[:80]!r} is not taken",
        where=place_of(position, upload),
        expected=f"one of {', '.join(name for name in MEDIA_TYPES if name in accepted)}",
        fix="convert the picture",
        code="UNSUPPORTED_IMAGE_TYPE",
    )


def place_of(position: int, upload: Upload) -> str:
    """How an error names one picture of a batch."""
    name = display_name(upload.name)
    return f"picture {position + 1}" + (f" ({name})" if name else "")


def display_name(name: str | None) -> str | None:
    """The name as it may be shown: its last path part, nothing that moves a terminal, at most MAX_NAME_CHARACTERS.

    Shape: both slashes part a path, whatever system the name came from; a name of which nothing is left is None.
    """
    last = re.split(r"[/\\]", (name or "").rstrip("/\\"))[-1]
    shown = "".join(
        letter for letter in last if unicodedata.category(letter) not in ("Cc", "Zl", "Zp") and letter not in _TURNING
    )
    shown = shown.strip()[:MAX_NAME_CHARACTERS].rstrip()
    return None if shown in ("", ".", "..") else shown
