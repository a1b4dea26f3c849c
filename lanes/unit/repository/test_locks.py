"""The locks pin what pyproject.toml asks for, by hash, and name no index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
GROUPS = (
    "unit",
    "lane",
    "replay",
    "offline",
    "offline-clients",
    "real-local",
    "lint",
    "coverage",
    "browser",
    "fuzz",
    "example",
)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def requirements_of(group: str) -> tuple[Requirement, ...]:
    found: list[Requirement] = []
    for entry in PYPROJECT["dependency-groups"][group]:
        if isinstance(entry, str):
            found.append(Requirement(entry))
        else:
            found.extend(requirements_of(entry["include-group"]))
    return tuple(found)


def pins_of(group: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{group}.txt").read_text("utf-8")
    return {
        canonicalize_name(name): version
        for name, version in re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", text, re.MULTILINE)
    }


@pytest.mark.parametrize("group", GROUPS)
def test_every_direct_dependency_is_pinned_within_its_bound(group: str) -> None:
    pins = pins_of(group)
    direct = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]] + list(requirements_of(group))
    outside = {
        requirement.name: pins.get(canonicalize_name(requirement.name), "missing")
        for requirement in direct
        if not requirement.specifier.contains(pins.get(canonicalize_name(requirement.name), "0"), prereleases=True)
    }
    assert outside == {}


@pytest.mark.parametrize("group", GROUPS)
def test_every_pin_carries_a_hash_and_no_line_holds_an_address(group: str) -> None:
    text = (ROOT / "requirements" / f"{group}.txt").read_text("utf-8")
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)
    without_hash = [entry.split(" ")[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
    assert (without_hash, re.findall(r"https?://|--index-url|--find-links|file:", text)) == ([], [])


def test_every_dependency_states_a_lower_bound() -> None:
    groups = [requirement for group in PYPROJECT["dependency-groups"] for requirement in requirements_of(group)]
    extras = [Requirement(line) for lines in PYPROJECT["project"]["optional-dependencies"].values() for line in lines]
    core = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
    unbounded = {str(r) for r in groups + extras + core if not any(s.operator in (">=", "~=") for s in r.specifier)}
    assert unbounded == set()
