"""Every way to write a fault, an error answer and a rhythm is read as what it says, or told with its place."""

from __future__ import annotations

import pytest

from mock_provider.errors import ScriptError
from mock_provider.script import parse_script
from mock_provider.steps import Break, ErrorEvent, FaultAt, HttpError, RandomFaults, Step, StreamPlan, Usage


def read(step: str, top: str = "") -> Step:
    script = parse_script(f"version: 1\n{top}\nsteps:\n  - {step}\n", "x.yaml")
    return script.conversations[0].steps()[0]


def problem_of(step: str) -> str:
    with pytest.raises(ScriptError) as caught:
        read(step)
    return "\n".join(problem.what for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        pytest.param("fault: refuse", "fault", FaultAt("refuse", None, 200), id="refuse"),
        pytest.param("fault: {kind: refuse, for_ms: 9}", "fault", FaultAt("refuse", None, 9), id="refuse-for"),
        pytest.param(
            "reply: hi, fault: {kind: keep_alive, after: 1, every_ms: 5}",
            "fault",
            FaultAt("keep_alive", 1, 5),
            id="signs-of-life",
        ),
        pytest.param("reply: hi, fault: duplicate", "fault", FaultAt("duplicate"), id="harm-of-the-first-event"),
        pytest.param("reply: hi, fault: truncate", "fault", FaultAt("truncate"), id="half-of-the-first-event"),
        pytest.param(
            "reply: hi, fault: {random: {weights: {none: 2, '503': 0.5}, seed: 4, in_a_row: 1}}",
            "random",
            RandomFaults((("none", 2.0), ("503", 0.5)), 4, 1),
            id="random",
        ),
        pytest.param("reply: [{fault: swap}]", "parts", (Break("swap"),), id="part"),
        pytest.param(
            "reply: [{error_event: {cause: quota}}]",
            "parts",
            (ErrorEvent("", None, "server_error", "quota"),),
            id="event-by-cause",
        ),
        pytest.param("http_error: quota", "http_error", HttpError(0, cause="quota"), id="cause"),
        pytest.param(
            "http_error: {cause: overloaded, retry_after: 2}",
            "http_error",
            HttpError(0, cause="overloaded", retry_after_s=2),
            id="cause-with-header",
        ),
        pytest.param(
            "http_error: {cause: overloaded, status: 500}", "http_error", HttpError(500, cause="overloaded"), id="both"
        ),
        pytest.param("http_error: {status: 500, body: ''}", "http_error", HttpError(500, body=""), id="empty-body"),
        pytest.param("http_error: {status: 200, body: '{}'}", "http_error", HttpError(200, body="{}"), id="own-body"),
        pytest.param("reply: hi, usage: {times: 2}", "usage", Usage(times=2), id="usage-twice"),
        pytest.param("reply: hi, headers: {X-A: 1}", "headers", (("x-a", "1"),), id="headers"),
        pytest.param("reply: hi, content_type: text/plain", "content_type", "text/plain", id="content-type"),
        pytest.param(
            "reply: hi, stream: {tokens_per_s: 20, jitter_ms: 3, seed: 1, bytes_per_write: 4, trailing: x}",
            "stream",
            StreamPlan(tokens_per_s=20, jitter_ms=3, seed=1, bytes_per_write=4, trailing="x"),
            id="rhythm",
        ),
        pytest.param(
            "reply: hi, stream: {drip: {}, keep_alive_ms: 5}",
            "stream",
            StreamPlan(drip_bytes=1, keep_alive_ms=5),
            id="drip",
        ),
    ],
)
def test_a_step_is_read(written: str, name: str, value: object) -> None:
    assert getattr(read(f"{{{written}}}"), name) == value


def test_faults_by_lot_hold_for_every_step_of_a_script() -> None:
    top = "fault: {random: {weights: {reset: 1}, seed: 2}}"
    assert read("{reply: hi}", top).random == RandomFaults((("reset", 1.0),), 2)


@pytest.mark.parametrize(
    ("written", "what"),
    [
        pytest.param("{fault: rest}", "'rest' is unknown; did you mean 'reset'?", id="kind"),
        pytest.param("{fault: {after: 1}}", "'kind' is missing", id="no-kind"),
        pytest.param("{fault: {kind: reset, for_ms: 1}}", "a reset has no for_ms", id="for"),
        pytest.param("{fault: {kind: refuse, after: 1}}", "a connection that is refused has no pieces", id="after"),
        pytest.param("{reply: hi, fault: refuse}", "a refuse before any byte, so the reply is never sent", id="reply"),
        pytest.param("{reply: [{fault: refuse}]}", "'refuse' is unknown", id="refused-among-parts"),
        pytest.param("{http_error: overload}", "'overload' is unknown; did you mean 'overloaded'?", id="cause"),
        pytest.param("{http_error: {cause: x}}", "'x' is unknown", id="cause-in-mapping"),
        pytest.param("{http_error: {message: m}}", "'status' is missing", id="neither"),
        pytest.param("{http_error: {status: 200}}", "200 is out of range", id="no-error-without-body"),
        pytest.param("{http_error: 200}", "200 is no error status", id="bare-200"),
        pytest.param("{reply: [{error_event: {cause: gateway}}]}", "'gateway' is unknown", id="page-in-a-stream"),
        pytest.param("{reply: hi, stream: {tokens_per_s: fast}}", 'found the text "fast"', id="rate"),
        pytest.param("{reply: hi, stream: {drip: {bytes: 0}}}", "0 is out of range", id="drip"),
        pytest.param("{reply: hi, headers: {content-length: 3}}", "'content-length' is set by", id="own-header"),
    ],
)
def test_a_mistake_is_told(written: str, what: str) -> None:
    assert what in problem_of(written)
