"""Snapshot: every request of one task, held against a file that a person has read and accepted.

An update of the framework that sends anything else turns this red; the difference shows what it sends now.
"""

import asyncio
import json
from pathlib import Path

import pytest
from expense_agent import keep, model_at

from lanes.httpx2_bridge import Httpx2Bridge

LUNCH = Path(__file__).parents[1] / "lunch.yaml"
EXPECTED = Path(__file__).with_name("requests.expected.json")


@pytest.mark.claim("expense.requests")
def test_the_requests_of_a_task_are_the_accepted_ones(channels, tmp_path):
    scripted = channels.scripted(LUNCH)
    model = model_at("m-small", base_url="http://none.invalid/v1", key="none", transport=Httpx2Bridge(scripted))

    asyncio.run(keep("I paid 12.50 for lunch.", tmp_path / "list", model))

    assert list(scripted.mock.journal.bodies()) == json.loads(EXPECTED.read_text("utf-8"))
