"""Facts of a log are read off its rows, and a log that says something else than the story is told so."""

import json
from pathlib import Path

import pytest

from lanes.errors import ScenarioError
from lanes.scenario import LogFacts
from lanes.story_log import check_log, log_facts, read_rows, turn_failures, unpack_rows


def _result(call_id: str, code: str | None = None) -> dict[str, object]:
    block = {"type": "tool-result", "toolCallId": call_id, "content": [], **({"isError": True} if code else {})}
    error = {"error": {"name": "ToolError", "code": code}} if code else {}
    return {"type": "tool/result", "seq": 3, "data": {"message": {"content": [block]}, **error}}


ROWS = [
    {"type": "session", "id": "s"},
    {"type": "request/header", "seq": 0, "data": {"reason": "initial"}},
    {
        "type": "llm/retry",
        "seq": 1,
        "data": {"delayMs": 1000, "failure": {"code": "RATE_LIMIT", "providerRetryAfterMs": 1000}},
    },
    {"type": "tool/call", "seq": 2, "data": {"callId": "call_1"}},
    _result("call_1"),
    {"type": "tool/call", "seq": 4, "data": {"callId": "call_2"}},
    _result("call_2", "TOOL_TIMEOUT"),
    {"type": "turn/end", "seq": 6, "data": {"reason": {"kind": "completed"}}},
]
FACTS = LogFacts(
    turn_ends=("completed",),
    tools=("call call_1", "result call_1", "call call_2", "error call_2 TOOL_TIMEOUT"),
    retries=("RATE_LIMIT 1000",),
    headers=("initial",),
)


def test_the_facts_are_read_in_order() -> None:
    assert log_facts(ROWS) == FACTS


def test_facts_a_story_does_not_name_are_not_compared() -> None:
    assert check_log(LogFacts(), ROWS) == []


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        pytest.param(
            LogFacts(turn_ends=("aborted",)), "log, turn_ends: ['completed'], expected ['aborted']", id="turn-end"
        ),
        pytest.param(LogFacts(retries=()), "log, retries: ['RATE_LIMIT 1000'], expected []", id="retry"),
        pytest.param(LogFacts(headers=()), "log, headers: ['initial'], expected []", id="header"),
    ],
)
def test_another_fact_is_named_with_both_values(wanted: LogFacts, problem: str) -> None:
    assert check_log(wanted, ROWS) == [problem]


def test_a_tool_that_ran_twice_is_another_order() -> None:
    twice = [*ROWS[:5], *ROWS[3:5], *ROWS[5:]]

    assert check_log(FACTS, twice) != []


def test_a_torn_last_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    whole = read_rows(path)
    path.write_text(path.read_text(encoding="utf-8")[:-1], encoding="utf-8")

    assert whole == ROWS
    with pytest.raises(ScenarioError, match="no newline"):
        read_rows(path)


def test_a_packed_run_and_the_same_run_unpacked_are_one_list_of_events() -> None:
    packed = [
        {
            "type": "text-chunks",
            "seq0": 4,
            "time0": 100,
            "data": {"turn": 1, "step": 2, "index": 0, "dt": [5, -2], "texts": ["a", "b", "c"]},
        },
        {
            "type": "tool-call-chunks",
            "seq0": 7,
            "time0": 110,
            "data": {"turn": 1, "step": 2, "index": 1, "id": "call_1", "dt": [0], "args": ["{", "}"]},
        },
    ]

    def delta(seq: int, time: int, **chunk: object) -> dict[str, object]:
        data = {"turn": 1, "step": 2, "chunk": chunk}
        return {"type": "assistant/chunk", "seq": seq, "time": time, "data": data}

    assert unpack_rows([ROWS[0], *packed]) == [
        ROWS[0],
        delta(4, 100, type="text-delta", index=0, text="a"),
        delta(5, 105, type="text-delta", index=0, text="b"),
        delta(6, 103, type="text-delta", index=0, text="c"),
        delta(7, 110, type="tool-call-delta", index=1, id="call_1", argumentsDelta="{"),
        delta(8, 110, type="tool-call-delta", index=1, id="call_1", argumentsDelta="}"),
    ]
    assert unpack_rows(unpack_rows(packed)) == unpack_rows(packed)


def test_the_failure_of_a_turn_is_given_with_code_and_message() -> None:
    failure = {"code": "AUTH", "message": "no such key"}
    rows = [*ROWS, {"type": "turn/end", "seq": 7, "data": {"reason": {"kind": "error", "failure": failure}}}]

    assert turn_failures(rows) == ("AUTH: no such key",)
