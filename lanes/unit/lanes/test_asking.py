"""What a story adds to the requests to a small model: sampling, and the tool that a step has to call."""

from __future__ import annotations

import json

import httpx
import pytest

from lanes.asking import AskedStepByStep, tool_choice
from lanes.normalize import Json

SYSTEM: Json = {"role": "system", "content": "be brief"}
USER: Json = {"role": "user", "content": "read it"}
CALL: Json = {"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}
RESULT: Json = {"role": "tool", "tool_call_id": "c", "content": "x"}
SAID: Json = {"role": "assistant", "content": "done"}


def forced(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([SYSTEM, USER], forced("read_file"), id="first-step"),
        pytest.param([SYSTEM, USER, CALL, RESULT], forced("write_file"), id="second-step"),
        pytest.param([SYSTEM, USER, CALL, RESULT, CALL, RESULT], "none", id="after-the-last-tool"),
        pytest.param([SYSTEM, USER, CALL, RESULT, SAID, USER], "none", id="second-turn-without-tools"),
        pytest.param([USER, SAID, USER, SAID, USER], forced("shell"), id="third-turn"),
        pytest.param([USER, SAID, USER, SAID, USER, SAID, USER], "none", id="a-turn-too-many"),
        pytest.param([SYSTEM], "none", id="nobody-asked"),
        pytest.param(None, "none", id="no-messages"),
    ],
)
def test_the_turn_and_its_step_decide_which_tool_has_to_be_called(messages: Json, expected: Json) -> None:
    assert tool_choice(messages, [("read_file", "write_file"), (), ("shell",)]) == expected


async def sent_body(content: bytes) -> tuple[bytes, httpx.Request]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    around = AskedStepByStep(httpx.MockTransport(answer), {"temperature": 0.0}, [("read_file",)])
    async with httpx.AsyncClient(transport=around) as client:
        await client.post("http://127.0.0.1:1/v1", content=content, headers={"content-type": "application/json"})
    return await seen[0].aread(), seen[0]


async def test_everything_the_product_sent_is_still_there() -> None:
    body = {"model": "m", "messages": [USER], "stream": True, "tools": [{"type": "function"}]}

    content, request = await sent_body(json.dumps(body).encode())

    assert json.loads(content) == {**body, "temperature": 0.0, "tool_choice": forced("read_file")}
    assert request.headers["content-length"] == str(len(content))


async def test_what_is_no_object_passes_as_it_is() -> None:
    content, _request = await sent_body(b"[1]")

    assert content == b"[1]"
