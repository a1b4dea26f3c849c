"""Decode pictures to their last pixel, to know that they are what they say.

Room: only the attachment store comes in, off the event loop. The only room that knows the image package, which is an
optional extra: without it no type is accepted.
"""

from __future__ import annotations

import io
import itertools

from harness.errors import UsageError
from harness.log.attachments_headers import ImageHeader, read_header
from harness.log.attachments_rules import Limits, Upload, place_of

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}
_CODECS = {"image/png": "zlib", "image/jpeg": "jpg", "image/webp": "webp"}  # compiled in or not; GIF needs none


def accepted_types() -> frozenset[str]:
    """The media types that can be decoded here; none without the image package."""
    try:
        from PIL import features
    except ImportError:
        return frozenset()
    return frozenset(name for name in _FORMATS if name not in _CODECS or features.check(_CODECS[name]))


def check_picture(position: int, upload: Upload, limits: Limits) -> ImageHeader:
    """The header of a picture of which every pixel was decoded.

    Limits: the size is looked at before anything is decoded, the frames of a moving picture while they are. A PNG whose
    pixels end early in a well-formed way is taken, as every viewer takes it.
    Raises: UsageError [INVALID_IMAGE], [IMAGE_TYPE_MISMATCH], [IMAGE_TOO_MANY_PIXELS], [IMAGE_TOO_MANY_FRAMES].
    """
    where = place_of(position, upload)
    header = read_header(upload.data)
    if header is None:
        raise _invalid(where, "the data is no PNG, JPEG, WebP or GIF picture")
    if header.media_type != upload.media_type:
        raise UsageError(
            f"the picture is {header.media_type}, it was declared as {upload.media_type}",
            where=where,
            fix="declare the type it has",
            code="IMAGE_TYPE_MISMATCH",
        )
    if header.width * header.height > limits.max_pixels:
        raise _too_many(where, f"{header.width} x {header.height} pixels", limits.max_pixels)
    try:
        frames, decoded = _decode(upload.data, _FORMATS[header.media_type], limits)
    except Exception as error:  # a decoder of strangers' bytes may raise anything, and each of it means one thing
        raise _invalid(where, f"the picture does not decode: {type(error).__name__}") from error
    if frames > limits.max_frames:
        raise UsageError(
            f"the picture has more than {limits.max_frames} frames",
            where=where,
            fix="send fewer of them",
            code="IMAGE_TOO_MANY_FRAMES",
        )
    if decoded > limits.max_decoded_pixels:
        raise _too_many(where, "the frames of the picture together have more pixels", limits.max_decoded_pixels)
    return header


def _decode(data: bytes, image_format: str, limits: Limits) -> tuple[int, int]:
    """How many frames and pixels were decoded; more than the limits when it gave up because of them.

    Shape: a JPEG with more pictures behind it, as phones write them, counts as its first one, which is what everybody
    shows.
    """
    from PIL import Image

    with Image.open(io.BytesIO(data), formats=(image_format,)) as image:
        image.verify()  # checks sums that decoding passes over; the image cannot be used afterwards
    with Image.open(io.BytesIO(data), formats=(image_format,)) as image:
        known = 1 if image_format == "JPEG" else None if image_format == "GIF" else getattr(image, "n_frames", 1)
        decoded = 0
        for frame in itertools.count() if known is None else range(known):
            try:
                image.seek(frame)
            except EOFError:
                if known is None and frame:  # a GIF has no count of its frames, and to count them is to read them
                    return frame, decoded
                raise
            decoded += image.width * image.height
            if frame == limits.max_frames or decoded > limits.max_decoded_pixels:
                return frame + 1, decoded
            image.load()
    return known or 0, decoded


def _invalid(where: str, what: str) -> UsageError:
    return UsageError(what, where=where, fix="open and save it anew with another program", code="INVALID_IMAGE")


def _too_many(where: str, what: str, limit: int) -> UsageError:
    return UsageError(
        what, where=where, expected=f"up to {limit} pixels", fix="make it smaller", code="IMAGE_TOO_MANY_PIXELS"
    )
