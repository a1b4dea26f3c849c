"""The resolved tox configuration: what tox will really do, not what the file seems to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
KEYLESS = (
    *("unit", "snapshot", "replay", "offline", "offline-clients", "real-local"),
    *(
        "lint",
        "report",
        "demo",
        "accept",
        "proofs",
        "proofs-sample",
        "proofs-clients",
        "crash",
        "coverage",
        "fuzz",
        "example",
        "docs",
    ),
)
WITH_KEYS = ("real", "record")
KEYS = {"ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY"}
KNOWN_KEYS = {
    "base",
    "commands",
    "commands_pre",
    "depends",
    "deps",
    "description",
    "disallow_pass_env",
    "env_list",
    "min_version",
    "package",
    "pass_env",
    "set_env",
}
FORBIDDEN_KEYS = {"commands_retry", "ignore_outcome", "ignore_errors", "allowlist_externals"}

RESOLVE = """
import json, sys
from pathlib import Path
from tox.config.cli.parse import get_options
from tox.session.state import State

arguments = ["config", "-c", sys.argv[1], "--workdir", sys.argv[2]]
options = get_options(*arguments)
state = State(options, arguments)
found = {"env_list": list(state.conf.core["env_list"].envs), "envs": {}}
for name in sys.argv[3:]:
    conf = state.envs[name].conf
    found["envs"][name] = {
        "pass_env": sorted(conf["pass_env"]),
        "disallow_pass_env": sorted(conf["disallow_pass_env"]),
        "set_env": {key: conf["set_env"].load(key) for key in conf["set_env"]},
        "commands": [list(command.args) for command in conf["commands"]],
        "retry": conf["commands_retry"] if "commands_retry" in conf else 0,
        "ignored": [conf["ignore_outcome"], conf["ignore_errors"]],
        "package": conf["package"],
        "env_dir": str(conf["env_dir"]),
    }
sys.stdout.write(json.dumps(found))
"""


@cache
def raw() -> dict[str, dict[str, str]]:
    from configparser import RawConfigParser

    parser = RawConfigParser(default_section="no section has defaults")
    parser.read(ROOT / "tox.ini", "utf-8")
    return {section: dict(parser.items(section)) for section in parser.sections()}


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tox")
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE, str(ROOT / "tox.ini"), str(folder), *KEYLESS, *WITH_KEYS],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_tox_knows_every_key_of_the_file() -> None:
    unknown = {(section, key) for section, keys in raw().items() for key in keys if key not in KNOWN_KEYS}

    assert unknown == set()


def test_no_outcome_is_retried_or_ignored(resolved: dict[str, Any]) -> None:
    assert {(each["retry"], *each["ignored"]) for each in resolved["envs"].values()} == {(0, False, False)}
    assert not any(FORBIDDEN_KEYS & keys.keys() for keys in raw().values())
    assert not any(command[0].startswith("-") for each in resolved["envs"].values() for command in each["commands"])


def test_plain_tox_is_lint_the_keyless_lanes_and_the_board(resolved: dict[str, Any]) -> None:
    assert resolved["env_list"] == ["lint", "unit", "snapshot", "replay", "offline", "proofs-sample", "report"]


def test_real_is_not_in_the_default_list(resolved: dict[str, Any]) -> None:
    assert not set(WITH_KEYS) & set(resolved["env_list"])


@pytest.mark.parametrize("name", KEYLESS)
def test_no_key_is_passed_into_a_keyless_environment_and_none_may_be(resolved: dict[str, Any], name: str) -> None:
    env = resolved["envs"][name]

    assert KEYS & set(env["pass_env"]) == set()
    assert {"*KEY*", "*TOKEN*", "*SECRET*", "NETRC", "SSH_*"} <= set(env["disallow_pass_env"])


@pytest.mark.parametrize("name", WITH_KEYS)
def test_the_key_variables_are_passed_by_name_where_a_provider_is_asked(resolved: dict[str, Any], name: str) -> None:
    assert set(resolved["envs"][name]["pass_env"]) >= KEYS


def test_the_key_variables_are_those_of_the_provider_table() -> None:
    from lanes.providers import load_providers

    assert {provider.key for provider in load_providers()} == KEYS


def test_the_file_passes_nothing_by_wildcard() -> None:
    passed = {line.strip() for keys in raw().values() for line in keys.get("pass_env", "").splitlines()}

    assert not any("*" in name or "?" in name for name in passed if not name.startswith("{"))


@pytest.mark.parametrize("name", ["unit", "snapshot", "replay", "offline", "real", "real-local"])
def test_a_lane_environment_marks_itself_and_runs_its_lane(resolved: dict[str, Any], name: str) -> None:
    env = resolved["envs"][name]

    assert env["set_env"]["LANE_MARK"] == name
    assert env["commands"] == [["python", "-m", "lanes", "run", name]]


def test_the_journeys_that_need_other_packages_run_in_an_environment_of_their_own(resolved: dict[str, Any]) -> None:
    env = resolved["envs"]["offline-clients"]

    assert env["set_env"]["LANE_MARK"] == "offline-clients"
    assert env["commands"] == [["python", "-m", "lanes", "run", "offline-clients", "lanes/offline/clients"]]


def test_every_environment_has_its_own_folder_and_an_editable_install(resolved: dict[str, Any]) -> None:
    envs = resolved["envs"]

    assert len({each["env_dir"] for each in envs.values()}) == len(envs)
    assert {each["package"] for each in envs.values()} == {"editable"}


PASSED = """
import sys
from tox.config.cli.parse import get_options
from tox.session.state import State

arguments = ["config", "-c", sys.argv[1], "--workdir", sys.argv[2], *sys.argv[4:]]
state = State(get_options(*arguments), arguments)
sys.stdout.write(state.envs[sys.argv[3]].environment_variables.get("OPENAI_API_KEY", "absent"))
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("unit", "absent", id="unit"),
        pytest.param("offline", "absent", id="offline"),
        pytest.param("real", "sk-canary-0f3e9b", id="real"),
    ],
)
@pytest.mark.parametrize("way", ["plain", "override-variable", "override-option"])
def test_a_key_reaches_real_and_cannot_be_let_into_a_keyless_lane(
    name: str, expected: str, way: str, tmp_path: Path
) -> None:
    override = f"testenv:{name}.pass_env=OPENAI_API_KEY"
    environ = os.environ | {"OPENAI_API_KEY": "sk-canary-0f3e9b"}
    if way == "override-variable":
        environ["TOX_OVERRIDE"] = override
    options = ["-x", override] if way == "override-option" else []

    done = subprocess.run(
        [sys.executable, "-c", PASSED, str(ROOT / "tox.ini"), str(tmp_path), name, *options],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (0, expected), done.stderr
