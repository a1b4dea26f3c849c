from __future__ import annotations

from pathlib import Path

import pytest

from lanes.errors import UsageError
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


def test_the_committed_table_is_sound_and_its_hosts_are_reached_by_tls_only() -> None:
    assert {each.name: (each.host, each.peers) for each in load_providers()} == {
        "deepseek": ("api.deepseek.com", "global"),
        "openai": ("api.openai.com", "global"),
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


def test_the_trust_store_has_a_digest() -> None:
    assert trust_store_digest().startswith("sha256:")
    assert TABLE.name == "providers.toml"
