"""Every way to write a step is read as what it says."""

from __future__ import annotations

import pytest

from mock_provider.errors import ScriptError
from mock_provider.script import parse_script
from mock_provider.steps import (
    AtGate,
    Break,
    Comment,
    ErrorEvent,
    FaultAt,
    GateAt,
    HttpError,
    Malformed,
    RawBytes,
    Reasoning,
    RefusalText,
    Split,
    Step,
    StreamPlan,
    Text,
    ToolCall,
    Usage,
)


def read(step: str, top: str = "") -> Step:
    script = parse_script(f"version: 1\n{top}\nsteps: [{step}]\n", "x.yaml")
    return script.conversations[0].steps()[0]


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        pytest.param("hi", Text("hi"), id="bare-text"),
        pytest.param("{text: hi}", Text("hi"), id="one-part"),
        pytest.param("[{reasoning: hm}]", Reasoning("hm"), id="reasoning"),
        pytest.param("[{refusal: 'no'}]", RefusalText("no"), id="refusal"),
        pytest.param("[{gate: g.1-a_b}]", AtGate("g.1-a_b"), id="gate"),
        pytest.param("[{fault: stall}]", Break("stall"), id="fault"),
        pytest.param("[{malformed: '{'}]", Malformed("{"), id="malformed"),
        pytest.param("[{hex: 'ff 00'}]", RawBytes(b"\xff\x00"), id="hex"),
        pytest.param("[{comment: keep-alive}]", Comment("keep-alive"), id="comment"),
        pytest.param("[{error_event: boom}]", ErrorEvent("boom"), id="error-text"),
        pytest.param("[{error_event: {message: m, code: c, type: t}}]", ErrorEvent("m", "c", "t"), id="error"),
        pytest.param("[{tool_call: {name: f}}]", ToolCall("f", {}), id="call"),
        pytest.param(
            "[{tool_call: {name: f, arguments: '{\"a\": 1}'}}]", ToolCall("f", {"a": 1}), id="arguments-as-text"
        ),
        pytest.param("[{tool_call: {name: f, raw: '{'}}]", ToolCall("f", None, "{"), id="raw"),
        pytest.param("[{tool_call: {name: f, id: null}}]", ToolCall("f", {}, None, None, True), id="no-id"),
        pytest.param(
            "[{tool_call: {name: f, id: c, index: 2}}]", ToolCall("f", {}, None, "c", True, 2), id="id-and-index"
        ),
    ],
)
def test_a_part_is_read(reply: str, part: object) -> None:
    assert read(f"{{reply: {reply}}}").parts == (part,)


@pytest.mark.parametrize(
    ("written", "error"),
    [
        pytest.param("503", HttpError(503), id="status-alone"),
        pytest.param(
            "{status: 429, retry_after: 1.5, headers: {X-A: 1}}",
            HttpError(429, headers=(("x-a", "1"),), retry_after_s=1.5),
            id="headers",
        ),
        pytest.param(
            "{status: 502, body: '<html>', content_type: text/plain}",
            HttpError(502, body="<html>", content_type="text/plain"),
            id="body",
        ),
    ],
)
def test_an_error_is_read_at_the_step_and_as_the_only_part(written: str, error: HttpError) -> None:
    assert read(f"{{http_error: {written}}}").http_error == error
    assert read(f"{{reply: [{{http_error: {written}}}]}}").http_error == error


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        pytest.param("fault: reset", "fault", FaultAt("reset"), id="fault"),
        pytest.param("reply: hi, fault: {kind: cut, after: 0}", "fault", FaultAt("cut", 0), id="fault-after"),
        pytest.param("reply: hi, gate: a", "gates", (GateAt("a"),), id="gate"),
        pytest.param("reply: hi, gate: [a, {name: b, after: 2}]", "gates", (GateAt("a"), GateAt("b", 2)), id="gates"),
        pytest.param("reply: hi, finish: null", "finish", None, id="finish-null"),
        pytest.param("reply: hi, finish: {raw: odd}", "finish", "odd", id="finish-raw"),
        pytest.param("reply: hi, usage: none", "usage", Usage(is_absent=True), id="usage-none"),
        pytest.param("reply: hi, usage: {input: 3}", "usage", Usage(input=3), id="usage"),
        pytest.param("reply: hi, repeat: forever", "repeat", None, id="forever"),
        pytest.param("reply: hi, optional: true", "is_optional", True, id="optional"),
        pytest.param("reply: hi, model: m", "model", "m", id="model"),
        pytest.param("reply: hi, stream: {split: words}", "stream", StreamPlan(Split("words", 1)), id="words"),
        pytest.param("reply: hi, stream: {split: whole}", "stream", StreamPlan(), id="whole"),
        pytest.param("reply: hi, stream: {split: {words: 2}}", "stream", StreamPlan(Split("words", 2)), id="two-words"),
        pytest.param(
            "reply: hi, stream: {split: {list: [h, i]}}", "stream", StreamPlan(Split("list", 0, ("h", "i"))), id="list"
        ),
        pytest.param(
            "reply: hi, stream: {first_ms: 1, every_ms: 2, events_per_write: 0, end_marks: 0}",
            "stream",
            StreamPlan(Split(), 1, 2, 0, 0),
            id="times",
        ),
    ],
)
def test_a_step_is_read(written: str, name: str, value: object) -> None:
    assert getattr(read(f"{{{written}}}"), name) == value


def test_a_step_takes_the_stream_plan_of_the_script_where_it_has_none() -> None:
    top = "stream: {split: {chars: 3}, every_ms: 5}"
    assert read("{reply: hi}", top).stream == StreamPlan(Split("chars", 3), 0, 5)
    assert read("{reply: hi, stream: {every_ms: 0}}", top).stream == StreamPlan(Split("chars", 3))


@pytest.mark.parametrize(
    ("written", "field"),
    [
        pytest.param("reply: hi, gate: 'a b'", "gate", id="gate-name"),
        pytest.param("reply: hi, gate: {after: 1}", "gate", id="gate-without-name"),
        pytest.param("fault: rest", "fault", id="fault"),
        pytest.param("fault: {after: 1}", "fault", id="fault-without-kind"),
        pytest.param("reply: hi, repeat: 0", "repeat", id="repeat"),
        pytest.param("reply: hi, stream: {split: letters}", "stream.split", id="split"),
        pytest.param("reply: hi, stream: {split: {chars: 1, words: 1}}", "stream.split", id="two-splits"),
        pytest.param("reply: hi, stream: {split: {chars: 0}}", "stream.split.chars", id="chars"),
        pytest.param("reply: hi, stream: {every_ms: 1.5}", "stream.every_ms", id="fraction"),
        pytest.param("reply: hi, usage: {output: 1, reasoning: 2}", "usage.reasoning", id="reasoning"),
        pytest.param("reply: hi, usage: 3", "usage", id="usage"),
        pytest.param("reply: hi, optional: 1", "optional", id="optional"),
        pytest.param("reply: hi, model: 3", "model", id="model"),
        pytest.param("reply: [{}]", "reply[0]", id="empty-part"),
        pytest.param("reply: [{tool_call: f}]", "reply[0].tool_call", id="call"),
        pytest.param("reply: [{tool_call: {name: f, arguments: [1]}}]", "reply[0].tool_call.arguments", id="arguments"),
        pytest.param(
            "reply: [{tool_call: {name: f, arguments: {a: '{{x}}'}}}]", "reply[0].tool_call.arguments.a", id="copy"
        ),
        pytest.param("http_error: 200", "http_error", id="status"),
        pytest.param("http_error: {message: x}", "http_error", id="no-status"),
        pytest.param("http_error: {status: 429, headers: {'a b': c}}", "http_error.headers.a b", id="header-name"),
        pytest.param('http_error: {status: 429, headers: {a: "b\\nc"}}', "http_error.headers.a", id="header-value"),
        pytest.param("reply: hi, http_error: 500", "http_error", id="reply-and-error"),
        pytest.param(
            "reply: hi, expect: {last_user: {equals: a, contains: b}}", "expect.last_user", id="two-conditions"
        ),
        pytest.param("reply: hi, expect: {last_user: {absent: false}}", "expect.last_user.absent", id="absent-false"),
        pytest.param("reply: hi, expect: {tools: {includes: [a], absent: [b]}}", "expect.tools", id="two-tools"),
        pytest.param("reply: hi, expect: {tools: [1]}", "expect.tools[0]", id="tool-name"),
        pytest.param("reply: hi, expect: {messages: {min: 3, max: 2}}", "expect.messages", id="counts"),
        pytest.param("reply: hi, expect: {headers: {a: [b]}}", "expect.headers.a", id="header-condition"),
        pytest.param("reply: hi, expect: {absent: ['a..b']}", "expect.absent[0]", id="path"),
        pytest.param("reply: hi, expect: {absent: [1]}", "expect.absent[0]", id="path-type"),
        pytest.param("reply: hi, expect: {tool_result: {regex: '('}}", "expect.tool_result.regex", id="regex"),
    ],
)
def test_a_slip_in_a_step_is_named_by_its_field(written: str, field: str) -> None:
    with pytest.raises(ScriptError) as caught:
        read(f"{{{written}}}")
    assert [one.field for one in caught.value.problems] == [f"steps[0].{field}" if field else "steps[0]"]
