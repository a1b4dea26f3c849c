"""What leaves a tool holds no secret, by whichever way it leaves."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from harness.log.json_form import event_to_json
from harness.loop.redaction import STAND_IN, Secrets
from harness.loop.tools import ToolOutput
from harness.model.messages import Json, TextBlock
from lanes.unit.loop.rig import Rig, tool
from lanes.unit.loop.scripted_model import calls, text

Make = Callable[..., Rig]
KEY = "example-key-0123"
FINE = (TextBlock("x"),)


def deep(levels: int) -> Json:
    found: Json = KEY
    for _ in range(levels):
        found = [found]
    return found


async def raises(error: BaseException, cause: BaseException | None = None) -> ToolOutput:
    raise error from cause


async def raises_while_handling() -> ToolOutput:
    try:
        raise ValueError(KEY)
    except ValueError:
        raise RuntimeError("outer")  # noqa: B904 - the point of the test


async def answers(output: object) -> ToolOutput:
    return output  # type: ignore[return-value] # some are no outputs


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda: raises(ValueError(f"bad header {KEY}")), id="exception"),
        pytest.param(lambda: raises(SystemExit(KEY)), id="exit"),
        pytest.param(lambda: raises(RuntimeError("outer"), ValueError(KEY)), id="cause"),
        pytest.param(raises_while_handling, id="context-of-an-exception"),
        pytest.param(lambda: raises(ExceptionGroup(KEY, [ValueError(KEY)])), id="group"),
        pytest.param(lambda: answers(ToolOutput((TextBlock(f"a {KEY}"), TextBlock(KEY)))), id="texts"),
        pytest.param(lambda: answers(ToolOutput((TextBlock(json.dumps(f"é{KEY}")),), is_error=True)), id="error"),
        pytest.param(lambda: answers(ToolOutput(FINE, context=(f"note {KEY}",))), id="note"),
        pytest.param(lambda: answers(ToolOutput(FINE, meta={"a": f"<{KEY}>"})), id="meta"),
        pytest.param(lambda: answers(ToolOutput(FINE, meta={"a": [{"b": ({"c": KEY},)}]})), id="meta-nested"),
        pytest.param(lambda: answers(ToolOutput(FINE, meta={"a": {f"k-{KEY}": 1}, KEY: 2})), id="meta-keys"),
        pytest.param(lambda: answers(ToolOutput(FINE, meta={KEY: float("nan")})), id="meta-that-is-none"),
        pytest.param(lambda: answers(ToolOutput(FINE, meta={"a": deep(5000)})), id="meta-too-deep"),
        pytest.param(lambda: answers(ToolOutput(FINE, meta={"a": {KEY}})), id="meta-set"),  # type: ignore[dict-item] # the point
        pytest.param(lambda: answers(ToolOutput(FINE, is_error=True, code=KEY)), id="code"),
        pytest.param(lambda: answers(ToolOutput(({KEY: KEY},))), id="bare-block"),  # type: ignore[arg-type] # the point
        pytest.param(lambda: answers(ToolOutput((TextBlock(KEY.encode()),))), id="bytes"),  # type: ignore[arg-type] # the point
        pytest.param(lambda: answers(KEY), id="no-output"),
    ],
)
async def test_S12_a_secret_leaves_a_tool_by_no_way(make_rig: Make, end: Callable[[], Awaitable[ToolOutput]]) -> None:
    async def body(arguments: object, context: object) -> ToolOutput:
        return await end()

    rig = make_rig(calls(("c1", "peek", "{}")), text("ok"), tools=[Secrets((KEY,)).tool(tool("peek", body))])
    await rig.run("hi")
    assert (rig.outcomes, len(rig.results())) == (["completed"], 1)
    written = json.dumps([event_to_json(event) for event in rig.log])
    assert KEY not in written + repr(rig.model.requests) + repr(rig.agent.failures)


async def test_S12_what_holds_no_secret_leaves_a_tool_unchanged(make_rig: Make) -> None:
    said = ToolOutput((TextBlock("a"), TextBlock("b")), meta={"n": 1, "l": [True, None, "x"], "t": ("y",)})

    async def body(arguments: object, context: object) -> ToolOutput:
        return said

    peek = tool("peek", body)
    assert Secrets(("short", "")).tool(peek) is peek
    assert Secrets((KEY,)).output(said) == said


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        pytest.param('quo"ted\\secret', json.dumps('quo"ted\\secret'), id="json"),
        pytest.param("line one\nline two\n", "line one line two", id="one-line"),
        pytest.param("geheimnisschlüssel", json.dumps("geheimnisschlüssel"), id="ascii"),
    ],
)
def test_S12_a_secret_is_found_in_the_forms_texts_are_written_in(secret: str, shown: str) -> None:
    found = Secrets((secret,))
    assert found.text(f"<{shown}>").strip('<">') == STAND_IN
    assert found.data(f"<{shown}>".encode()).decode().strip('<">') == STAND_IN


def test_S12_of_two_secrets_the_longer_goes_first_and_neither_is_printed() -> None:
    found = Secrets(("example-key",)).and_of([KEY, None, "short"])
    assert (found.text(f"{KEY} example-key short"), KEY in repr(found)) == (f"{STAND_IN} {STAND_IN} short", False)
