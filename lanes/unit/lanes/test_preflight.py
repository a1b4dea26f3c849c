"""The preflight over real TLS sockets, in this process: what each kind of trouble is called, and that it asks once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from lanes.budget import RUN, Limits
from lanes.ledger import Ledger, Purse
from lanes.live_run import LiveRun, stop, stopped
from lanes.preflight import exchange_nonce
from lanes.prices import Price
from lanes.providers import Provider
from lanes.sealed import SealedTransport
from lanes.trouble import Trouble
from lanes.unit.lanes.authority import make_authority
from lanes.unit.lanes.stand_in import StandIn, open_stand_in

PRICE = Price(Decimal(1), Decimal("0.1"), Decimal(2))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with open_stand_in(tmp_path_factory.mktemp("stand-in")) as opened:
        yield opened


def provider_of(stand_in: StandIn, **changes: object) -> Provider:
    row = Provider(
        name="stand-in",
        base_url=f"https://127.0.0.1:{stand_in.port}/v1",
        path_prefix="/v1/",
        dialect="openai_chat",
        key="STANDIN_API_KEY",
        model="m-standard",
        id_pattern="standin-.+",
        sends_date=True,
        peers="private",
        models={"m-standard": PRICE, "m-no-usage": PRICE, "m-no-price": None},
        authority=str(stand_in.authority.certificate),
    )
    return replace(row, **changes)  # type: ignore[arg-type]


async def fly(stand_in: StandIn, model: str = "m-standard", **changes: object) -> Trouble | None:
    provider = provider_of(stand_in, **changes)
    return await exchange_nonce(provider, model, "sk-canary-77", SealedTransport(provider))


async def test_a_provider_that_says_the_word_has_no_trouble(stand_in: StandIn) -> None:
    stand_in.be("well")

    assert (await fly(stand_in), len(stand_in.requests)) == (None, 1)


@pytest.mark.parametrize(
    ("mood", "code", "words"),
    [
        pytest.param("rejects", "credential-rejected", "the provider answered 401", id="status-30-rejected-key"),
        pytest.param("spent", "quota", "its quota or balance is spent", id="spent"),
        pytest.param("busy", "outage", "the provider answered 503", id="outage"),
        pytest.param("late", "clock", "this clock and the provider's differ by -6", id="clock-off"),
        pytest.param("mumbles", "preflight", "does not hold the word that was asked for", id="no-nonce"),
    ],
)
async def test_each_trouble_has_its_own_code_and_one_request_is_enough(
    stand_in: StandIn, mood: str, code: str, words: str
) -> None:
    stand_in.be(mood)

    trouble = await fly(stand_in)

    assert trouble is not None
    assert (trouble.code, words in trouble.text, len(stand_in.requests)) == (code, True, 1)


async def test_a_host_that_is_not_reached_is_an_outage(stand_in: StandIn) -> None:
    trouble = await fly(stand_in, base_url="https://127.0.0.1:1/v1")

    assert trouble is not None
    assert (trouble.code, trouble.text.partition(",")[0]) == ("outage", "127.0.0.1 was not reached: ConnectError")


async def test_a_certificate_of_somebody_else_is_not_believed(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.be("well")
    other = make_authority(tmp_path, "other")

    trouble = await fly(stand_in, authority=str(other.certificate))

    assert trouble is not None
    assert (trouble.code, "CERTIFICATE_VERIFY_FAILED" in trouble.text.upper(), stand_in.requests) == (
        "outage",
        True,
        [],
    )


def purse_in(folder: Path, usd: str) -> Purse:
    prices = {"m-standard": PRICE, "m-no-usage": PRICE, "m-no-price": None}
    return Purse(Ledger(folder / "ledger.jsonl", {RUN: Limits(usd=Decimal(usd))}), (), prices, 1000, lambda: 0.0)


async def test_budget_64_a_model_without_a_price_stops_before_its_first_request(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.be("well")
    provider = provider_of(stand_in)

    transport = SealedTransport(provider, purse=purse_in(tmp_path, "1"))
    trouble = await exchange_nonce(provider, "m-no-price", "sk-canary-77", transport)

    assert trouble is not None
    assert (trouble.code, "the price of this model is not known" in trouble.text, stand_in.requests) == (
        "budget",
        True,
        [],
    )


async def test_an_answer_that_does_not_say_what_it_used_is_the_last_one(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.be("well")
    provider, purse = provider_of(stand_in), purse_in(tmp_path, "1")

    first = await exchange_nonce(provider, "m-no-usage", "sk-canary-77", SealedTransport(provider, purse=purse))
    second = await exchange_nonce(provider, "m-standard", "sk-canary-77", SealedTransport(provider, purse=purse))

    assert (first, second is not None and second.code, len(stand_in.requests)) == (None, "budget", 1)


async def test_an_answer_is_settled_by_what_it_used(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.be("well")
    provider, purse = provider_of(stand_in), purse_in(tmp_path, "1")

    await exchange_nonce(provider, "m-standard", "sk-canary-77", SealedTransport(provider, purse=purse))

    (entry,) = purse.ledger.entries()
    assert (entry.is_settled, entry.usd, entry.tokens) == (True, Decimal("0.00044"), 420)


def test_a_provider_that_nobody_asked_first_is_asked_nothing(tmp_path: Path) -> None:
    assert stopped(tmp_path, "acme") == Trouble("preflight", "nobody has asked the provider before the first test")


def test_lasting_trouble_stops_one_provider_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "preflight.json").write_text('{"acme": {"code": ""}, "lab": {"code": ""}}', "utf-8")
    stop(tmp_path, "acme", Trouble("quota", "spent"))

    assert (stopped(tmp_path, "acme"), stopped(tmp_path, "lab")) == (Trouble("quota", "spent"), None)


def test_all_processes_of_a_run_share_one_ledger(tmp_path: Path) -> None:
    run = LiveRun((), budget_usd=Decimal("0.5"))

    assert run.ledger(tmp_path) == run.ledger(tmp_path)
    assert run.ledger(tmp_path).limits[RUN].usd == Decimal("0.5")
