"""What `tox -e coverage` asks: the floor, what counts, and that whatever is left out says why."""

from __future__ import annotations

import re
import tomllib
from configparser import RawConfigParser
from pathlib import Path

import pytest

from lanes.environment import build_environment
from lanes.policy import LANES
from lanes.providers import load_providers

ROOT = Path(__file__).parents[3]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
REASON_WORDS = 3  # fewer name a thing and do not say why


def unexplained(text: str) -> list[str]:
    """The lines of a source text that leave something out of the measurement without a reason in words."""
    found = []
    for line in text.splitlines():
        if re.search(r"#\s*pragma", line, re.IGNORECASE):
            said = re.search(r"# pragma: no (?:cover|branch) - (\w.*)$", line)
            if said is None or len(said[1].split()) < REASON_WORDS:
                found.append(line.strip())
    return found


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = 1  # pragma: no cover", id="bare"),
        pytest.param("x = 1  # pragma: no branch", id="bare-branch"),
        pytest.param("x = 1  # pragma: no cover - ", id="empty"),
        pytest.param("x = 1  # pragma: no cover - unreachable", id="one-word"),
        pytest.param("x = 1  # pragma: no cover: the kernel never says so", id="other-form"),
        pytest.param("x = 1  #PRAGMA NO COVER", id="other-spelling"),
    ],
)
def test_an_exemption_without_a_reason_is_found(line: str) -> None:
    explained = "x = 1  # pragma: no cover - the kernel never says so\n"

    assert unexplained(f"{explained}{line}\n") == [line.strip()]


def test_every_exempted_line_of_the_harness_says_why() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sorted((ROOT / "harness").rglob("*.py"))
        if (lines := unexplained(path.read_text("utf-8")))
    }

    assert found == {}


def test_a_pragma_without_a_reason_exempts_nothing() -> None:
    patterns = [*CONFIGURATION["report"]["exclude_lines"], *CONFIGURATION["report"]["partial_branches"]]
    bare = ["x = 1  # pragma: no cover", "x = 1  # pragma: no branch", "if x:  # pragma: no cover -"]

    assert [line for line in bare for pattern in patterns if re.search(pattern, line)] == []
    assert re.search(patterns[0], "x = 1  # pragma: no cover - the kernel never says so")


def test_every_branch_of_the_harness_counts_and_the_floor_is_97_percent() -> None:
    measured, report = CONFIGURATION["run"], CONFIGURATION["report"]

    assert (measured["branch"], measured["source_dirs"], measured["patch"]) == (True, ["harness"], ["subprocess"])
    assert not {"omit", "include"} & (measured.keys() | report.keys())
    assert report["fail_under"] >= 97


def test_the_environment_runs_every_keyless_lane_and_then_judges() -> None:
    parser = RawConfigParser(default_section="no section has defaults")
    parser.read(ROOT / "tox.ini", "utf-8")
    commands = parser["testenv:coverage"]["commands"].split("\n")
    run = [re.search(r"^coverage run -m lanes.measured (\S+)$", command) for command in commands]

    assert {found[1] for found in run if found} == {lane for lane, policy in LANES.items() if policy.keyless}
    assert commands[-1] == "coverage report"


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_hands_the_measurement_on_unless_it_holds_a_key(lane: str) -> None:
    built = build_environment(
        {"COVERAGE_PROCESS_CONFIG": "measured"},
        LANES[lane],
        mark=lane,
        home=Path("/home/lane"),
        spool=Path("/spool"),
        out=Path("/out"),
        run_id="run-1",
        outside="1",
        providers=load_providers(),
    )

    assert ("COVERAGE_PROCESS_CONFIG" in built.variables) == LANES[lane].keyless
