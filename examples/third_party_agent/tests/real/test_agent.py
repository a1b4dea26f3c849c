"""Real: the task with a live model. Without a key nothing here runs, and the board says so in words."""

import asyncio
import os

import pytest
from expense_agent import keep, model_at

from lanes.httpx2_bridge import Httpx2Bridge
from lanes.providers import has_key, load_providers

WITH_KEY = [each for each in load_providers() if each.dialect == "openai_chat" and has_key(os.environ, each)]


@pytest.mark.claim("expense.live")
@pytest.mark.parametrize("provider", WITH_KEY, ids=lambda provider: provider.name)
def test_a_live_model_adds_the_expense(channels, tmp_path, provider):
    model = model_at(
        provider.model,
        base_url=provider.base_url,
        key=os.environ[provider.key],
        transport=Httpx2Bridge(channels.live(provider.name)),
    )

    asyncio.run(keep("I paid 12.50 for lunch. Please call it lunch in the list.", tmp_path / "list", model))

    assert (tmp_path / "list").read_text("utf-8").lower() == "lunch;1250\n"
