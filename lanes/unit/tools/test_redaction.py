"""No secret leaves a tool, in what it says and in what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loop.redaction import STAND_IN, Secrets
from harness.loop.scope import CancelScope
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.model.messages import CallId, TextBlock
from harness.tools.redaction import KeyFilter, redact_tools
from harness.tools.shipped import build_tools


def tool(text: str) -> Tool:
    async def run(arguments: object, context: ToolContext) -> ToolOutput:
        return ToolOutput((TextBlock(text),), context=(text,))

    return Tool(ToolSchema("peek", "d", {"type": "object"}), run)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("sk-0123456789", "A=[key removed] B", id="key"),
        pytest.param(None, "A=sk-0123456789 B", id="no-key"),
        pytest.param("sk-0", "A=sk-0123456789 B", id="too-short-to-be-one"),
    ],
)
async def test_a_key_found_by_a_tool_is_taken_out_of_its_answer(key: str | None, expected: str) -> None:
    found = redact_tools({"peek": tool("A=sk-0123456789 B")}, Secrets().and_of([key]))["peek"]
    output = await found.run({}, ToolContext(CallId("c"), CancelScope()))
    assert (output.content, output.context) == ((TextBlock(expected),), (expected,))


@given(st.text("ab", min_size=8, max_size=9), st.lists(st.text("abc", max_size=12)), st.data())
def test_the_filter_gives_the_same_for_every_way_to_cut_the_output(
    key: str, texts: list[str], data: st.DataObject
) -> None:
    whole = key.join(texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    filtered = KeyFilter(Secrets((key,)))
    pieces = [filtered.feed(whole[start:end]) for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert b"".join([*pieces, filtered.end()]) == whole.replace(key.encode(), STAND_IN.encode())


@pytest.mark.parametrize("secrets", [None, Secrets(("short",))])
def test_without_a_secret_nothing_is_held_back(secrets: Secrets | None) -> None:
    filtered = KeyFilter(secrets)
    assert (filtered.feed(b"a short"), filtered.end()) == (b"a short", b"")


async def test_a_spilled_output_holds_the_key_neither_whole_nor_at_its_cuts(tmp_path: Path) -> None:
    key = "example-key-0123456789"
    spill = tmp_path / "spill"
    tools = build_tools(tmp_path, spill_dir=spill, environment={"PATH": "/usr/bin:/bin"}, secrets=Secrets((key,)))
    command = f"for n in $(seq 4000); do printf '%s,' {key}; done"
    output = await tools.tools["shell"].run({"command": command}, ToolContext(CallId("call-1"), CancelScope()))
    await tools.close()
    (block,) = output.content
    assert isinstance(block, TextBlock)
    assert (spill / "call-1.txt").read_text(encoding="utf-8") == f"{STAND_IN}," * 4000
    assert "0123" not in block.text
