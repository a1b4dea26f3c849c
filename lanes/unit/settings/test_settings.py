"""Every choice has one order: command line, environment, default; and keys stay where they belong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.secret_variables import secret_values, shell_environment
from harness.settings import PROVIDERS, Flags, Settings, from_environment

HOME = {"HOME": "/home/someone"}


def route(environ: dict[str, str], flags: Flags | None = None) -> tuple[str, str, str, str | None]:
    settings = from_environment({**HOME, **environ}, flags)
    return settings.provider, settings.model, settings.base_url, settings.api_key


@pytest.mark.parametrize(
    ("environ", "flags", "expected"),
    [
        pytest.param({}, Flags(), ("openai", "gpt-4.1-mini", "https://api.openai.com/v1", None), id="nothing-said"),
        pytest.param(
            {"DEEPSEEK_API_KEY": "k"},
            Flags(),
            ("deepseek", "deepseek-flash", "https://api.deepseek.com/v1", "k"),
            id="the-provider-whose-key-is-set",
        ),
        pytest.param(
            {"DEEPSEEK_API_KEY": "d", "OPENAI_API_KEY": "o"},
            Flags(),
            ("openai", "gpt-4.1-mini", "https://api.openai.com/v1", "o"),
            id="the-first-of-two-keys",
        ),
        pytest.param(
            {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
            Flags(),
            ("openai", "gpt-4.1-mini", "http://127.0.0.1:1/v1", None),
            id="the-provider's-own-address",
        ),
        pytest.param(
            {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "HARNESS_BASE_URL": "http://127.0.0.1:2/v1"},
            Flags(),
            ("openai", "gpt-4.1-mini", "http://127.0.0.1:2/v1", None),
            id="our-address-before-the-provider's",
        ),
        pytest.param(
            {"HARNESS_PROVIDER": "deepseek", "HARNESS_MODEL": "a", "HARNESS_BASE_URL": "http://e/v1"},
            Flags(provider="openai", model="b", base_url="http://f/v1"),
            ("openai", "b", "http://f/v1", None),
            id="flags-before-the-environment",
        ),
        pytest.param(
            {"HARNESS_PROVIDER": "", "HARNESS_MODEL": "  ", "HARNESS_BASE_URL": "", "OPENAI_API_KEY": " "},
            Flags(),
            ("openai", "gpt-4.1-mini", "https://api.openai.com/v1", None),
            id="blank-says-nothing",
        ),
        pytest.param(
            {"HARNESS_API_KEY": "h"},
            Flags(provider="custom", model="m", base_url="http://g/v1"),
            ("custom", "m", "http://g/v1", "h"),
            id="custom",
        ),
        pytest.param(
            {"OPENAI_API_KEY": " k\n"},
            Flags(),
            ("openai", "gpt-4.1-mini", "https://api.openai.com/v1", "k"),
            id="key-with-a-newline-around",
        ),
    ],
)
def test_the_route_is_settled_by_flags_then_environment_then_defaults(
    environ: dict[str, str], flags: Flags, expected: tuple[str, str, str, str | None]
) -> None:
    assert route(environ, flags) == expected


@pytest.mark.parametrize(
    ("environ", "flags", "where", "says"),
    [
        pytest.param(
            {"HARNESS_PROVIDER": "opnai"}, Flags(), "HARNESS_PROVIDER", "did you mean 'openai'", id="provider"
        ),
        pytest.param({}, Flags(provider="x"), "--provider", "provider 'x' is unknown", id="provider-flag"),
        pytest.param({}, Flags(provider="custom", model="m"), "--base-url", "no address", id="custom-without-address"),
        pytest.param(
            {}, Flags(provider="custom", base_url="http://x"), "--model", "no model", id="custom-without-model"
        ),
        pytest.param({"OPENAI_API_KEY": "a b"}, Flags(), "OPENAI_API_KEY", "blanks", id="key-with-a-blank"),
        pytest.param({"OPENAI_API_KEY": "schlüssel"}, Flags(), "OPENAI_API_KEY", "blanks", id="key-not-ascii"),
        pytest.param({}, Flags(cwd="/nowhere/at/all"), "--cwd", "not a folder", id="cwd"),
        pytest.param({"HARNESS_RETRY_BASE_MS": "-1"}, Flags(), "HARNESS_RETRY_BASE_MS", "'-1'", id="retry-base"),
        pytest.param({"HARNESS_SEED": "a\nb"}, Flags(), "HARNESS_SEED", "not usable", id="seed"),
        pytest.param({"HOME": ""}, Flags(), "--session-root", "HOME is not set", id="no-home"),
    ],
)
def test_a_value_that_cannot_work_is_named_with_its_place(
    environ: dict[str, str], flags: Flags, where: str, says: str
) -> None:
    with pytest.raises(UsageError) as raised:
        route(environ, flags)
    assert (raised.value.where, says in raised.value.what, raised.value.exit_code) == (where, True, 2)


@pytest.mark.parametrize(
    "variable",
    [
        "HARNESS_PROVIDER",
        "HARNESS_MODEL",
        "HARNESS_BASE_URL",
        "OPENAI_BASE_URL",
        "HARNESS_DIALECT",
        "HARNESS_MODEL_INPUT",
        "HARNESS_CONTEXT_WINDOW",
        "HARNESS_COMPACT_AT",
        "HARNESS_DELEGATION_DEPTH",
        "HARNESS_RETRY_BASE_MS",
        "HARNESS_ALLOWED_HOSTS",
        "HARNESS_SEED",
    ],
)
def test_a_variable_that_is_not_utf8_is_named_without_its_value(variable: str) -> None:
    value = "http://user:pw@é".encode() + b"\xff"
    with pytest.raises(UsageError) as raised:
        from_environment({"HOME": "/home/someone", variable: value.decode("utf-8", "surrogateescape")})
    assert (raised.value.where, raised.value.what) == (variable, "not UTF-8 at byte 17")
    assert "pw" not in str(raised.value)


def test_a_variable_that_is_not_utf8_does_not_matter_where_the_command_line_says_it() -> None:
    environ = {"HOME": "/home/someone", "HARNESS_MODEL": "\udcff", "HARNESS_COMPACT_AT": "\udcff"}
    found = from_environment(environ, Flags(model="m", compact_at=5))
    assert (found.model, found.compact_at) == ("m", 5)


def test_a_folder_for_session_logs_may_have_any_bytes_in_its_name() -> None:
    found = from_environment({"HOME": "/home/someone", "HARNESS_SESSION_ROOT": "/logs/\udcff"})
    assert os.fsencode(found.session_root) == b"/logs/\xff"


def test_a_refused_key_is_never_in_the_message_and_no_key_in_the_representation() -> None:
    with pytest.raises(UsageError) as raised:
        route({"OPENAI_API_KEY": "sk-canary with blank"})
    settings = from_environment({**HOME, "OPENAI_API_KEY": "sk-canary", "OTHER_KEY": "sk-canary"})
    assert ("canary" in str(raised.value), "canary" in repr(settings)) == (False, False)


@pytest.mark.parametrize(
    ("environ", "flags", "root"),
    [
        ({}, Flags(), "/home/someone/.local/state/five-lanes/sessions"),
        ({"XDG_STATE_HOME": "/state"}, Flags(), "/state/five-lanes/sessions"),
        ({"XDG_STATE_HOME": "relative"}, Flags(), "/home/someone/.local/state/five-lanes/sessions"),
        ({"HARNESS_SESSION_ROOT": "/told"}, Flags(), "/told"),
        ({"HARNESS_SESSION_ROOT": "/told"}, Flags(session_root="/flag"), "/flag"),
        ({"DSH_HOME": "/dsh"}, Flags(), "/dsh/sessions"),
        ({"DSH_HOME": "/dsh", "DSH_SESSION_ROOT": "/told"}, Flags(), "/told"),
    ],
    ids=["home", "state-folder", "relative-state-folder-is-ignored", "variable", "flag", "dsh-home", "dsh-root"],
)
def test_sessions_live_in_the_state_folder_unless_told_otherwise(
    environ: dict[str, str], flags: Flags, root: str
) -> None:
    assert from_environment({**HOME, **environ}, flags).session_root == Path(root)


@pytest.mark.parametrize(
    ("environ", "dialect"),
    [
        ({}, "openai_chat"),
        ({"HARNESS_DIALECT": "openai_responses"}, "openai_responses"),
        ({"HARNESS_DIALECT": " "}, "openai_chat"),
        ({"HARNESS_PROVIDER": "deepseek", "HARNESS_DIALECT": "anthropic_messages"}, "anthropic_messages"),
    ],
    ids=["of-the-provider", "told", "blank-says-nothing", "told-for-another-provider"],
)
def test_the_wire_format_is_the_provider_s_unless_told_otherwise(environ: dict[str, str], dialect: str) -> None:
    assert from_environment({**HOME, **environ}).dialect == dialect


def test_hosts_retries_and_seed_come_from_the_environment() -> None:
    def facts(settings: Settings) -> tuple[object, ...]:
        return settings.allowed_hosts, settings.retry_base_ms, settings.seed, settings.max_steps

    told = {"HARNESS_ALLOWED_HOSTS": " A.example, ,127.0.0.1:8 ", "HARNESS_RETRY_BASE_MS": "7", "HARNESS_SEED": "s"}
    assert facts(from_environment(HOME)) == (None, 500, None, 50)
    assert facts(from_environment({**HOME, **told})) == (frozenset({"a.example", "127.0.0.1:8"}), 7, "s", 50)
    assert from_environment({**HOME, "HARNESS_ALLOWED_HOSTS": ""}).allowed_hosts == frozenset()


@pytest.mark.parametrize(
    ("name", "is_shown"),
    [
        ("PATH", True),
        ("PYTHONPATH", True),
        ("SSH_AUTH_SOCK", True),
        ("LANES_GUARD", True),
        ("KEYBOARD", True),
        ("COMPATIBLE", True),
        ("HARNESS_SHELL", True),
        ("HARNESS_ALLOWED_HOSTS", True),
        ("HARNESS_BASE_URL", False),
        ("OPENAI_API_KEY", False),
        ("AWS_ACCESS_KEY_ID", False),
        ("AWS_SECRET_ACCESS_KEY", False),
        ("GITHUB_TOKEN", False),
        ("npm_config_authtoken", False),
        ("GH_PAT", False),
        ("DB_PASSWORD", False),
        ("MYSQL_PWD", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", False),
    ],
)
def test_a_shell_command_sees_everything_but_keys_and_our_settings(name: str, is_shown: bool) -> None:
    assert (name in shell_environment({name: "value"}, "the-key")) is is_shown


def test_the_key_in_use_is_hidden_under_whatever_name() -> None:
    environ = {"ALIAS": "the-key", "CONFIG": '{"k": "the-key"}', "PLAIN": "x"}
    assert shell_environment(environ, "the-key") == {"PLAIN": "x"}


def test_every_provider_is_reached_with_its_own_key() -> None:
    keys = [provider.key_variable for provider in PROVIDERS.values()]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        pytest.param("ACME_API_KEY", "canary-0417", True, id="key"),
        pytest.param("DB_PASSWORD", "correct-horse", True, id="password"),
        pytest.param("SIGNING_SECRET", "a" * 20, True, id="letters-longer-than-words"),
        pytest.param("GREETING", "canary-0417", False, id="another-name"),
        pytest.param("ACME_API_KEY", "canary", False, id="short"),
        pytest.param("POSTGRES_PASSWORD", "postgres", False, id="plain-word"),
        pytest.param("MAX_TOKENS", "128000000", False, id="number"),
        pytest.param("TOKEN_FILE", "/etc/hostname", False, id="path-of-something"),
        pytest.param("ACME_TOKEN", "/" + "a1" * 3000, True, id="too-long-for-a-path"),
        pytest.param("ACME_TOKEN", "~nobody-of-that-name/a1", True, id="no-such-home"),
        pytest.param("ACME_TOKEN", "canary-\0-0417", True, id="no-path-at-all"),
    ],
)
def test_S12_what_a_variable_holds_is_a_secret_by_its_name_and_not_when_it_is_an_ordinary_word(
    name: str, value: str, is_secret: bool
) -> None:
    assert secret_values({name: value, "PATH": "/usr/bin:/bin"}) == ((value,) if is_secret else ())
