"""What the ACP server says of pictures is what it does: one is taken exactly where they were advertised."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.settings import MODEL_INPUTS
from lanes.unit.surfaces.acp_bench import PICTURE, AcpBench, stop, storing, words
from lanes.unit.surfaces.scripted import say

pytestmark = pytest.mark.claim("acp.server")

ROUTES = (
    ("openai", "gpt-4.1-mini"),
    ("openai", "somebody-elses"),
    ("deepseek", "deepseek-chat"),
    ("custom", "mine"),
)


async def offered(
    folder: Path, route: tuple[str, str], declared: str | None, types: frozenset[str] | None
) -> tuple[bool, Any, int]:
    """Whether pictures were advertised, how a prompt with one was answered, and how many are stored then."""
    store = storing(folder)
    if types is not None:
        store.accepted_types = types
    environ = {} if declared is None else {"HARNESS_MODEL_INPUT": declared}
    bench = AcpBench(folder, say("seen"), provider=route[0], model=route[1], environ=environ, store=store)
    hello = await bench.initialize()
    answer = await bench.prompted(await bench.new(), words("a"), PICTURE)
    await bench.leave()
    return hello["agentCapabilities"]["promptCapabilities"]["image"], answer, len(bench.pictures())


@settings(max_examples=60, deadline=None)
@given(
    route=st.sampled_from(ROUTES),
    declared=st.sampled_from([None, "text", "text,image"]),
    types=st.sampled_from([None, frozenset(), frozenset({"image/tiff"}), frozenset({"image/gif"})]),
)
def test_AC01_AC02_a_picture_is_taken_where_it_was_advertised_and_what_is_unknown_is_not(
    route: tuple[str, str], declared: str | None, types: frozenset[str] | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        image, answer, stored = asyncio.run(offered(Path(folder), route, declared, types))

    known = MODEL_INPUTS.get(route) if declared is None else frozenset(declared.split(","))
    is_stored = types is None or "image/gif" in types
    assert image is (known is not None and "image" in known and is_stored)
    if image:
        assert (stop(answer), stored) == ("end_turn", 1)
    else:
        assert (answer["code"], "not advertised" in answer["message"], stored) == (-32602, True, 0)
