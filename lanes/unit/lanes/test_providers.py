from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from lanes.errors import UsageError
from lanes.prices import Price
from lanes.providers import TABLE, load_providers, trust_store_digest

ROW = """
[deepseek]
base_url = "https://api.deepseek.com"
path_prefix = "/"
dialect = "openai_chat"
key = "DEEPSEEK_API_KEY"
model = "m"
id_pattern = ""
sends_date = true
peers = "global"
"""


PRIVATE = ROW.replace("api.deepseek.com", "10.0.0.5:8000").replace('"global"', '"private"')
DATED = 'priced_on = "2031-03-04"\n'
PRICED = "[deepseek.models.m]\nin = 0.28\ncached = 0.028\nout = 0.42\n"


def test_the_committed_table_is_sound_and_its_hosts_are_reached_by_tls_only() -> None:
    assert {each.name: (each.host, each.peers) for each in load_providers()} == {
        "deepseek": ("api.deepseek.com", "global"),
        "openai": ("api.openai.com", "global"),
        "anthropic": ("api.anthropic.com", "global"),
    }
    assert all(each.base_url.startswith("https://") for each in load_providers())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param('model = "m"\n', "", "fields missing or unknown: model", id="missing"),
        pytest.param('model = "m"', 'model = "m"\nmodle = "m"', "fields missing or unknown: modle", id="unknown"),
        pytest.param("sends_date = true", 'sends_date = "yes"', "sends_date is 'yes'", id="wrong-type"),
        pytest.param('peers = "global"', 'peers = "any"', "peers is 'any'", id="unknown-peers"),
        pytest.param("https://", "http://", "base_url is 'http://api.deepseek.com'", id="no-tls"),
        pytest.param("https://api", "https://[api", "base_url is 'https://[api", id="bracket"),
        pytest.param(".com", ".com:port", "base_url is 'https://api.deepseek.com:port'", id="port-no-number"),
        pytest.param(".com", ".com:8443", "base_url is 'https://api.deepseek.com:8443'", id="another-port"),
        pytest.param(
            ROW, PRIVATE.replace("https://", "http://"), "base_url is 'http://10.0.0.5:8000", id="private-without-tls"
        ),
        pytest.param("https://", "https://me@", "base_url is 'https://me@api", id="user"),
        pytest.param("https://", "https:/", "base_url is 'https:/api", id="no-host"),
        pytest.param("api.deepseek.com", "api deepseek", "base_url is", id="host-with-a-space"),
        pytest.param(".com", ".com?a=b", "base_url is", id="query"),
        pytest.param('prefix = "/"', 'prefix = ""', "path_prefix is ''", id="no-prefix"),
        pytest.param('prefix = "/"', 'prefix = "v1"', "path_prefix is 'v1'", id="prefix-without-slash"),
        pytest.param('key = "DEEPSEEK_API_KEY"', 'key = "HOME"', "key is 'HOME'", id="variable-of-another-kind"),
        pytest.param('key = "DEEPSEEK_API_KEY"', 'key = "A=KEY"', "key is 'A=KEY'", id="no-variable"),
        pytest.param('model = "m"', 'model = ""', "model is ''", id="no-model"),
        pytest.param('dialect = "openai_chat"', 'dialect = " "', "dialect is ' '", id="no-dialect"),
        pytest.param('pattern = ""', 'pattern = "("', "id_pattern is '('", id="no-pattern"),
        pytest.param("[deepseek]", '["Deep seek"]', "name is 'Deep seek'", id="name"),
        pytest.param('model = "m"', "model = 7", "model is 7", id="number"),
        pytest.param('model = "m"', "model = 2031-03-04", "model is datetime", id="date"),
        pytest.param('model = "m"', "model = " + "[" * 5_000, "cannot be read", id="nested-too-deep"),
        pytest.param(ROW, "", "no provider is listed", id="empty"),
        pytest.param(ROW, "deepseek = 7", "a provider is a table of fields", id="no-table"),
        pytest.param("[deepseek]", "[deepseek", "cannot be read", id="no-toml"),
        pytest.param(ROW, ROW + 'retired = "m"\n', "retired is 'm'", id="retired-no-list"),
        pytest.param(ROW, ROW + 'retired = ["m"]\n', "model is 'm'", id="retired-and-asked-for"),
        pytest.param(ROW, ROW + "fresh_days = 31\n", "fresh_days is 31", id="freshness-loosened"),
        pytest.param(ROW, ROW + "stale_days = 91\n", "stale_days is 91", id="staleness-loosened"),
        pytest.param(ROW, ROW + "stale_days = 0\n", "stale_days is 0", id="no-day"),
        pytest.param(ROW, ROW + "stale_days = 20\n", "fresh_days is '30'", id="fresh-longer-than-stale"),
        pytest.param(ROW, ROW + 'authority = "a.pem"\n', "authority is 'a.pem'", id="public-with-an-authority"),
        pytest.param(ROW, ROW + 'tunnel = "http://p:1"\n', "tunnel is 'http://p:1'", id="tunnel-as-an-address"),
        pytest.param(ROW, ROW + 'tunnel = "proxy"\n', "tunnel is 'proxy'", id="tunnel-without-a-port"),
        pytest.param(ROW, ROW + 'priced_on = "spring"\n', "priced_on is 'spring'", id="no-day-of-prices"),
        pytest.param(ROW, ROW + "max_out_tokens = true\n", "max_out_tokens is True", id="true-is-no-number"),
        pytest.param(ROW, ROW + "budget_usd = 0\n", "budget_usd is 0", id="budget-of-nothing"),
        pytest.param(ROW, ROW + "budget_usd = inf\n", "budget_usd is Decimal('Infinity')", id="budget-without-end"),
        pytest.param(ROW, ROW + "[deepseek.models.other]\n", "model is 'm'", id="model-not-listed"),
        pytest.param(ROW, ROW + "models = 7\n", "models is 7", id="models-no-tables"),
        pytest.param(ROW, ROW + "[deepseek.models]\nm = 7\n", "model 'm' is 7", id="model-no-table"),
        pytest.param(
            ROW, ROW + "[deepseek.models.m]\nin = 1\n", "prices missing or unknown: cached, out", id="price-missing"
        ),
        pytest.param(ROW, ROW + PRICED, "there are prices and no day they were read on", id="prices-without-a-day"),
        pytest.param(ROW, ROW + DATED + PRICED.replace("0.28", "-1"), "in is -1", id="negative-price"),
        pytest.param(ROW, ROW + DATED + PRICED.replace("0.28", "nan"), "in is Decimal('NaN')", id="price-no-number"),
        pytest.param(ROW, ROW + DATED + PRICED.replace("0.28", "true"), "in is True", id="price-true"),
    ],
)
def test_a_faulty_row_is_named_with_its_field(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(ROW.replace(old, new), "utf-8")

    with pytest.raises(UsageError) as caught:
        load_providers(path)

    assert (caught.value.error_code, message in str(caught.value)) == ("PROVIDERS", True)


def test_the_row_of_this_file_is_the_one_that_is_right(tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(ROW, "utf-8")

    (provider,) = load_providers(path)

    assert (provider.host, provider.key, provider.id_pattern) == ("api.deepseek.com", "DEEPSEEK_API_KEY", "")


def test_a_fault_is_told_with_file_line_provider_field_and_what_was_expected(tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(ROW + "stale_days = 120\n", "utf-8")

    with pytest.raises(UsageError) as caught:
        load_providers(path)

    assert str(caught.value) == (
        "providers.toml:11, [deepseek]: stale_days is 120 [PROVIDERS]\n"
        "  expected: a whole number from 1 to 90\n"
        "  fix: a row may tighten the rule of all recordings and never loosen it"
    )


def test_prices_are_read_exactly_and_a_model_may_have_none(tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(ROW + DATED + 'retired = ["old"]\nfresh_days = 7\n' + PRICED + "[deepseek.models.n]\n", "utf-8")

    (provider,) = load_providers(path)

    assert (provider.known_models, provider.retired, provider.fresh_days) == (("m", "n"), ("old",), 7)
    assert (provider.price_of("m"), provider.price_of("n"), provider.price_of("x")) == (
        Price(Decimal("0.28"), Decimal("0.028"), Decimal("0.42")),
        None,
        None,
    )


def test_every_model_of_the_committed_table_has_a_price_and_none_is_retired() -> None:
    for provider in load_providers():
        assert all(price is not None for price in provider.models.values())
        assert set(provider.known_models) & set(provider.retired) == set()


def test_a_private_endpoint_may_bring_an_authority_that_is_a_certificate(tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    row = ROW.replace('"global"', '"private"') + 'authority = "own.pem"\n'
    path.write_text(row, "utf-8")
    (tmp_path / "own.pem").write_text("no certificate", "utf-8")

    (provider,) = load_providers(path)

    with pytest.raises(UsageError, match=r"the authority 'own.pem' cannot be used"):
        trust_store_digest(provider, path)


def test_a_private_endpoint_may_have_a_port(tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(PRIVATE, "utf-8")

    (provider,) = load_providers(path)

    assert (provider.host, provider.port, provider.peers) == ("10.0.0.5", 8000, "private")


def test_the_trust_store_has_a_digest() -> None:
    assert trust_store_digest().startswith("sha256:")
    assert TABLE.name == "providers.toml"
