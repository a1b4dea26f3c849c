"""Starting: what a project is given so that it has lanes, all of it new, nothing of its own touched.

Room: `lanes init` comes in. Either every file can be written or none is; what is there already is never replaced.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lanes.errors import UsageError

FIRST_AGENT = "first_agent"
FOLDER = "tests/lanes"
REQUIREMENT = "five-lanes[reports]"
TEMPLATES = Path(__file__).with_name("templates")
_PLACES: Mapping[str, str] = {
    "tox.ini": "tox.ini",
    "first_agent__init__.py": f"{FIRST_AGENT}/__init__.py",
    "first_agent__main__.py": f"{FIRST_AGENT}/__main__.py",
    "claims.toml": "@FOLDER@/claims.toml",
    "test_unit.py": "@FOLDER@/unit/test_first.py",
    "test_snapshot.py": "@FOLDER@/snapshot/test_first.py",
    "request.expected.json": "@FOLDER@/snapshot/request.expected.json",
    "test_replay.py": "@FOLDER@/replay/test_first.py",
    "multiply.yaml": "@FOLDER@/replay/multiply.yaml",
    "test_offline.py": "@FOLDER@/offline/test_first.py",
    "test_real.py": "@FOLDER@/real/test_first.py",
    "github.yml": ".github/workflows/lanes.yml",
    "gitlab.yml": ".gitlab-ci.yml",
}
_CONFIGURATION, _IGNORED = "pyproject.toml", ".gitignore"
_BUILDS = ("setup.py", "setup.cfg")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for.

    Shape: package is what evidence will be about; requirement is how pip finds this program; folder holds one folder a
    lane, from the project's root.
    """

    root: Path
    package: str = FIRST_AGENT
    requirement: str = REQUIREMENT
    folder: str = FOLDER


@dataclass(frozen=True, slots=True)
class Started:
    """What was done: files that are new, and files that got something at their end."""

    written: tuple[str, ...]
    extended: tuple[str, ...]


def start_project(wish: Wish) -> Started:
    """Give the project at root a file for each lane, the environments that run them, and workflows for two forges.

    Shape: pyproject.toml and .gitignore that are there already keep every byte and get theirs at the end.
    Raises: UsageError, before anything is written, when something is in the way or the wish cannot be meant.
    """
    _check(wish)
    files = {_fill(place, wish): _fill(_template(name), wish) for name, place in _PLACES.items()}
    extended: dict[str, str] = {}
    for name, text in ((_CONFIGURATION, _fill(_template(_CONFIGURATION), wish)), (_IGNORED, _template("gitignore"))):
        path = wish.root / name
        if path.is_file():
            extended[name] = _addition(name, _read(path), text)
        else:
            files[name] = text
    in_the_way = sorted({each for name in files if (each := _obstacle(wish.root, name))})
    if in_the_way:
        raise UsageError(
            f"{len(in_the_way)} of the files to write {'is' if len(in_the_way) == 1 else 'are'} there already: "
            f"{', '.join(in_the_way)}",
            where="lanes init",
            expected="a place for each of them; nothing was written",
            fix="move them away, choose another folder for the tests with --tests DIR, or take from "
            "`lanes init EMPTY_FOLDER` what you need",
        )
    for name, text in files.items():
        path = wish.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:  # somebody else's file that came this moment is not replaced
            file.write(text)
    for name, text in extended.items():
        with (wish.root / name).open("a", encoding="utf-8") as file:
            file.write(text)
    return Started(tuple(sorted(files)), tuple(sorted(name for name, text in extended.items() if text)))


def told(wish: Wish, started: Started) -> str:
    """What a person is told about it, and what to do next."""
    lines = [*(f"wrote {name}" for name in started.written), *(f"added to {name}" for name in started.extended)]
    if not any((folder / ".git").exists() for folder in (wish.root, *wish.root.parents)):
        lines.append("no git repository is here, and none is needed; in one, the board names its commit")
    elif not (wish.root / ".git").exists():
        lines.append("this is no repository's root, so the board will name no commit")
    if wish.package != FIRST_AGENT:
        lines.append(f"the first tests are about {FIRST_AGENT}; until yours import {wish.package}, each lane says so")
    lines.append(f"next: tox in {wish.root}; then put your agent in the place of {FIRST_AGENT}")
    return "".join(f"{line}\n" for line in lines)


def _check(wish: Wish) -> None:
    root, where = wish.root, "lanes init"
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is no folder", where=where, expected="a folder, or where one can be made")
    parts = PurePosixPath(wish.folder).parts
    if not parts or wish.folder.startswith("/") or ".." in parts or "\\" in wish.folder or '"' in wish.folder:
        message = f"--tests is {wish.folder[:80]!r}"
        raise UsageError(message, where=where, expected="a path from the project's root on, as tests/lanes")
    if not wish.requirement.strip() or "\n" in wish.requirement:
        message = f"--requirement is {wish.requirement[:80]!r}"
        raise UsageError(message, where=where, expected="one requirement as pip reads it, as five-lanes[reports]==1.0")
    if not wish.package.isidentifier():
        message = f"--package is {wish.package[:80]!r}"
        raise UsageError(message, where=where, expected="the name that is imported, without dots")
    places = (root / wish.package, root / "src" / wish.package)
    if wish.package != FIRST_AGENT and not any((place / "__init__.py").is_file() for place in places):
        raise UsageError(
            f"there is no package {wish.package!r} here",
            where=where,
            expected=f"{wish.package}/__init__.py, or the same below src",
            fix="name one that is here, or leave --package out and say later what the evidence is about: [tool.lanes]",
        )


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text("utf-8")


def _fill(text: str, wish: Wish) -> str:
    is_built = any((wish.root / name).is_file() for name in _BUILDS) or _is_built_by_table(wish.root / _CONFIGURATION)
    filled = {
        "@PACKAGE@": wish.package,
        "@FOLDER@": PurePosixPath(wish.folder).as_posix(),
        "@REQUIREMENT@": wish.requirement.strip(),
        "@INSTALL@": "package = editable" if is_built else "package = skip",
    }
    for mark, value in filled.items():
        text = text.replace(mark, value)
    return text


def _is_built_by_table(path: Path) -> bool:
    return path.is_file() and bool({"project", "build-system"} & _tables(path.name, _read(path)).keys())


def _addition(name: str, there: str, text: str) -> str:
    """What a file that is there gets at its end; nothing when it has all of it."""
    start = "" if there.endswith("\n") or not there else "\n"
    if name == _IGNORED:
        missing = [line for line in text.splitlines() if line not in there.splitlines()]
        return start + "".join(f"{line}\n" for line in missing) if missing else ""
    tool = _tables(name, there).get("tool")
    if isinstance(tool, dict) and "lanes" in tool:
        message = "has a table [tool.lanes] already"
        raise UsageError(message, where=name, expected="a project without lanes; nothing was written")
    addition = f"{start}\n{text}"
    _tables(name, there + addition)  # a file that spells its tables in an unusual way is not broken by ours
    return addition


def _tables(name: str, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"[tool.lanes] cannot be added to it: {error}"
        raise UsageError(message, where=name, expected="TOML; nothing was written") from None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", where=path.name, expected="text; nothing was written") from None


def _obstacle(root: Path, name: str) -> str:
    """The file that is where a new one is to go, or the one where its folder is to be; empty when there is none."""
    path = root / name
    if path.exists() or path.is_symlink():
        return name
    above = next((each for each in path.parents if each.exists() and each != root.parent), root)
    return "" if above.is_dir() or not above.exists() else above.relative_to(root).as_posix()
