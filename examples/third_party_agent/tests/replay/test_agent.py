"""Replay: the task against a recording; a request that is not the recorded one is an error that shows the difference.

The recording was made from the script with `mock-provider record`, so its answers count as scripted, and the board says
so. With a key, `--upstream https://api.openai.com` makes one whose answers a model gave.
"""

import asyncio
from pathlib import Path

import pytest
from expense_agent import keep, model_at

from lanes.httpx2_bridge import Httpx2Bridge

RECORDING = Path(__file__).with_name("lunch.yaml")


@pytest.mark.claim("expense.add")
def test_the_recorded_conversation_leaves_the_same_list(channels, tmp_path):
    model = model_at(
        "m-small", base_url="http://127.0.0.1/v1", key="none", transport=Httpx2Bridge(channels.cassette(RECORDING))
    )

    answer = asyncio.run(keep("I paid 12.50 for lunch.", tmp_path / "list", model))

    assert (answer, (tmp_path / "list").read_text("utf-8")) == ("Lunch for 12.50 is in your list.", "lunch;1250\n")
