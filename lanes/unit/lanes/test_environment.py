from __future__ import annotations

from pathlib import Path

import pytest

from lanes.environment import build_environment, find_strays
from lanes.policy import DUMMY_KEY, LANES, LOCAL_ENVIRONMENT, lane_of_environment
from lanes.providers import has_key, load_providers

KEYS = {"OPENAI_API_KEY": "sk-canary-0f3e9b", "DEEPSEEK_API_KEY": "sk-canary-456", "FORGE_TOKEN": "tok-canary-789"}
OTHERS = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "HTTPS_PROXY": "http://proxy.invalid",
    "https_proxy": "http://proxy.invalid",
    "SSL_CERT_FILE": "/ca.pem",
    "OPENAI_BASE_URL": "http://127.0.0.1:1",
    "NETRC": "/netrc",
    "SSH_AUTH_SOCK": "/agent",
    "PYTEST_ADDOPTS": "-x",
    "ANYTHING": "else",
}


def build(lane: str, environ: dict[str, str]) -> dict[str, str]:
    built = build_environment(
        environ,
        LANES[lane],
        mark=lane,
        home=Path("/home/lane"),
        spool=Path("/spool"),
        out=Path("/out"),
        run_id="run-1",
        outside="1",
        providers=load_providers(),
    )
    return dict(built.variables)


def test_lane_01_a_keyless_lane_sees_no_key_and_knows_how_many_were_removed() -> None:
    built = build_environment(
        KEYS | OTHERS,
        LANES["offline"],
        mark="offline",
        home=Path("/home/lane"),
        spool=Path("/spool"),
        out=Path("/out"),
        run_id="run-1",
        outside="1",
        providers=load_providers(),
    )

    assert (KEYS.keys() & built.variables.keys(), built.keys_removed) == (set(), 3)
    assert not any("canary" in value for value in built.variables.values())
    assert built.secrets == set(KEYS.values())
    assert "canary" not in repr(built)


def test_the_environment_is_built_from_a_list_and_not_by_leaving_out() -> None:
    variables = build("unit", KEYS | OTHERS)

    assert {name for name in variables if name in OTHERS} == {"PATH", "LC_ALL"}
    assert variables["HOME"] == "/home/lane"


def test_real_keeps_the_provider_keys_by_name_and_no_other() -> None:
    variables = build("real", KEYS | OTHERS)

    assert {name: variables.get(name) for name in KEYS} == {
        "OPENAI_API_KEY": "sk-canary-0f3e9b",
        "DEEPSEEK_API_KEY": "sk-canary-456",
        "FORGE_TOKEN": None,
    }


@pytest.mark.parametrize(
    ("lane", "hosts"),
    [
        pytest.param("unit", "127.0.0.1,::1,localhost", id="loopback"),
        pytest.param("snapshot", "none.invalid", id="none"),
        pytest.param("real", "api.deepseek.com,api.openai.com,api.anthropic.com", id="providers"),
    ],
)
def test_the_provider_client_is_told_which_hosts_the_lane_has(lane: str, hosts: str) -> None:
    assert build(lane, {})["HARNESS_ALLOWED_HOSTS"] == hosts


def test_the_start_up_folder_comes_before_every_other_path() -> None:
    first, rest = build("unit", {"PYTHONPATH": "/mine"})["PYTHONPATH"].split(":", 1)

    assert (Path(first).name, rest) == ("startup", "/mine")
    assert (Path(first) / "sitecustomize.py").is_file()


def test_what_may_not_be_set_inside_is_named_and_never_its_value() -> None:
    assert find_strays(KEYS | OTHERS, LANES["offline"], load_providers()) == (
        "DEEPSEEK_API_KEY",
        "FORGE_TOKEN",
        "HTTPS_PROXY",
        "NETRC",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "SSL_CERT_FILE",
        "https_proxy",
    )


def test_the_built_environment_holds_no_stray() -> None:
    for lane, policy in LANES.items():
        assert find_strays(build(lane, KEYS | OTHERS), policy, load_providers()) == ()


def test_the_fixed_dummy_is_no_key() -> None:
    assert find_strays({"OPENAI_API_KEY": DUMMY_KEY}, LANES["offline"], load_providers()) == ()


@pytest.mark.parametrize(
    "value",
    ["", "   ", "<your key>", "sk-xxxxxxxx", "changeme", "your-api-key-here", "${OPENAI_API_KEY}", "None", DUMMY_KEY],
    ids=["empty", "blanks", "angle-brackets", "crosses", "changeme", "your-key", "unset-reference", "none", "dummy"],
)
def test_real_29_blanks_and_placeholders_are_no_key(value: str) -> None:
    (provider,) = [each for each in load_providers() if each.key == "OPENAI_API_KEY"]

    assert not has_key({"OPENAI_API_KEY": value}, provider)
    assert has_key({"OPENAI_API_KEY": "sk-canary-0f3e9b"}, provider)


def test_the_lane_with_its_own_model_has_no_key_and_one_port() -> None:
    policy = lane_of_environment(LOCAL_ENVIRONMENT)
    found = build_environment(
        KEYS | OTHERS,
        policy,
        mark=LOCAL_ENVIRONMENT,
        home=Path("/home/lane"),
        spool=Path("/spool"),
        out=Path("/out"),
        run_id="run",
        outside="1",
        providers=load_providers(),
        server="127.0.0.1:4711",
    ).variables

    rule = found["LANES_GUARD"].split(";")
    assert (KEYS.keys() & found.keys(), found["HARNESS_ALLOWED_HOSTS"]) == (set(), "127.0.0.1:4711")
    assert (rule[0], rule[1], rule[3]) == ("real", "local", "127.0.0.1:4711")
    assert rule[2] == "respx,vcr,mock_provider"
