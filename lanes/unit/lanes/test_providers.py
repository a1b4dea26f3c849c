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
