"""Unit: the tools without a model, and the agent around one answer from a script inside this process."""

import asyncio
from pathlib import Path

import pytest
from expense_agent import Ledger, keep, model_at

from lanes.httpx2_bridge import Httpx2Bridge

LUNCH = Path(__file__).parents[1] / "lunch.yaml"


@pytest.mark.claim("expense.tools")
def test_the_list_grows_by_one_line_and_its_total_by_the_amount(tmp_path):
    ledger = Ledger(tmp_path / "list")

    told = [ledger.add("lunch", 1250), ledger.add(" tram ", 290)]

    assert told == ["added lunch, total now 1250 cents", "added tram, total now 1540 cents"]
    assert ledger.path.read_text("utf-8") == "lunch;1250\ntram;290\n"


@pytest.mark.claim("expense.tools")
@pytest.mark.parametrize(("what", "cents"), [("lunch", 0), ("lunch", -1), (" ", 5), ("a;b", 5), ("a\nb", 5)])
def test_what_is_no_expense_is_refused_and_nothing_is_written(tmp_path, what, cents):
    ledger = Ledger(tmp_path / "list")

    with pytest.raises(ValueError, match="is no expense"):
        ledger.add(what, cents)

    assert not ledger.path.exists()


@pytest.mark.claim("expense.add")
def test_a_tool_call_of_the_model_reaches_the_list(channels, tmp_path):
    model = model_at(
        "m-small", base_url="http://none.invalid/v1", key="none", transport=Httpx2Bridge(channels.scripted(LUNCH))
    )

    answer = asyncio.run(keep("I paid 12.50 for lunch.", tmp_path / "list", model))

    assert (answer, (tmp_path / "list").read_text("utf-8")) == ("Lunch for 12.50 is in your list.", "lunch;1250\n")
