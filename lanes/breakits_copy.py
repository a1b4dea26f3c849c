"""Copies of the tree that proofs are run in: one left as it is, one for every edit.

Room: file input and output, all of it outside the working tree, which is read and never written.
"""

from __future__ import annotations

import hashlib
import os
import py_compile
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lanes.errors import UsageError
from lanes.proof_declaration import Proof
from lanes.proof_edit import EditProblem, apply_edits, diff_of, watched_lines

_LOAD_TIMEOUT_S = 60
_REWRITTEN = "-pytest-"  # in the name of bytecode that pytest made
_FOUND_BY_HYPOTHESIS = Path(".hypothesis") / "constants"  # one file for each source, named by the digest of its text
_LOAD = "import importlib, sys; sys.stdout.write(importlib.import_module(sys.argv[1]).__file__ or '')"


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy with folders of its own for bytecode and for temporary files."""

    root: Path
    bytecode: Path
    temporary: Path


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of editing a copy: the lines to watch and the diff of each file, or what is wrong.

    Shape: problem is the verdict's word, empty when the copy can be run.
    """

    watch: Mapping[str, frozenset[int]]
    diffs: Mapping[str, str]
    problem: str = ""
    detail: str = ""


def tracked_files(root: Path) -> tuple[str, ...]:
    """The names of all tracked files, sorted.

    Raises: UsageError where there is no repository whose top is the root.
    """
    git = shutil.which("git")
    where = "lanes proofs"
    if git is None:
        raise UsageError("git is not on the path", where=where, fix="install git: it knows which files are the tree")
    environ = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run([git, "ls-files", "-z"], cwd=root, env=environ, capture_output=True, check=False)
    if done.returncode:
        raise UsageError(
            "this folder is in no git repository",
            where=where,
            fix="start in the project's root, or name it: --root DIR",
        )
    return tuple(sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name))


def tree_state(root: Path) -> dict[str, str]:
    """Every tracked file with the digest of its mode and content as it is in the working tree now."""
    return {name: _state_of(root / name) for name in tracked_files(root)}


def tree_digest(state: Mapping[str, str]) -> str:
    """One digest over a tree's state."""
    text = "".join(f"{name}\0{state[name]}\n" for name in sorted(state))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def copy_tree(root: Path, place: Path) -> Copy:
    """Copy the tracked files, as they are in the working tree, to a fresh folder."""
    copy = _new_copy(place)
    for name in tracked_files(root):
        source, target = root / name, copy.root / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return copy


def copy_again(original: Copy, place: Path) -> Copy:
    """A second copy of what the first one held before anything ran in it."""
    copy = _new_copy(place)
    copy.root.rmdir()
    shutil.copytree(original.root, copy.root, symlinks=True)
    return copy


def edit_copy(copy: Copy, proof: Proof) -> Applied:
    """Apply a proof's edits to a copy, and check that each applies once, changes its file, and compiles."""
    files = list(dict.fromkeys(edit.file for edit in proof.edits))
    watch: dict[str, frozenset[int]] = {}
    diffs: dict[str, str] = {}
    for name in files:
        path = copy.root / name
        before = path.read_text(encoding="utf-8")
        try:
            after = apply_edits(before, [edit for edit in proof.edits if edit.file == name])
        except EditProblem as problem:
            return Applied({}, diffs, "not applied", f"{name}: {problem}")
        path.write_text(after, encoding="utf-8")
        diffs[name] = diff_of(name, before, after)
        if path.suffix != ".py":
            continue
        try:
            watch[str(path)] = watched_lines(before, after)
            py_compile.compile(str(path), cfile=str(copy.temporary / "compiled"), doraise=True)
        except (SyntaxError, py_compile.PyCompileError) as error:
            return Applied({}, diffs, "did not build", f"{name}: {str(error).strip().splitlines()[-1]:.200}")
    return Applied(watch, diffs)


def loading_fault(copy: Copy, proof: Proof, variables: Mapping[str, str]) -> str:
    """Why an edited module of a copy does not load, or loads from elsewhere; empty when all do what they should.

    Shape: variables are the environment in which the copy runs.
    """
    faults = (_loading_fault(copy, name, variables) for name in dict.fromkeys(edit.file for edit in proof.edits))
    return next(filter(None, faults), "")


def lend_bytecode(lender: Copy, copy: Copy, edited: Collection[str]) -> None:
    """Give a copy the bytecode that the unedited one has, so that only what an edit touches is compiled anew.

    Shape: edited names files of the tree. Bytecode of an edited file is never lent: it would pass for fresh where the
    file kept its length and its time. What pytest rewrote holds the place of its source, which the interpreter corrects
    in its own bytecode only; it is replaced, and where the two places differ in length nothing rewritten is lent. What
    hypothesis found in the sources goes along: it is named by their content.
    """
    source = lender.bytecode / lender.root.relative_to(lender.root.anchor)
    target = copy.bytecode / copy.root.relative_to(copy.root.anchor)
    own = {name.removesuffix(".py") for name in edited}
    place, new_place = os.fsencode(lender.root), os.fsencode(copy.root)

    def is_lent(folder: Path, name: str) -> bool:
        if not (folder / name).is_dir() and not name.endswith(".pyc"):  # one that is being written at this moment
            return False
        if _REWRITTEN in name and len(place) != len(new_place):
            return False
        return (folder.relative_to(source) / name.partition(".")[0]).as_posix() not in own

    def lend(file: str, wanted: str) -> None:
        if _REWRITTEN not in file:
            Path(wanted).hardlink_to(file)  # bytecode is never written in place, only replaced
        else:
            Path(wanted).write_bytes(Path(file).read_bytes().replace(place, new_place))

    if source.is_dir():
        shutil.copytree(
            source,
            target,
            ignore=lambda folder, names: [name for name in names if not is_lent(Path(folder), name)],
            copy_function=lend,
            dirs_exist_ok=True,
        )
    found = lender.root / _FOUND_BY_HYPOTHESIS
    if found.is_dir():
        unfinished = shutil.ignore_patterns(".tmp-*")
        shutil.copytree(found, copy.root / _FOUND_BY_HYPOTHESIS, ignore=unfinished, dirs_exist_ok=True)


def link_libraries(copy: Copy, shared: Path) -> None:
    """Let the bytecode of the interpreter's libraries, which no proof edits, be compiled once for all copies."""
    names = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    linked: list[Path] = []
    for library in sorted(Path(name).resolve() for name in names if name):
        if any(library.is_relative_to(each) for each in linked) or copy.root.is_relative_to(library):
            continue
        inside = library.relative_to(library.anchor)
        (shared / inside).mkdir(parents=True, exist_ok=True)
        link = copy.bytecode / inside
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(shared / inside, target_is_directory=True)
        linked.append(library)


def _new_copy(place: Path) -> Copy:
    copy = Copy(place / "tree", place / "bytecode", place / "tmp")
    for folder in (copy.root, copy.bytecode, copy.temporary):
        folder.mkdir(parents=True)
    return copy


def _loading_fault(copy: Copy, name: str, variables: Mapping[str, str]) -> str:
    """Why the module of a file does not load, or loads from elsewhere; empty when it does what it should."""
    module = _module_name(copy.root, name)
    if module is None:
        return ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _LOAD, module],
            cwd=copy.root,
            env=dict(variables),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"module {module} does not end loading"
    if done.returncode:
        last = done.stderr.strip().splitlines()
        return f"module {module} does not load: {last[-1] if last else 'it ended the interpreter':.200}"
    if Path(done.stdout) != copy.root / name:
        return f"module {module} was loaded from elsewhere, not from the copy"
    return ""


def _module_name(root: Path, name: str) -> str | None:
    """The module that a file is, when it is one: every folder above it is a package."""
    path = PurePosixPath(name)
    if path.suffix != ".py" or path.stem in {"__main__", "conftest"}:
        return None
    folders = path.parent.parts
    if not all((root.joinpath(*folders[: depth + 1]) / "__init__.py").is_file() for depth in range(len(folders))):
        return None
    return ".".join(folders if path.stem == "__init__" else (*folders, path.stem)) or None


def _state_of(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "gone"
    if stat.S_ISLNK(mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(mode):
        return "no file"
    return f"{mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
