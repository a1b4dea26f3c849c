"""The pure rooms of the ACP server: what is advertised, how a prompt ends, what a permission's answer means."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import PeerError
from harness.log.events import ReasonKind, TurnReason
from harness.model.chunks import Failure
from harness.surfaces.acp.capability import Facts, takes_pictures
from harness.surfaces.acp.permission import answer_of
from harness.surfaces.acp.settlement import Failed, Happened, settle

pytestmark = pytest.mark.claim("acp.server")


ALL = {
    "stored_types": frozenset({"image/png"}),
    "provider": "p",
    "model": "m",
    "lookup": lambda provider, model: frozenset({"text", "image"}),
}


def fails(provider: str, model: str) -> frozenset[str]:
    raise OSError("the registry is away")


def facts(**other: Any) -> Facts:
    return Facts(**{**ALL, **other})


def test_AC01_pictures_are_advertised_when_every_fact_holds() -> None:
    assert takes_pictures(facts())


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param({"stored_types": None}, id="no-store"),
        pytest.param({"stored_types": frozenset()}, id="no-codec"),
        pytest.param({"stored_types": frozenset({"image/tiff"})}, id="other-types"),
        pytest.param({"provider": None}, id="no-provider"),
        pytest.param({"model": ""}, id="no-model"),
        pytest.param({"lookup": lambda provider, model: None}, id="not-declared"),
        pytest.param({"lookup": lambda provider, model: frozenset({"text"})}, id="text-only"),
        pytest.param({"lookup": fails}, id="failing-lookup"),
    ],
)
def test_AC01_each_fact_that_is_missing_alone_makes_it_a_no(missing: dict[str, Any]) -> None:
    assert not takes_pictures(facts(**missing))


@settings(max_examples=300, derandomize=True)
@given(
    st.fixed_dictionaries(
        {
            "stored_types": st.sampled_from([None, frozenset(), frozenset({"image/gif"})]),
            "provider": st.sampled_from([None, "", "p"]),
            "model": st.sampled_from([None, "m"]),
            "inputs": st.sampled_from([None, frozenset({"text"}), frozenset({"image"})]),
        }
    )
)
def test_AC01_whatever_is_unknown_is_never_advertised(given_facts: dict[str, Any]) -> None:
    inputs = given_facts.pop("inputs")
    known = all(given_facts.values()) and inputs == frozenset({"image"})
    assert takes_pictures(Facts(**given_facts, lookup=lambda provider, model: inputs)) is known


def ending(kind: ReasonKind, text: str = "no") -> TurnReason:
    return TurnReason(kind, failure=Failure(text, "X") if kind == "error" else None)


def test_AC20_the_first_fact_that_holds_decides() -> None:
    everything = Happened(True, "the disk", "the loop", ending("error"))
    assert settle(everything, tells_max_tokens=True) == "cancelled"
    without = Happened(False, "the disk", "the loop", ending("error"))
    assert settle(without, tells_max_tokens=True) == Failed("assistant output delivery failed: the disk")
    without = Happened(False, None, "the loop", ending("error"))
    assert settle(without, tells_max_tokens=True) == Failed("turn failed: the loop")
    assert settle(Happened(False, ending=ending("error")), tells_max_tokens=True) == Failed("turn failed: no")


@pytest.mark.parametrize(
    ("kind", "told", "told_more"),
    [
        ("completed", "end_turn", "end_turn"),
        ("max-tokens", "end_turn", "max_tokens"),
        ("step-limit", "end_turn", "max_turn_requests"),
        ("aborted", "end_turn", "end_turn"),
        ("blocked", "end_turn", "end_turn"),
        ("interrupted", "cancelled", "cancelled"),
    ],
)
def test_AC22_each_ending_of_a_turn_has_its_word(kind: ReasonKind, told: str, told_more: str) -> None:
    happened = Happened(False, ending=ending(kind))
    assert (settle(happened, tells_max_tokens=False), settle(happened, tells_max_tokens=True)) == (told, told_more)


def test_AC22_a_message_that_was_taken_out_before_its_turn_is_cancelled() -> None:
    assert settle(Happened(False), tells_max_tokens=False) == "cancelled"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allow-once"}}, "allow"),
        ({"outcome": {"outcome": "selected", "optionId": "reject-once"}}, "deny"),
        ({"outcome": {"outcome": "selected", "optionId": "allow_once"}}, "deny"),
        ({"outcome": {"outcome": "selected"}}, "deny"),
        ({"outcome": {"outcome": "allow", "optionId": "allow-once"}}, "deny"),
        ({"outcome": {"outcome": "cancelled"}}, "deny"),
        ({"outcome": "selected"}, "deny"),
        ({}, "deny"),
        (None, "deny"),
        (PeerError("gone"), "deny"),
    ],
    ids=repr,
)
async def test_AC27_only_the_exact_option_allows(answer: Any, verdict: str) -> None:
    asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    if isinstance(answer, Exception):
        asked.set_exception(answer)
    else:
        asked.set_result(answer)
    assert answer_of(asked).verdict == verdict
