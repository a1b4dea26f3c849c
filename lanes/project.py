"""The project that lanes run in: its folders, its claims, and what its evidence is about.

Room: file input. Runner, plugin and reports come in; it reads the table `[tool.lanes]` of pyproject.toml.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath

from lanes.claims import FOLDERS, Claims, load_claims
from lanes.errors import UsageError
from lanes.policy import LANES, LanePolicy

CONFIGURATION = "pyproject.toml"
PACKAGE = "harness"  # what evidence is about where a project does not say it: the loop of this one
_TABLE = "tool.lanes"
_FIELDS = ("package", "sources", "claims", "locks", "folders")


@dataclass(frozen=True, slots=True)
class Project:
    """What a project says about its lanes.

    Shape: evidence is about `package`, the Python package as it is imported, or about `sources`, files and folders from
    the root, when the package is empty; never about both. `folders` go by lane; `locks` are patterns of files.
    """

    root: Path
    package: str = PACKAGE
    sources: tuple[str, ...] = ()
    claims: str = "lanes/claims.toml"
    locks: tuple[str, ...] = ("requirements/*.txt",)
    folders: Mapping[str, str] = field(default_factory=lambda: {name: f"lanes/{name}" for name in LANES})
    is_declared: bool = False

    @property
    def has_lanes(self) -> bool:
        """Whether the folder of at least one lane is there, or where nothing is declared one for all of them."""
        folders = self.folders.values() if self.is_declared else ("lanes",)
        return any((self.root / folder).is_dir() for folder in folders)

    @property
    def claims_path(self) -> Path:
        """Where the claims lie, whether or not they are there."""
        return self.root / self.claims

    def place(self, policy: LanePolicy) -> LanePolicy:
        """Return the policy of a lane with the folder that its tests have here."""
        return replace(policy, folder=self.folders[policy.name])

    def imported_package(self) -> Path | None:
        """Where this interpreter imports the package from, or its tests would; None when evidence is about files.

        Raises: UsageError when a declared package cannot be found, or is a single file.
        """
        if not self.package:
            return None
        spec = importlib.util.find_spec(self.package)
        if spec is None and self.is_declared:  # a console command does not look where it was started; tests do
            spec = PathFinder.find_spec(self.package, [str(self.root), str(self.root / "src")])
        found = spec is not None and spec.origin is not None
        if found and spec is not None and spec.submodule_search_locations is not None:
            return Path(str(spec.origin)).parent.resolve()
        if not self.is_declared:
            return None
        what = "is one file, no package" if found else "cannot be imported here"
        raise UsageError(
            f"package {self.package!r} {what}",
            where=f"{CONFIGURATION}:{_line_of(_text_of(self.root), 'package')}, [{_TABLE}] package",
            expected="the name of a folder with an __init__.py that the tests import",
            fix="name its files instead: sources = […]" if found else "install it, or put its folder on PYTHONPATH",
            code="PROJECT",
        )


def load_project(root: Path) -> Project:
    """Read what the project at root says about its lanes; without a table, what this project itself has.

    Raises: UsageError with file, line and field, code PROJECT; of several mistakes with each, in the order of the file.
    """
    text = _text_of(root)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is no TOML: {error}", where=CONFIGURATION, code="PROJECT") from None
    tool = document.get("tool")
    table = tool.get("lanes") if isinstance(tool, dict) else None
    if table is None:
        return Project(root)
    if not isinstance(table, dict):
        raise UsageError(f"{_TABLE} is no table", where=CONFIGURATION, expected=f"[{_TABLE}]", code="PROJECT")
    reader = _Table(root, text, table)
    project = reader.project()
    mistakes = reader.mistakes
    if len(mistakes) > 1:
        together = UsageError(f"{len(mistakes)} mistakes", where=CONFIGURATION, code="PROJECT")
        together.parts = tuple(mistakes)
        raise together
    if mistakes:
        raise mistakes[0]
    return project


def claims_of(project: Project) -> Claims:
    """The claims of a project; none where it has no claims file.

    Raises: ClaimsError.
    """
    path = project.claims_path
    if not path.exists():
        return Claims(where=project.claims)
    below = tuple(project.folders.values()) if project.is_declared else FOLDERS
    return load_claims(path, where=project.claims, below=below)


def _text_of(root: Path) -> str:
    path = root / CONFIGURATION
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot be read: {what}", where=CONFIGURATION, code="PROJECT") from None


def _line_of(text: str, name: str) -> int:
    """The line of a field in the table or in one below it; the first line of the table when it is not found there."""
    start, inside = 1, False
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        if header is not None:
            inside = header[1].strip() == _TABLE or header[1].strip().startswith(_TABLE + ".")
            start = number if header[1].strip() == _TABLE else start
        elif inside and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line):
            return number
    return start


class _Table:
    """The table while it is being checked; mistakes are kept, so that all of them are told at once."""

    def __init__(self, root: Path, text: str, table: Mapping[str, object]) -> None:
        self._root = root
        self._text = text
        self._table = table
        self._found: list[tuple[int, UsageError]] = []

    @property
    def mistakes(self) -> list[UsageError]:
        """What is wrong with the table, in the order of its lines."""
        return [mistake for _line, mistake in sorted(self._found, key=lambda each: each[0])]

    def project(self) -> Project:
        """The project as far as it can be read; it is one only where there are no mistakes."""
        for name in self._table:
            if name not in _FIELDS:
                self._fail(name, f"field {name!r:.80} is unknown{_near(name, _FIELDS)}", f"one of {', '.join(_FIELDS)}")
        package, sources = self._package(), self._paths("sources")
        has_package, has_sources = bool(self._table.get("package")), bool(self._table.get("sources"))
        if has_package and has_sources:
            self._fail("sources", "both 'package' and 'sources' are there", "one of them: evidence is about one thing")
        if not has_package and not has_sources:
            expected = 'package = "NAME" for a Python package, or sources = ["FILE or FOLDER", …] for anything else'
            self._fail("package", "nothing says what the evidence is about", expected)
        for source in sources:
            if not has_package and not (self._root / source).exists():
                self._fail("sources", f"there is no {source!r} here", "files and folders from the project's root")
        usual = Project(self._root)
        return Project(
            self._root,
            package=package,
            sources=sources,
            claims=self._path("claims", self._table.get("claims", usual.claims)) or usual.claims,
            locks=self._paths("locks") if "locks" in self._table else usual.locks,
            folders={**usual.folders, **self._folders()},
            is_declared=True,
        )

    def _fail(self, name: str, what: str, expected: str) -> None:
        line = _line_of(self._text, name)
        where = f"{CONFIGURATION}:{line}, [{_TABLE}] {name:.80}"
        self._found.append((line, UsageError(what, where=where, expected=expected, code="PROJECT")))

    def _package(self) -> str:
        value = self._table.get("package", "")
        if isinstance(value, str) and (not value or value.isidentifier()):
            return value
        self._fail("package", f"{value!r:.80} is no name of a package", "the name that is imported, without dots")
        return ""

    def _paths(self, name: str) -> tuple[str, ...]:
        value = self._table.get(name, [])
        if not isinstance(value, list):
            self._fail(name, f"{value!r:.80} is no list", 'a list of paths, as ["agent", "prompts"]')
            return ()
        return tuple(path for each in value if (path := self._path(name, each)))

    def _path(self, name: str, value: object) -> str:
        """The path, in one spelling; empty where it is none."""
        path = PurePosixPath(value) if isinstance(value, str) else None
        if path is None or not path.parts or path.is_absolute() or ".." in path.parts or "\\" in str(value):
            self._fail(name, f"{value!r:.80} is no path inside the project", "a path from the project's root, with '/'")
            return ""
        return path.as_posix()

    def _folders(self) -> dict[str, str]:
        value = self._table.get("folders", {})
        if not isinstance(value, dict):
            self._fail("folders", f"{value!r:.80} is no table", 'a table of lane = "folder"')
            return {}
        found: dict[str, str] = {}
        for lane, folder in value.items():
            if lane not in LANES:
                what = f"lane {lane!r:.80} is unknown{_near(lane, tuple(LANES))}"
                self._fail(lane, what, f"one of {', '.join(LANES)}")
                continue
            path = self._path(lane, folder)
            if not path:
                continue
            for other, taken in found.items():
                if (
                    path == taken
                    or PurePosixPath(path).is_relative_to(taken)
                    or PurePosixPath(taken).is_relative_to(path)
                ):
                    expected = "a folder of its own for each lane"
                    self._fail(lane, f"{path!r} lies in the folder of lane {other!r}", expected)
            found[lane] = path
        return found


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
