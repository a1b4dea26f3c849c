"""Reading a JSON document as the standard says: by the fastest reader there is, and by the one that decides.

Room: pure; the reader of bodies comes in.
The extra `speed` brings msgspec. What it reads it reads as the standard library does, and what it does not read (halves
of characters, another encoding, text that is no JSON) is left to the standard library, which alone decides. Tests hold
the two against each other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from mock_provider.json_values import Json

WORTH_BYTES = 64 << 10  # read before; most tests ask less
_OTHER_ENCODINGS = (
    b"\0",
    b"\xef",
    b"\xfe",
    b"\xff",
)  # a byte order mark, or a wide character; no JSON in UTF-8 begins so


def _not_a_number(word: str) -> Json:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is out of range")
    return value


DECODER = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite)


def parse_strictly(data: bytes) -> Json:
    """Read a document as the standard says: no NaN, no infinite numbers. Raises: ValueError, RecursionError."""
    if data.startswith(_OTHER_ENCODINGS) or data[1:2] == b"\0":
        value: Json = json.loads(data, parse_constant=_not_a_number, parse_float=_finite)
    else:
        value = DECODER.decode(data.decode("utf-8", "surrogatepass"))
    return value


class FastReader:
    """The fastest reader there is, loaded once there is something to gain: loading takes as long as reading a megabyte.

    Shape: read raises ValueError or RecursionError also for some documents that parse_strictly reads.
    """

    __slots__ = ("_left_bytes", "read")

    def __init__(self) -> None:
        self._left_bytes = WORTH_BYTES
        self.read: Callable[[bytes], Json] = self._read_first

    def load(self) -> None:
        """Load it, where it is installed."""
        try:
            import msgspec
        except ImportError:
            self.read = parse_strictly
        else:
            self.read = msgspec.json.Decoder().decode

    def _read_first(self, data: bytes) -> Json:
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self.load()
        return parse_strictly(data)


FAST = FastReader()


def parse(data: bytes) -> Json:
    """Read a document as parse_strictly does, as fast as can be. Raises: ValueError, RecursionError."""
    try:
        return FAST.read(data)
    except (ValueError, RecursionError):
        return parse_strictly(data)
