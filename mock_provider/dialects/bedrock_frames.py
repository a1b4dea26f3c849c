"""Frames of the binary event stream in which Bedrock streams.

Room: pure; the Bedrock streams come in.
Source: Smithy, "Amazon Event Stream": total length, length of the headers and a checksum of both, all 4 bytes and
big-endian; headers, payload, and a checksum of everything before. A header is a name with 1 byte of length, the type 7
for text, and a value with 2 bytes of length. The checksum is CRC-32.
"""

from __future__ import annotations

import struct
import zlib

_TEXT = b"\x07"
_LENGTHS = struct.Struct(">II")
_CHECKSUM = struct.Struct(">I")
_OVERHEAD = _LENGTHS.size + 2 * _CHECKSUM.size


def frame(headers: tuple[tuple[str, str], ...], payload: bytes) -> bytes:
    """Put a message into a frame."""
    spelled = b"".join(map(_header, headers))
    prelude = _LENGTHS.pack(_OVERHEAD + len(spelled) + len(payload), len(spelled))
    message = prelude + _CHECKSUM.pack(zlib.crc32(prelude)) + spelled + payload
    return message + _CHECKSUM.pack(zlib.crc32(message))


def _header(header: tuple[str, str]) -> bytes:
    name, value = (text.encode("utf-8") for text in header)
    return bytes((len(name),)) + name + _TEXT + struct.pack(">H", len(value)) + value


def event(kind: str, payload: bytes) -> bytes:
    """A message of the stream."""
    more = ((":content-type", "application/json"), (":message-type", "event"))
    return frame(((":event-type", kind), *more), payload)


def exception(kind: str, payload: bytes) -> bytes:
    """An error that ends the stream."""
    more = ((":content-type", "application/json"), (":message-type", "exception"))
    return frame(((":exception-type", kind), *more), payload)
