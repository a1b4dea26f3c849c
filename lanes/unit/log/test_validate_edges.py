"""Values that Python holds and a log must not: each is refused by the name of its field."""

from __future__ import annotations

import pytest

from harness.errors import InvalidEventError
from harness.log.events import (
    AssistantChunk,
    Event,
    Header,
    InboxSpliced,
    RequestConfig,
    RequestHeader,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
)
from harness.log.fold import call_seq, unanswered_calls
from harness.log.json_form import event_from_json, event_to_json
from harness.model.messages import CallId


def request(**options: object) -> RequestHeader:
    return RequestHeader(Header(RequestConfig("mock", "m", **options)), "initial")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("payload", "where", "what"),
    [
        pytest.param(
            request(temperature=-0.0),
            "data.header.config.temperature",
            "-0.0 does not survive JSON",
            id="minus-zero",
        ),
        pytest.param(
            request(temperature=10.5), "data.header.config.temperature", "10.5 is not a temperature", id="hot"
        ),
        pytest.param(
            request(temperature=True), "data.header.config.temperature", "True is not a temperature", id="true"
        ),
        pytest.param(
            InboxSpliced("next-turn", 0, removed=iter(())),  # type: ignore[arg-type] # the mistake under test
            "data",
            "removed and inserted have to be lists",
            id="an-iterator-for-a-list",
        ),
        pytest.param(TurnEnd(1, TurnReason("done")), "data.reason.kind", None, id="unknown-reason"),  # type: ignore[arg-type]
        pytest.param(AssistantChunk(1, 1, TurnStart(1)), "data.chunk", None, id="no-stream-piece"),  # type: ignore[arg-type]
    ],
)
def test_an_event_made_past_the_append_is_refused_by_its_field(make, payload, where: str, what: str | None) -> None:
    log = make.log()
    with pytest.raises(InvalidEventError) as raised:
        log.restore(Event(0, 0, payload))
    assert (raised.value.where, what or raised.value.what, len(log)) == (where, raised.value.what, 0)


def test_a_stored_tool_result_holds_text_and_pictures_only(make) -> None:
    log = make.log()
    value = event_to_json(log.append(make.result("c1")))
    value["data"]["message"]["content"][0]["content"] = [{"type": "reasoning", "text": "hm"}]
    with pytest.raises(InvalidEventError) as raised:
        event_from_json(value)
    assert (raised.value.where, raised.value.what) == (
        "data.message.content[0].content[0]",
        "is neither text nor an image",
    )


def test_a_step_nobody_recorded_has_no_calls(make) -> None:
    log = make.log()
    assert (unanswered_calls(log, 1, 1), call_seq(log, 1, 1, CallId("c1"))) == ((), None)
    make.turn(log, 1)
    assert (unanswered_calls(log, 1, 2), call_seq(log, 1, 2, CallId("c1"))) == ((), None)
    assert not any(isinstance(event.payload, ToolResult) for event in log)
