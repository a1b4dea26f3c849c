"""Reading the stream plan of a script or a step: how texts are cut, when the writes go out.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

from mock_provider.script_fields import Fields
from mock_provider.script_source import Items, Scalar
from mock_provider.steps import Split, StreamPlan

STREAM_KEYS = (
    "split",
    "first_ms",
    "every_ms",
    "tokens_per_s",
    "jitter_ms",
    "seed",
    "events_per_write",
    "bytes_per_write",
    "drip",
    "keep_alive_ms",
    "end_marks",
    "trailing",
)
SPLIT_KEYS = ("chars", "words", "bytes", "list")
DRIP_KEYS = ("bytes", "every_ms")
MAX_WAIT_MS = 600_000  # ten minutes: no test waits longer, so more is a slip of the unit
MAX_PIECES = 1_000_000
MAX_END_MARKS = 10
MAX_SEED = (1 << 53) - 1  # what every JSON reader keeps exactly


def read_stream(fields: Fields, default: StreamPlan) -> StreamPlan:
    """Read the key `stream`; keys that are absent take their values from the default."""
    node = fields.node("stream")
    if node is None:
        return default
    inner = Fields(node, fields.path("stream"), fields.findings, STREAM_KEYS)

    def count(key: str, least: int, most: int, otherwise: int) -> int:
        given = inner.integer(key, least, most)
        return otherwise if given is None else given

    rate = inner.number("tokens_per_s", 0, MAX_PIECES)
    trailing = inner.text("trailing")
    drip_bytes, drip_ms = _drip(inner, default)
    return StreamPlan(
        split=_split(inner, default.split),
        first_ms=count("first_ms", 0, MAX_WAIT_MS, default.first_ms),
        every_ms=count("every_ms", 0, MAX_WAIT_MS, default.every_ms),
        events_per_write=count("events_per_write", 0, MAX_PIECES, default.events_per_write),
        end_marks=count("end_marks", 0, MAX_END_MARKS, default.end_marks),
        tokens_per_s=default.tokens_per_s if rate is None else rate,
        jitter_ms=count("jitter_ms", 0, MAX_WAIT_MS, default.jitter_ms),
        seed=count("seed", 0, MAX_SEED, default.seed),
        bytes_per_write=count("bytes_per_write", 0, MAX_PIECES, default.bytes_per_write),
        drip_bytes=drip_bytes,
        drip_ms=drip_ms,
        keep_alive_ms=count("keep_alive_ms", 0, MAX_WAIT_MS, default.keep_alive_ms),
        trailing=default.trailing if trailing is None else trailing,
    )


def _drip(fields: Fields, default: StreamPlan) -> tuple[int, int]:
    node = fields.node("drip")
    if node is None:
        return default.drip_bytes, default.drip_ms
    inner = Fields(node, fields.path("drip"), fields.findings, DRIP_KEYS)
    size, every = inner.integer("bytes", 1, MAX_PIECES), inner.integer("every_ms", 0, MAX_WAIT_MS)
    return 1 if size is None else size, 0 if every is None else every


def _split(fields: Fields, default: Split) -> Split:
    node = fields.node("split")
    if node is None:
        return default
    expected = "whole, words, {chars: N}, {words: N}, {bytes: N} or a list of texts"
    if isinstance(node, Items):
        return Split("list", 0, fields.texts("split") or ())
    if isinstance(node, Scalar):
        if node.value == "whole":
            return Split()
        if node.value == "words":
            return Split("words", 1)
        fields.add("split", "cannot split like this", "SCRIPT_VALUE", expected=expected)
        return default
    inner = Fields(node, fields.path("split"), fields.findings, SPLIT_KEYS)
    if len(inner.given()) != 1:
        fields.add("split", "not one way to split", "SCRIPT_VALUE", expected=expected)
        return default
    key = inner.given()[0]
    if key == "list":
        return Split("list", 0, inner.texts("list") or ())
    size = inner.integer(key, 1, MAX_PIECES) or 1
    if key == "chars":
        return Split("chars", size)
    return Split("words", size) if key == "words" else Split("bytes", size)
