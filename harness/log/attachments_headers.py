"""What the first bytes of a picture say: its type and its size.

Room: pure; the attachment rooms come in. Reading a stored picture needs no more than this and no package.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
# Start of frame, C0 to CF, save for what else lies in that row: tables (C4, CC) and an extension (C8).
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})  # no length follows these


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """A picture's type and size in pixels, as its header states them."""

    media_type: str
    width: int
    height: int


def read_header(data: bytes) -> ImageHeader | None:
    """The header of a PNG, JPEG, WebP or GIF; None for anything else and for a header that is cut or empty.

    Source: PNG (third edition) 5.2 and 11.2.1, IHDR; GIF89a section 18, logical screen; ITU-T T.81 annex B.2, frame
    header; WebP container specification, VP8X, and RFC 9649 sections 2.5 to 2.7; RFC 6386 section 9.1, VP8 frame.
    """
    try:
        found = _read(data)
    except (struct.error, IndexError):  # the header is cut; the formats are read by fixed offsets only
        return None
    return found if found is not None and found.width > 0 and found.height > 0 else None


def _read(data: bytes) -> ImageHeader | None:
    if data.startswith(_PNG):
        if data[12:16] != b"IHDR":
            return None
        return ImageHeader("image/png", *struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return ImageHeader("image/gif", *struct.unpack_from("<HH", data, 6))
    if data.startswith(b"\xff\xd8"):
        return _read_jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _read_webp(data)
    return None


def _read_jpeg(data: bytes) -> ImageHeader | None:
    at = 2
    while True:
        if data[at] != 0xFF:
            return None
        while data[at] == 0xFF:  # a marker may be preceded by any number of fill bytes
            at += 1
        marker = data[at]
        at += 1
        if marker in _BARE_MARKERS:
            continue
        (length,) = struct.unpack_from(">H", data, at)
        if marker in _FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, at + 3)
            return ImageHeader("image/jpeg", width, height)
        if marker in (0xD9, 0xDA) or length < 2:  # the end, or pixels before any frame
            return None
        at += length


def _read_webp(data: bytes) -> ImageHeader | None:
    match data[12:16]:
        case b"VP8X":
            width = int.from_bytes(data[24:27], "little") + 1
            height = int.from_bytes(data[27:30], "little") + 1
            return ImageHeader("image/webp", width, height) if len(data) >= 30 else None
        case b"VP8L":
            if data[20] != 0x2F:
                return None
            (bits,) = struct.unpack_from("<I", data, 21)
            return ImageHeader("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            if data[23:26] != b"\x9d\x01\x2a":
                return None
            width, height = struct.unpack_from("<HH", data, 26)
            return ImageHeader("image/webp", width & 0x3FFF, height & 0x3FFF)
    return None
