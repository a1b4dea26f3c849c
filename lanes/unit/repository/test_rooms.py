"""The rules of rooms that an import contract cannot say."""

from __future__ import annotations

import ast
import os
import pwd
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("harness", "mock_provider", "lanes", "reports")
SUITES = {"unit", "snapshot", "replay", "offline", "real", "cases"}
BANNED_NAMES = {"utils", "helpers", "common", "base", "core", "misc", "manager"}
# A room longer than 400 lines is listed here with its reason.
LONG_ROOMS: dict[str, str] = {}


def rooms(*packages: str) -> Iterator[Path]:
    for package in packages or PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            inside = path.relative_to(ROOT).parts
            if inside[0] == "lanes" and len(inside) > 1 and inside[1] in SUITES:
                continue
            yield path


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), name_of(path))


def calls_to(path: Path, name: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id == name)
            or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
        )
    ]


def attribute_reads(path: Path, module: str, attributes: set[str]) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in attributes
        and isinstance(node.value, ast.Name)
        and node.value.id == module
    ]


def test_only_the_factory_constructs_an_agent() -> None:
    assert [name_of(path) for path in rooms() if calls_to(path, "Agent")] == ["harness/assemble.py"]


def test_only_the_settings_room_of_the_harness_reads_the_environment() -> None:
    readers = [name_of(path) for path in rooms("harness") if attribute_reads(path, "os", {"environ", "getenv"})]
    assert readers == ["harness/settings.py"]


def test_only_the_stdio_room_of_the_harness_touches_the_standard_streams() -> None:
    streams = {"stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"}
    users = [name_of(path) for path in rooms("harness") if attribute_reads(path, "sys", streams)]
    assert users == ["harness/transport/stdio.py"]


def has_agents_made(path: Path) -> bool:
    """Whether a room of a surface has the factory make agents; the rooms around it only serve it."""
    return "surfaces" in path.parts and "harness.assemble import" in path.read_text(encoding="utf-8").replace("\n", " ")


@pytest.mark.parametrize("path", [p for p in rooms("harness") if has_agents_made(p)], ids=name_of)
def test_each_surface_says_that_it_composes_no_presets_and_leaves_the_model_to_the_host(path: Path) -> None:
    docstring = " ".join((ast.get_docstring(tree_of(path)) or "").split()).lower()
    assert ("composes no presets" in docstring, "model choice belongs to the host" in docstring) == (True, True)


def test_every_room_says_what_it_is() -> None:
    assert [name_of(path) for path in rooms() if not ast.get_docstring(tree_of(path))] == []


def test_no_room_has_a_name_that_says_nothing() -> None:
    assert [name_of(path) for path in rooms() if path.stem in BANNED_NAMES or path.parent.name in BANNED_NAMES] == []


def test_a_room_past_400_lines_is_listed_with_a_reason() -> None:
    long = {name_of(p) for p in rooms() if len(p.read_text("utf-8").splitlines()) > 400}
    assert long == set(LONG_ROOMS)


def test_nothing_in_the_tree_names_a_place_of_one_machine() -> None:
    needle = re.compile(rf"(?<!\w)({re.escape(str(ROOT))}|{re.escape(pwd.getpwuid(os.getuid()).pw_dir)})/")
    hits = [
        name_of(path)
        for path in ROOT.rglob("*")
        if path.suffix in {".py", ".md", ".toml", ".ini", ".yml", ".yaml", ".json", ".jsonl", ".txt"}
        and not {".git", ".tox", ".venv", "out", "node_modules"} & set(path.relative_to(ROOT).parts)
        and path != Path(__file__)
        and needle.search(path.read_text("utf-8", errors="replace"))
    ]
    assert hits == []


def test_every_room_of_the_lanes_has_its_place_in_the_contract_of_packages() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(c["layers"] for c in configuration["contracts"] if c["name"] == "Packages")
    listed = {room.strip() for layer in layers for room in layer.split(":") if room.strip().startswith("lanes.")}
    found = {f"lanes.{path.stem}" for path in (ROOT / "lanes").glob("*.py")} - {"lanes.__init__", "lanes.conftest"}
    assert listed == found
