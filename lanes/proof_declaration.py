"""Declared proofs: which edit of which guard must turn exactly which tests red, as read from lanes/proofs/*.toml.

Room: file input. The runner takes proofs from here, reports ask which ones there are; nothing is run.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal, NoReturn, TypeAlias

from lanes.claims import Claims
from lanes.errors import UsageError
from lanes.policy import LANES

FOLDER = PurePosixPath("lanes/proofs")
DEFAULT_TIMEOUT_S = 300.0  # ten times the slowest scope on two cores, so that only a hang meets it
MAX_REPEATS = 20
ALL_OTHERS = "all others"

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FIELDS = (
    "claim",
    "why",
    "lane",
    "scope",
    "expect_red",
    "must_match",
    "stay_green",
    "timeout_s",
    "may_hang",
    "repeat",
    "sample",
    "reach",
    "environment",
    "edits",
)
_EDIT_FIELDS = ("file", "anchor", "replace")
# Where the tests of a package's rooms stand, below lanes/unit; a room of a harness floor has the floor's folder.
_TEST_FOLDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "harness": ("assemble", "settings", "surfaces"),
        "lanes": ("lanes", "evidence", "scenario"),
        "mock_provider": ("mock_provider",),
        "reports": ("reports",),
    }
)

Reach: TypeAlias = Literal["executed", "read"]
_Value: TypeAlias = object  # what tomllib gives; every use checks its type


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file. anchor is text that stands in the file exactly once; replace takes its place."""

    file: str
    anchor: str
    replace: str


@dataclass(frozen=True, slots=True)
class Proof:
    """One declared proof; its id is the name of its file.

    Shape: expect_red is the exact set of items that the edits must turn red; must_match holds one regular expression
    per such item, searched in its failure; stay_green None means all others of the scope. reach says how an expected
    item must have met the edit: by executing an edited line, or, for a check of the source itself, by reading the file.
    environment is the tox environment whose packages the scope needs; empty when any will do.
    Units: timeout_s is wall time for one run of the whole scope.
    """

    id: str
    claim: str
    why: str
    edits: tuple[Edit, ...]
    expect_red: tuple[str, ...]
    lane: str = "unit"
    scope: tuple[str, ...] = ()
    must_match: Mapping[str, str] = field(default_factory=dict)
    stay_green: tuple[str, ...] | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    may_hang: bool = False
    repeat: int = 1
    sample: bool = False
    reach: Reach = "executed"
    environment: str = ""

    @property
    def file(self) -> str:
        """The declaration's place in the project."""
        return str(FOLDER / f"{self.id}.toml")


def declared_ids(root: Path) -> tuple[str, ...]:
    """The ids of all declared proofs, sorted, whatever their files say."""
    return tuple(sorted(path.stem for path in (root / FOLDER).glob("*.toml")))


def load_proofs(root: Path, claims: Claims) -> tuple[Proof, ...]:
    """Read and check every declaration of a project, sorted by id.

    Raises: UsageError, code PROOF, with file, field and what was expected.
    """
    return tuple(_load(path, root, claims) for path in sorted((root / FOLDER).glob("*.toml")))


def select_proofs(
    proofs: Sequence[Proof], words: Sequence[str], *, sample: bool, environment: str = ""
) -> tuple[Proof, ...]:
    """The proofs a person asked for: by id or by the word their ids begin with, or the sample, or all.

    Shape: a proof that needs another environment than this one is left out, unless it is asked for by its id.
    Raises: UsageError for a word that no declared id is or begins with, with the nearest id.
    """
    here = [proof for proof in proofs if proof.environment == environment]
    chosen = [proof for word in words for proof in _named(word, proofs, here)] if words else here
    by_id = {proof.id: proof for proof in chosen}
    return tuple(proof for proof in by_id.values() if proof.sample or not sample)


def is_below(path: str, folder: str) -> bool:
    """Whether a path of the project is a folder, or file, itself or stands inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _named(word: str, proofs: Sequence[Proof], here: Sequence[Proof]) -> list[Proof]:
    found = [proof for proof in proofs if proof.id == word]
    found = found or [proof for proof in here if proof.id.startswith(f"{word}-")]
    if not found:
        near = difflib.get_close_matches(word, [proof.id for proof in proofs], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"proof {word!r} is not declared{hint}",
            where="lanes proofs",
            expected=f"the name of a file in {FOLDER}, without its ending, or its first words",
            code="PROOF",
        )
    return found


def _load(path: Path, root: Path, claims: Claims) -> Proof:
    reader = _Reader(str(FOLDER / path.name))
    if not _ID.fullmatch(path.stem):
        reader.fail("", f"the name {path.stem!r} is no id", "small letters, digits and single hyphens")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reader.fail("", f"the file cannot be read: {error}", "a TOML file in UTF-8")
    reader.check_names(document, _FIELDS, "")
    proof = Proof(
        id=path.stem,
        claim=reader.text(document, "claim"),
        why=reader.text(document, "why"),
        edits=_edits(document, reader, root),
        expect_red=reader.texts(document, "expect_red"),
        lane=reader.text(document, "lane") if "lane" in document else "unit",
        scope=reader.texts(document, "scope") if "scope" in document else (),
        stay_green=_stay_green(document, reader),
        timeout_s=reader.number(document, "timeout_s", DEFAULT_TIMEOUT_S, most=3600),
        may_hang=reader.flag(document, "may_hang"),
        repeat=int(reader.number(document, "repeat", 1, most=MAX_REPEATS, whole=True)),
        sample=reader.flag(document, "sample"),
        reach=_reach(document, reader),
        environment=reader.text(document, "environment") if "environment" in document else "",
    )
    _check_claim(proof, claims, reader)
    proof = _with_scope(proof, root, reader)
    _check_items(proof, reader)
    return _with_matches(proof, document, reader)


def _edits(document: Mapping[str, _Value], reader: _Reader, root: Path) -> tuple[Edit, ...]:
    found = document.get("edits")
    if not isinstance(found, list) or not found:
        reader.fail("edits", "no edit is declared", "one or more [[edits]] tables with file, anchor and replace")
    edits: list[Edit] = []
    for number, table in enumerate(found, start=1):
        place = f"edits[{number}]"
        if not isinstance(table, dict):
            reader.fail(place, "is no table", "a table with file, anchor and replace")
        reader.check_names(table, _EDIT_FIELDS, place)
        file = reader.text(table, "file", place)
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts or not (root / file).is_file():
            reader.fail(f"{place}.file", f"{file!r} is not there", "the path of a file of this project")
        anchor, replacement = table.get("anchor"), table.get("replace")
        if not isinstance(anchor, str) or not anchor.strip():
            reader.fail(f"{place}.anchor", "is empty", "text that stands in the file exactly once")
        if not isinstance(replacement, str):
            reader.fail(f"{place}.replace", "is missing", "the text that takes the anchor's place")
        edits.append(Edit(file, anchor, replacement))
    return tuple(edits)


def _stay_green(document: Mapping[str, _Value], reader: _Reader) -> tuple[str, ...] | None:
    if document.get("stay_green", ALL_OTHERS) == ALL_OTHERS:
        return None
    return reader.texts(document, "stay_green", expected=f"a list of item ids, or {ALL_OTHERS!r}")


def _reach(document: Mapping[str, _Value], reader: _Reader) -> Reach:
    said = document.get("reach", "executed")
    if said == "executed":
        return "executed"
    if said != "read":
        reader.fail("reach", f"is {said!r:.80}", "'executed' or 'read'")
    return "read"


def _check_claim(proof: Proof, claims: Claims, reader: _Reader) -> None:
    if proof.claim not in claims.by_id:
        near = difflib.get_close_matches(proof.claim, claims.by_id, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        reader.fail("claim", f"claim {proof.claim!r} is unknown{hint}", f"the id of a claim in {claims.where}")
    keyless = [name for name, policy in LANES.items() if policy.keyless]
    if proof.lane not in keyless:
        reader.fail("lane", f"is {proof.lane!r}", f"a lane without a key: {', '.join(keyless)}")


def _with_scope(proof: Proof, root: Path, reader: _Reader) -> Proof:
    """The proof with its scope, which is never smaller than the whole test file of each room it edits."""
    scope = proof.scope or (f"lanes/{proof.lane}",)
    for path in scope:
        if "::" in path or not (root / path).exists():
            reader.fail("scope", f"{path!r} is no file or folder", "whole test files or folders that are there")
        if not is_below(path, f"lanes/{proof.lane}"):
            reader.fail("scope", f"{path!r} is not of lane {proof.lane!r}", f"files below lanes/{proof.lane}")
    for edit in proof.edits if proof.lane == "unit" else ():
        for own in _own_test_files(edit.file, root):
            if not any(is_below(own, path) for path in scope):
                reader.fail(
                    "scope", f"leaves out {own}", f"the whole test file of every room that is edited ({edit.file})"
                )
    return replace(proof, scope=scope)


def _own_test_files(file: str, root: Path) -> tuple[str, ...]:
    path = PurePosixPath(file)
    if path.suffix != ".py" or len(path.parts) < 2:
        return ()
    package, *between = path.parts[:-1]
    folders = (between[0],) if between else _TEST_FOLDERS.get(package, ())
    found = (f"lanes/unit/{folder}/test_{path.stem}.py" for folder in folders)
    return tuple(each for each in found if (root / each).is_file())


def _check_items(proof: Proof, reader: _Reader) -> None:
    if not proof.expect_red and not proof.may_hang:
        reader.fail("expect_red", "is empty", "the ids of the items that the edit turns red")
    for name, items in (("expect_red", proof.expect_red), ("stay_green", proof.stay_green or ())):
        for item in items:
            file, mark, _test = item.partition("::")
            if not mark or not any(is_below(file, path) for path in proof.scope):
                reader.fail(name, f"{item!r} is not in the scope", f"an item id below {', '.join(proof.scope)}")
        if len(set(items)) < len(items):
            reader.fail(name, "names an item twice", "each item once")
    both = sorted(set(proof.expect_red) & set(proof.stay_green or ()))
    if both:
        reader.fail("stay_green", f"{both[0]!r} is also in expect_red", "items that the edit does not touch")


def _with_matches(proof: Proof, document: Mapping[str, _Value], reader: _Reader) -> Proof:
    said = document.get("must_match", {})
    if isinstance(said, str):
        said = dict.fromkeys(proof.expect_red, said)
    if not isinstance(said, dict):
        reader.fail("must_match", "is neither text nor table", "a pattern for every item of expect_red")
    patterns: dict[str, str] = {}
    for item, pattern in said.items():
        if item not in proof.expect_red:
            reader.fail("must_match", f"{item!r} is not in expect_red", "items of expect_red")
        if not isinstance(pattern, str) or not pattern:
            reader.fail("must_match", f"the pattern of {item!r} is empty", "a regular expression")
        try:
            re.compile(pattern)
        except re.error as error:
            reader.fail("must_match", f"{pattern!r} is no pattern: {error}", "a regular expression")
        patterns[item] = pattern
    for item in proof.expect_red:
        if item not in patterns:
            reader.fail("must_match", f"no pattern for {item!r}", "a pattern for every item: why it must fail")
    return replace(proof, must_match=MappingProxyType(patterns))


class _Reader:
    """Takes checked values out of one file's tables."""

    def __init__(self, file: str) -> None:
        self._file = file

    def fail(self, name: str, what: str, expected: str) -> NoReturn:
        where = f"{self._file}, {name}" if name else self._file
        raise UsageError(what, where=where, expected=expected, code="PROOF")

    def check_names(self, table: Mapping[str, _Value], known: Sequence[str], place: str) -> None:
        for name in table:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self.fail(f"{place}.{name}" if place else name, f"is unknown{hint}", f"one of {', '.join(known)}")

    def text(self, table: Mapping[str, _Value], name: str, place: str = "") -> str:
        value = table.get(name)
        if not isinstance(value, str) or not value.strip():
            what = "is missing" if value is None else f"is {value!r:.80}"
            self.fail(f"{place}.{name}" if place else name, what, "text")
        return value

    def texts(self, table: Mapping[str, _Value], name: str, *, expected: str = "a list of texts") -> tuple[str, ...]:
        value = table.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(name, "is missing" if value is None else f"is {value!r:.80}", expected)
        return tuple(str(item) for item in value)

    def number(
        self, table: Mapping[str, _Value], name: str, default: float, *, most: float, whole: bool = False
    ) -> float:
        value = table.get(name, default)
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= most:
            kind = "a whole number" if whole else "a number"
            self.fail(name, f"is {value!r:.80}", f"{kind} above 0, at most {most}")
        return float(value)

    def flag(self, table: Mapping[str, _Value], name: str) -> bool:
        value = table.get(name, False)
        if not isinstance(value, bool):
            self.fail(name, f"is {value!r:.80}", "true or false")
        return value
