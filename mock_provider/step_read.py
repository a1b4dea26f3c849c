"""Reading the steps of a script: expectation, reply, faults, gates, usage and stream plan.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mock_provider.expect import Expect
from mock_provider.expect_read import read_expect
from mock_provider.fault_read import read_fault
from mock_provider.json_values import canonical_json
from mock_provider.limits import Limits
from mock_provider.part_read import check_gate_name, read_headers, read_http_error, read_parts
from mock_provider.pieces import split_text
from mock_provider.script_fields import Fields, Findings, near_miss
from mock_provider.script_fit import find_misfits
from mock_provider.script_source import Entries, Items, Node, Scalar
from mock_provider.steps import (
    DEADLY_KINDS,
    Comment,
    GateAt,
    HttpError,
    Malformed,
    Part,
    RandomFaults,
    RawBytes,
    Reasoning,
    RefusalText,
    Step,
    StreamPlan,
    Text,
    ToolCall,
    Usage,
)
from mock_provider.stream_read import read_stream
from mock_provider.values import value

STEP_KEYS = (
    "expect",
    "reply",
    "http_error",
    "fault",
    "gate",
    "finish",
    "usage",
    "stream",
    "repeat",
    "optional",
    "model",
    "headers",
    "content_type",
)
FINISHES = ("stop", "tool_calls", "length", "content_filter")
GATE_KEYS = ("name", "after")
COUNT_KEYS = ("input", "output", "cached", "reasoning")
USAGE_KEYS = (*COUNT_KEYS, "times")
MAX_TOKENS = 1 << 40
MAX_TIMES = 10  # usage in a stream more than once
MAX_REPEAT = 1_000_000
MAX_AFTER = 1_000_000


@value
class Defaults:
    """What the script says for all its steps."""

    stream: StreamPlan = field(default_factory=StreamPlan)
    random: RandomFaults | None = None
    event_bytes: int = Limits().event_bytes
    dialects: tuple[str, ...] = ()


def read_step(node: Node, path: str, findings: Findings, number: int, defaults: Defaults) -> Step:
    """Read one step; what it does not say for itself it takes from the script."""
    fields = Fields(node, path, findings, STEP_KEYS)
    expect_node = fields.node("expect")
    expect = read_expect(expect_node, fields.path("expect"), findings) if expect_node else None
    groups = expect.group_names() if expect else frozenset()
    parts, http_error = _answer(fields, groups)
    fault, own_random = read_fault(fields)
    may_draw = fault is None and http_error is None
    plan = read_stream(fields, defaults.stream)
    step = Step(
        number=number,
        expect=expect,
        parts=parts,
        http_error=http_error,
        fault=fault,
        gates=_gates(fields),
        finish=_finish(fields),
        usage=_usage(fields),
        stream=plan,
        repeat=_repeat(fields),
        is_optional=fields.boolean("optional") or False,
        model=fields.named("model"),
        mark=node.mark,
        random=(own_random or defaults.random) if may_draw else None,
        headers=read_headers(fields),
        content_type=fields.header("content_type"),
    )
    _check_sense(step, fields)
    _check_size(step, fields, defaults.event_bytes)
    _check_fit(step, fields, defaults.dialects)
    return step


def _check_fit(step: Step, fields: Fields, dialects: tuple[str, ...]) -> None:
    """Note what a dialect that the script is written for has no place for."""
    reply = fields.node("reply")
    parts = reply.items if isinstance(reply, Items) else (reply,) if reply is not None else ()
    for dialect in dialects:
        for misfit in find_misfits(step, dialect):
            key = misfit.key if fields.has(misfit.key) else ""
            node = fields.node(misfit.key)
            field, mark = (fields.path(key), node.mark) if node is not None else (fields.field, fields.mark)
            if misfit.part is not None and len(parts) == len(step.parts):
                mark = parts[misfit.part].mark
                field = f"{field}[{misfit.part}]" if isinstance(reply, Items) else field
            fields.findings.add(mark, field, misfit.what, "SCRIPT_DIALECT", expected=misfit.expected)


def _answer(fields: Fields, groups: frozenset[str]) -> tuple[tuple[Part, ...], HttpError | None]:
    http_error: HttpError | None = None
    error_node = fields.node("http_error")
    if error_node is not None:
        http_error = read_http_error(error_node, fields.path("http_error"), fields.findings, groups)
    reply = fields.node("reply")
    if reply is None:
        return (), http_error
    found = read_parts(reply, fields.path("reply"), fields.findings, groups)
    parts: list[Part] = []
    for part in found:
        if isinstance(part, HttpError):
            http_error = part
        else:
            parts.append(part)
    return tuple(parts), http_error


def _check_sense(step: Step, fields: Fields) -> None:
    """Note what cannot be meant: nothing to say, or an answer that never goes out."""
    if not fields.has("reply") and not fields.has("http_error") and not fields.has("fault"):
        if isinstance(fields.node("expect"), Entries) or fields.given():
            fields.require("reply", "what the model answers (or http_error, or fault)")
        else:
            fields.findings.add(fields.mark, fields.field, "an empty step", "SCRIPT_MISSING", expected="reply: …")
    if fields.has("reply") and fields.has("http_error"):
        fields.add("http_error", "both reply and http_error", "SCRIPT_VALUE", expected="one of them")
    is_silent = step.fault is not None and step.fault.kind in DEADLY_KINDS and step.fault.kind != "truncate"
    if fields.has("reply") and step.fault is not None and is_silent and step.fault.after is None:
        fields.add(
            "fault",
            f"a {step.fault.kind} before any byte, so the reply is never sent",
            "SCRIPT_VALUE",
            expected=f"fault: {{kind: {step.fault.kind}, after: PIECES}}, or no reply",
        )
    split = step.stream.split
    if split.by == "list" and fields.has("stream"):
        whole = "".join(part.text for part in step.parts if isinstance(part, Text))
        if "{{" not in whole and "".join(split.pieces) != whole:
            what = "the pieces of stream.split do not add up to the text of the reply"
            fields.add("stream", what, "SCRIPT_VALUE", expected="pieces whose sum is the text")


def _check_size(step: Step, fields: Fields, limit: int) -> None:
    """Note a piece that is too large for one event."""
    size = max((len(piece) for part in step.parts for piece in _pieces(part, step)), default=0)
    if size > limit:
        what = f"a piece of {size} bytes is more than {limit}"
        fields.add(
            "reply", what, "SCRIPT_SIZE", fix="stream: {split: {chars: N}}, or raise the limit: --limit event=SIZE"
        )


def _pieces(part: Part, step: Step) -> Iterator[bytes]:
    if isinstance(part, Text | Reasoning | RefusalText):
        text = part.text
    elif isinstance(part, ToolCall):
        text = part.raw if part.raw is not None else canonical_json(part.arguments)
    elif isinstance(part, Malformed | Comment):
        yield part.text.encode("utf-8", "surrogatepass")
        return
    else:
        yield part.data if isinstance(part, RawBytes) else b""
        return
    for piece in split_text(text, step.stream.split):
        yield piece.encode("utf-8", "surrogatepass")


def _gates(fields: Fields) -> tuple[GateAt, ...]:
    node = fields.node("gate")
    if node is None:
        return ()
    field = fields.path("gate")
    nodes = node.items if isinstance(node, Items) else (node,)
    gates: list[GateAt] = []
    for at, item in enumerate(nodes):
        here = f"{field}[{at}]" if isinstance(node, Items) else field
        if isinstance(item, Scalar) and isinstance(item.value, str):
            if check_gate_name(item.value, item, here, fields.findings):
                gates.append(GateAt(item.value))
            continue
        inner = Fields(item, here, fields.findings, GATE_KEYS)
        inner.require("name", "the gate's name")
        name, after = inner.text("name"), inner.integer("after", 0, MAX_AFTER)
        if name is not None and check_gate_name(name, item, here, fields.findings):
            gates.append(GateAt(name, after))
    return tuple(gates)


def _finish(fields: Fields) -> str | None:
    node = fields.node("finish")
    if node is None:
        return ""
    if isinstance(node, Scalar) and node.value is None:
        return None
    if isinstance(node, Entries):
        return Fields(node, fields.path("finish"), fields.findings, ("raw",)).text("raw") or ""
    word = fields.text("finish")
    if word is not None and word not in FINISHES:
        what = f"'{word}' is unknown{near_miss(word, FINISHES)}"
        expected = f"one of {', '.join(FINISHES)}, null to leave it out, or {{raw: WORD}}"
        fields.add("finish", what, "SCRIPT_VALUE", expected=expected)
    return word or ""


def _usage(fields: Fields) -> Usage:
    node = fields.node("usage")
    if node is None:
        return Usage()
    if isinstance(node, Scalar) and node.value == "none":
        return Usage(is_absent=True)
    inner = Fields(node, fields.path("usage"), fields.findings, USAGE_KEYS)
    counts = {key: inner.integer(key, 0, MAX_TOKENS) for key in COUNT_KEYS}
    given, cached = counts["input"], counts["cached"]
    if given is not None and cached is not None and cached > given:
        inner.add("cached", f"cached {cached} is more than input {given}", "SCRIPT_VALUE")
    said, reasoning = counts["output"], counts["reasoning"]
    if said is not None and reasoning is not None and reasoning > said:
        inner.add("reasoning", f"reasoning {reasoning} is more than output {said}", "SCRIPT_VALUE")
    times = inner.integer("times", 1, MAX_TIMES) or 1
    return Usage(counts["input"], counts["output"], counts["cached"], counts["reasoning"], times=times)


def _repeat(fields: Fields) -> int | None:
    node = fields.node("repeat")
    if isinstance(node, Scalar) and node.value == "forever":
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str):
        what = f"'{node.value}' is unknown{near_miss(node.value, ('forever',))}"
        fields.add("repeat", what, "SCRIPT_VALUE", expected="a number from 1, or forever")
        return 1
    return fields.integer("repeat", 1, MAX_REPEAT) or 1


def accepts_everything(expect: Expect | None) -> bool:
    """Whether no request can fail these conditions."""
    return expect is None or expect == Expect()
