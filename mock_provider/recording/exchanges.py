"""One exchange with a provider, as it was seen and as it may be kept.

Room: pure; the proxy notes exchanges, the other rooms of the recording read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mock_provider.incoming import unpack_body

TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)})  # says nothing about the model, so it is not kept
MAX_UNPACKED_BYTES = 64 << 20
END_MARK = b"data: [DONE]"


@dataclass(slots=True)
class Seen:
    """An exchange as it went over the wire, secrets and all; it lives in memory only.

    Shape: target is path and query, header names are in lower case; pieces are (offset_ms, bytes) in order of arrival.
    is_complete tells whether the answer came to its end; failure says why there is none.
    """

    number: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    reason: str = ""
    answer_headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    is_complete: bool = False
    failure: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the answer can be kept: a client may stop reading at the end mark."""
        return self.is_complete or self.answer.rstrip().endswith(END_MARK)

    @property
    def is_transient(self) -> bool:
        """Whether it is an error that may be gone at the next try."""
        return self.status in TRANSIENT

    @property
    def answer(self) -> bytes:
        """All bytes of the answer."""
        return b"".join(piece for _, piece in self.pieces)

    @property
    def content_type(self) -> str:
        """The type of the answer; empty when it says none."""
        return _value(self.answer_headers, "content-type")

    def plain_answer(self) -> bytes | None:
        """The answer unpacked; None when it cannot be."""
        return _unpacked(self.answer, _value(self.answer_headers, "content-encoding"))

    def plain_body(self) -> bytes | None:
        """The request's body unpacked; None when it cannot be."""
        return _unpacked(self.body, self.headers.get("content-encoding", ""))


def _unpacked(data: bytes, encoding: str) -> bytes | None:
    if not data or encoding.lower() in ("", "identity"):
        return data
    unpacked = unpack_body(data, encoding.lower(), MAX_UNPACKED_BYTES)
    return unpacked if isinstance(unpacked, bytes) else None


def _value(headers: list[tuple[str, str]], name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Clean:
    """An exchange without secrets, ready to be written.

    Shape: uri has a host and no loopback port; pieces are (offset_ms, size in bytes) and add up to what was sent.
    has_frames says that answer is not what was sent but the lines of a binary event stream.
    """

    number: int
    method: str
    uri: str
    target: str
    headers: Mapping[str, tuple[str, ...]]
    body: str
    status: int
    reason: str
    answer_headers: Mapping[str, tuple[str, ...]]
    answer: str
    pieces: tuple[tuple[int, int], ...]
    has_frames: bool = False

    @property
    def content_type(self) -> str:
        """The type of the answer; empty when it says none."""
        return (self.answer_headers.get("content-type") or ("",))[0]
