"""The log: a line for each request, for a person or a program, without bodies and secrets."""

from __future__ import annotations

import json

import httpx

import mock_provider
from mock_provider.json_values import JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step
from mock_provider.request_log import Form, RequestLog

BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "canary-words"}]}

EXHAUSTED = "script: request 2 arrived, 1 step is scripted [SCRIPT_EXHAUSTED]"


def lines_of(form: Form) -> list[str]:
    lines: list[str] = []
    log = RequestLog(form, lines.append)
    log.event("seed", "random faults, seed 7")
    mock = Mock(script(step("hi")), log=log)
    with httpx.Client(transport=mock_provider.transport(mock), base_url=mock.base_url()) as client:
        for _ in range(2):
            client.post("/chat/completions", json=BODY, headers={"authorization": "Bearer canary-key-01"})
    return lines


def test_a_person_reads_one_line_a_request() -> None:
    assert lines_of("text") == [
        "mock-provider: random faults, seed 7\n",
        "#1 POST /v1/chat/completions → 200 single step 1, complete\n",
        f"#2 POST /v1/chat/completions → 400, complete: {EXHAUSTED}\n",
    ]


def test_a_program_reads_one_object_a_line() -> None:
    lines = [json.loads(line) for line in lines_of("json")]
    assert lines[0] == {"event": "seed", "text": "random faults, seed 7"}
    wanted = ("event", "number", "status", "step", "matched", "end")
    assert [[line[key] for key in wanted] for line in lines[1:]] == [
        ["request", 1, 200, 1, True, "complete"],
        ["request", 2, 400, None, False, "complete"],
    ]


def test_no_line_holds_a_key_or_a_body() -> None:
    assert "canary-key" not in "".join(lines_of("json") + lines_of("text"))
    assert [line for line in lines_of("json") if '"body"' in line or '"headers"' in line] == []
