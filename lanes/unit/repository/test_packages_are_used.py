"""Each of the six packages does its work in the place it was chosen for."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from lanes.policy import LANES
from lanes.pytest_command import build_command

ROOT = Path(__file__).parents[3]


def importers(package: str, folder: str) -> list[str]:
    """The files below a folder that import a package."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] == package for name in names):
                found.append(path.relative_to(ROOT).as_posix())
                break
    return found


def test_httpx_carries_every_request_of_the_product_and_only_its_provider_room_opens_a_client() -> None:
    assert "harness/provider/http.py" in importers("httpx", "harness/provider")
    opened = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "harness").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"AsyncClient", "Client"} and _is_httpx(node.value)
    ]
    assert {Path(path).parent.as_posix() for path in opened} == {"harness/provider"}


def test_respx_mocks_httpx_for_the_provider_client_in_unit() -> None:
    assert importers("respx", "lanes/unit/provider") != []


def test_vcrpy_records_and_plays_cassettes() -> None:
    lanes = importers("vcr", "lanes")

    assert {"lanes/cassette.py", "lanes/recording.py"} <= set(lanes)


def test_pytest_runs_the_suite_of_every_lane() -> None:
    for policy in LANES.values():
        command = build_command(ROOT, policy, "0")
        assert command[1:3] == ("-m", "pytest")
        assert command[-1] == f"lanes/{policy.name}"


def test_xdist_spreads_a_lane_over_workers_in_the_one_way_that_survives_a_crash() -> None:
    command = build_command(ROOT, LANES["unit"], "2")
    at = command.index("-n")

    assert command[at : at + 4] == ("-n", "2", "--dist=load", "--max-worker-restart=0")
    assert "xdist" in command


def test_without_workers_xdist_is_not_even_loaded() -> None:
    assert "xdist" not in build_command(ROOT, LANES["unit"], "0")


def test_tox_starts_every_lane() -> None:
    text = (ROOT / "tox.ini").read_text("utf-8")

    assert "commands = python -m lanes run {env_name} {posargs}" in text
    assert [lane for lane in LANES if f"[testenv:{lane}]" not in text] == []


@pytest.mark.parametrize("package", ["pytest", "pytest-xdist", "vcrpy", "tox", "jinja2"])
def test_whoever_takes_the_lanes_gets_the_package_with_them(package: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["lanes"]

    assert any(each.startswith(package + ">") for each in declared)


def test_jinja2_lays_the_page_out_and_only_its_room_asks_for_it() -> None:
    rooms = [path for package in ("harness", "mock_provider", "reports") for path in (ROOT / package).rglob("*.py")]
    users = [path for path in [*rooms, *(ROOT / "lanes").glob("*.py")] if "jinja2 import" in path.read_text("utf-8")]

    assert [path.relative_to(ROOT).as_posix() for path in users] == ["reports/render/html.py"]


def _is_httpx(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "httpx"
