"""The subject: which exact code the evidence of a run is about.

Room: file input and git. The plugin and the reports ask for it once a process; it changes nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lanes.project import Project, load_project
from lanes.record import Subject, digest_bytes, digest_json

_SKIPPED_FOLDERS = frozenset({"__pycache__", "out", ".git", ".tox", ".venv", "node_modules", "build", "dist"})
_GIT_TIMEOUT_S = 60
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9]{2}:[0-9]{2})")


def current_subject(root: Path, *, package_folder: Path | None = None) -> Subject:
    """The subject of the tree at root, as this interpreter would import its loop.

    Shape: without git (or in somebody else's repository) commit is empty and tree is a digest of the source files.
    The loop is the project's package as imported, or the files that it names instead.
    Limits: package_folder is for tests; by default the place the interpreter imports the package from.
    Raises: UsageError for a table [tool.lanes] that cannot be read, or a package that is not there.
    """
    root = root.resolve()
    project = load_project(root)
    place = package_folder or project.imported_package()
    commit, tree, dirty_digest = _git_facts(root)
    return Subject(
        commit=commit,
        tree=tree or _digest_files(root, _source_files(project)),
        dirty=bool(dirty_digest),
        dirty_digest=dirty_digest,
        lock_digest=_digest_files(root, sorted({path for each in project.locks for path in root.glob(each)})),
        loop_digest=_loop_digest(project, place),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.machine()}",
    )


def commit_times(root: Path, folder: str) -> dict[str, str]:
    """When the commit was made that holds each file below a folder as it stands, as an ISO date and time.

    Shape: by the file's name in the tree; a file that is changed or in no commit is absent, and without git all are.
    """
    told = _git(root, "log", "--format=%x00%cI", "--name-only", "-z", "--no-renames", "--", folder)
    changed = _git(root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", folder)
    if told is None or changed is None:
        return {}
    touched = {os.fsdecode(entry[3:]) for entry in changed.split(b"\0") if entry}
    found: dict[str, str] = {}
    at = ""
    for word in filter(None, (os.fsdecode(each).strip() for each in told.split(b"\0"))):
        if _DATE.fullmatch(word):
            at = word
        elif word not in touched:
            found.setdefault(word, at)
    return found


def imported_folder(package: str) -> Path | None:
    """Where the interpreter imports a top-level package from; None when it would not find it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent.resolve()


def digest_package(folder: Path) -> str:
    """The digest of a package's source files by relative path and content; bytecode and data do not count."""
    return _digest_files(folder, sorted(path for path in folder.rglob("*.py") if _is_source(path, folder)))


def _is_source(path: Path, root: Path) -> bool:
    return path.is_file() and not _SKIPPED_FOLDERS.intersection(path.relative_to(root).parts)


def _loop_digest(project: Project, place: Path | None) -> str:
    if project.sources:
        return _digest_files(project.root, _files_below(project.root, project.sources))
    return digest_package(place) if place is not None else ""


def _source_files(project: Project) -> list[Path]:
    own = (project.package, *project.sources, *project.folders.values(), project.claims)
    ours = () if project.is_declared else ("mock_provider", "lanes", "reports")
    return _files_below(project.root, [*filter(None, own), *ours, "pyproject.toml", "tox.ini"])


def _files_below(root: Path, names: Iterable[str]) -> list[Path]:
    """The source files that are named or lie in a named folder, each once, in order."""
    found: set[Path] = set()
    for name in names:
        path = root / name
        found.update(each for each in (path, *path.rglob("*")) if _is_source(each, root))
    return sorted(found)


def _digest_files(root: Path, paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode(errors="surrogateescape"))
    return "sha256:" + digest.hexdigest()


def _git_facts(root: Path) -> tuple[str, str, str]:
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(os.fsdecode(top).rstrip("\n")).resolve() != root:
        return "", "", ""
    commit = _git(root, "rev-parse", "HEAD")
    tree = _git(root, "rev-parse", "HEAD^{tree}")
    changed = _git(root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    if commit is None or tree is None or changed is None:
        return "", "", ""
    return commit.decode().strip(), tree.decode().strip(), _dirty_digest(root, changed)


def _dirty_digest(root: Path, status: bytes) -> str:
    changes: list[list[str]] = []
    for entry in status.split(b"\0"):
        if not entry:
            continue
        name = os.fsdecode(entry[3:])
        path = root / name
        if path.is_symlink():
            content = digest_bytes(os.fsencode(path.readlink()))
        else:
            content = digest_bytes(path.read_bytes()) if path.is_file() else "gone"
        changes.append([name, content])
    return digest_json([list(change) for change in sorted(changes)]) if changes else ""


def _git(root: Path, *arguments: str) -> bytes | None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],  # noqa: S607 - git is found where the machine keeps it
            capture_output=True,
            env=environment,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # no git, or one that hangs: the tree is then its own witness
        return None
    return done.stdout if done.returncode == 0 else None
