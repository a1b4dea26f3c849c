"""Reading the steps of a script: expectation, reply, faults, gates, usage and stream plan.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

from typing import cast

from mock_provider.expect import Expect
from mock_provider.expect_read import read_expect
from mock_provider.part_read import check_gate_name, read_http_error, read_parts
from mock_provider.script_fields import Fields, Findings, near_miss
from mock_provider.script_source import Entries, Items, Node, Scalar
from mock_provider.steps import (
    FAULT_KINDS,
    FaultAt,
    FaultKind,
    GateAt,
    HttpError,
    Part,
    Split,
    Step,
    StreamPlan,
    Text,
    Usage,
)

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
)
FINISHES = ("stop", "tool_calls", "length", "content_filter")
USAGE_KEYS = ("input", "output", "cached", "reasoning")
STREAM_KEYS = ("split", "first_ms", "every_ms", "events_per_write", "end_marks")
MAX_WAIT_MS = 600_000  # ten minutes: no test waits longer, so more is a slip of the unit
MAX_TOKENS = 1 << 40


def read_step(node: Node, field: str, findings: Findings, number: int, stream: StreamPlan) -> Step:
    """Read one step; `stream` is the plan of the script, used where the step has none."""
    fields = Fields(node, field, findings, STEP_KEYS)
    expect_node = fields.node("expect")
    expect = read_expect(expect_node, fields.path("expect"), findings) if expect_node else None
    groups = expect.group_names() if expect else frozenset()
    parts, http_error = _answer(fields, groups)
    fault = _fault(fields)
    plan = read_stream(fields, stream)
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
        model=fields.text("model"),
        mark=node.mark,
    )
    _check_sense(step, fields)
    return step


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
    if fields.has("reply") and step.fault is not None and step.fault.after is None:
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


def _fault(fields: Fields) -> FaultAt | None:
    node = fields.node("fault")
    if node is None:
        return None
    if isinstance(node, Entries):
        inner = Fields(node, fields.path("fault"), fields.findings, ("kind", "after"))
        inner.require("kind", f"one of {', '.join(FAULT_KINDS)}")
        kind, after = inner.choice("kind", FAULT_KINDS), inner.integer("after", 0, 1_000_000)
    else:
        kind, after = fields.choice("fault", FAULT_KINDS), None
    return FaultAt(cast("FaultKind", kind), after) if kind else None


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
        inner = Fields(item, here, fields.findings, ("name", "after"))
        inner.require("name", "the gate's name")
        name, after = inner.text("name"), inner.integer("after", 0, 1_000_000)
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
    counts = {key: inner.integer(key, 0, MAX_TOKENS) for key in USAGE_KEYS}
    given, cached = counts["input"], counts["cached"]
    if given is not None and cached is not None and cached > given:
        inner.add("cached", f"cached {cached} is more than input {given}", "SCRIPT_VALUE")
    said, reasoning = counts["output"], counts["reasoning"]
    if said is not None and reasoning is not None and reasoning > said:
        inner.add("reasoning", f"reasoning {reasoning} is more than output {said}", "SCRIPT_VALUE")
    return Usage(counts["input"], counts["output"], counts["cached"], counts["reasoning"])


def read_stream(fields: Fields, default: StreamPlan) -> StreamPlan:
    """Read the key `stream`; keys that are absent take their values from the default."""
    node = fields.node("stream")
    if node is None:
        return default
    inner = Fields(node, fields.path("stream"), fields.findings, STREAM_KEYS)
    first, every = inner.integer("first_ms", 0, MAX_WAIT_MS), inner.integer("every_ms", 0, MAX_WAIT_MS)
    per_write, marks = inner.integer("events_per_write", 0, 1_000_000), inner.integer("end_marks", 0, 10)
    return StreamPlan(
        split=_split(inner, default.split),
        first_ms=default.first_ms if first is None else first,
        every_ms=default.every_ms if every is None else every,
        events_per_write=default.events_per_write if per_write is None else per_write,
        end_marks=default.end_marks if marks is None else marks,
    )


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
    inner = Fields(node, fields.path("split"), fields.findings, ("chars", "words", "bytes", "list"))
    if len(inner.given()) != 1:
        fields.add("split", "not one way to split", "SCRIPT_VALUE", expected=expected)
        return default
    key = inner.given()[0]
    if key == "list":
        return Split("list", 0, inner.texts("list") or ())
    size = inner.integer(key, 1, 1_000_000) or 1
    if key == "chars":
        return Split("chars", size)
    return Split("words", size) if key == "words" else Split("bytes", size)


def _repeat(fields: Fields) -> int | None:
    node = fields.node("repeat")
    if isinstance(node, Scalar) and node.value == "forever":
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str):
        what = f"'{node.value}' is unknown{near_miss(node.value, ('forever',))}"
        fields.add("repeat", what, "SCRIPT_VALUE", expected="a number from 1, or forever")
        return 1
    return fields.integer("repeat", 1, 1_000_000) or 1


def accepts_everything(expect: Expect | None) -> bool:
    """Whether no request can fail these conditions."""
    return expect is None or expect == Expect()
