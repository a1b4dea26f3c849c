"""What a run against hosted models is planned to be, before anything is asked."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from lanes.budget import RUN, Ask
from lanes.claims import Claim, Claims
from lanes.errors import UsageError
from lanes.live_run import (
    PREFLIGHT_FILE,
    LiveRun,
    LiveTarget,
    LiveWish,
    choose_targets,
    live_targets,
    load_live_run,
    parse_budget,
    part_limits,
    stopped,
    why_no_key,
    why_spent,
    write_live_run,
)
from lanes.providers import load_providers
from lanes.spool import write_document
from lanes.trouble import Trouble

PROVIDERS = load_providers()
KEYS = {"DEEPSEEK_API_KEY": "sk-canary-1", "OPENAI_API_KEY": "sk-canary-2"}


def chosen(wish: LiveWish, environ: dict[str, str]) -> list[tuple[str, str]]:
    found, _meant = choose_targets(wish, PROVIDERS, environ)
    return [(each.provider, each.model) for each in found]


def test_every_provider_with_a_key_is_asked_for_its_usual_model() -> None:
    assert chosen(LiveWish(), KEYS) == [("deepseek", "deepseek-flash"), ("openai", "gpt-4.1-mini")]


def test_a_target_and_a_model_narrow_what_is_asked() -> None:
    assert chosen(LiveWish(target="openai", model="gpt-4.1"), KEYS) == [("openai", "gpt-4.1")]
    assert chosen(LiveWish(model="gpt-4.1"), KEYS) == [("openai", "gpt-4.1")]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        pytest.param({}, "set DEEPSEEK_API_KEY or OPENAI_API_KEY or ANTHROPIC_API_KEY", id="unset"),
        pytest.param({"OPENAI_API_KEY": "   "}, "; OPENAI_API_KEY is blank", id="blank"),
        pytest.param({"OPENAI_API_KEY": "<your key>"}, "; OPENAI_API_KEY is a placeholder", id="placeholder"),
    ],
)
def test_status_28_29_without_a_usable_key_nobody_is_asked_and_the_reason_is_told(
    environ: dict[str, str], words: str
) -> None:
    assert (chosen(LiveWish(), environ), words in why_no_key(environ, PROVIDERS)) == ([], True)


def test_status_30_a_provider_that_turned_the_key_away_before_the_first_test_is_asked_no_more(tmp_path: Path) -> None:
    found = {"one": {"code": "credential-rejected", "text": "401"}, "two": {"code": "", "text": ""}}
    write_document(tmp_path / PREFLIGHT_FILE, found)

    assert stopped(tmp_path, "one") == Trouble("credential-rejected", "401")
    assert stopped(tmp_path, "two") is None


def test_the_key_of_another_provider_is_none_for_the_one_that_was_named() -> None:
    found, meant = choose_targets(LiveWish(target="anthropic"), PROVIDERS, KEYS)

    assert (found, why_no_key(KEYS, meant)) == ((), "set ANTHROPIC_API_KEY")


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        pytest.param(
            LiveWish(target="opnai"),
            "lanes run real: --target 'opnai' is unknown; did you mean 'openai'? [USAGE]\n"
            "  expected: one of deepseek, openai, anthropic\n"
            "  fix: name one of these, or give it a table in lanes/providers.toml",
            id="target",
        ),
        pytest.param(
            LiveWish(target="openai", model="gpt-4.1-mni"),
            "lanes run real: --model 'gpt-4.1-mni' is unknown; did you mean 'gpt-4.1-mini'? [USAGE]\n"
            "  expected: one of gpt-4.1-mini, gpt-4.1\n"
            "  fix: name one of these, or give it a table [NAME.models.MODEL] in lanes/providers.toml",
            id="model",
        ),
    ],
)
def test_what_the_table_does_not_have_is_refused_with_what_it_has(wish: LiveWish, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_targets(wish, PROVIDERS, KEYS)

    assert str(caught.value) == text


@pytest.mark.parametrize("text", ["free", "-1", "0", "nan", "inf", "1e9", "", "1" * 40])
def test_no_amount_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--budget-usd is"):
        parse_budget(text)


def test_an_amount_is_read_exactly() -> None:
    assert parse_budget("0.10") == Decimal("0.10")


def test_the_processes_of_a_run_read_what_was_planned(tmp_path: Path) -> None:
    run = LiveRun((LiveTarget("openai", "gpt-4.1"),), 5, Decimal("0.5"), 12.5, {"claim a.b": Decimal("0.2")})

    write_live_run(tmp_path, run)

    assert load_live_run(tmp_path) == run
    assert [(each.name, model) for each, model in live_targets({"LANES_SPOOL": str(tmp_path)})] == [
        ("openai", "gpt-4.1")
    ]


def test_outside_a_lane_every_provider_of_the_table_is_named() -> None:
    assert [each.name for each, _model in live_targets({})] == ["deepseek", "openai", "anthropic"]


def test_a_budget_that_is_spent_runs_no_further_test(tmp_path: Path) -> None:
    run = LiveRun((), budget_usd=Decimal("0.01"), started_s=1e12)  # it has lasted no time at all
    before = why_spent(run, tmp_path)
    run.ledger(tmp_path).reserve(Ask((RUN,), Decimal("0.01"), 1))

    assert (before, why_spent(run, tmp_path)) == ("", "run: $0.010000 of $0.01 are spent or reserved")


def test_providers_and_claims_have_accounts_of_their_own(tmp_path: Path) -> None:
    claim = Claim("a.claim", "It holds.", "none", (), ("real",), expected_usd="0.02", owner="us")
    cheap = replace(PROVIDERS[0], budget_usd=Decimal("0.5"))

    limits = part_limits([cheap, PROVIDERS[1]], Claims({claim.id: claim}), 3)
    run = LiveRun((), budget_usd=Decimal(9), started_s=1e12, limits=limits)
    run.ledger(tmp_path).reserve(Ask((RUN, "claim a.claim"), Decimal(3), 1))

    assert limits == {"provider deepseek": Decimal("0.5"), "claim a.claim": Decimal(3)}
    assert [why_spent(run, tmp_path, (each,)) for each in ("provider deepseek", "claim a.claim", "claim b.c")] == [
        "",
        "claim a.claim: $3.000000 of $3.00 are spent or reserved",
        "",
    ]
