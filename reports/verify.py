"""Verification: every digest, chain, judgement and output worked out anew from the bundles, nothing taken on trust.

Room: file input. The lane command comes in. What cannot be checked from here is said, never passed over.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lanes.bundle import find_bundles
from lanes.bundle_reading import digest_bundle, read_bundle
from lanes.claims import Claims
from lanes.errors import EvidenceError, UsageError
from lanes.proof_record import find_proof_bundles
from lanes.record import Subject, digest_bytes
from lanes.subject import current_subject
from reports.admit import Admission
from reports.board import Board
from reports.comparison import differences
from reports.items import GRAVE_NOTICES
from reports.manifest import MANIFEST, Manifest, digest_rules, parse_manifest
from reports.merge import MERGED, read_merged
from reports.output import (
    JSON,
    Render,
    admission_for,
    claims_of,
    configuration_digests,
    load_board,
    output_files,
)
from reports.recordings import compare_recordings, named_recordings

# What may honestly be so and leaves the evidence with a hole; every other finding means that something was changed.
LACKING = frozenset({"torn", "no-trailer", "unjudged", "no-records", "missing shard", "overlap"})
_STATEMENT = re.compile(r"statement-.+\.json")
_ALWAYS_UNCHECKED = (
    "who wrote the bundles: they are not signed here, and a consistent rewrite of all of them fits",
    "that the tests look at what their claims say, and that the interpreter that ran them was an honest one",
    "that the guards' proofs ran as they say: they are judged anew, and not run again",
    "wire facts of live answers: they are observed by code of the run itself",
)


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that does not hold: its code, where it is, and what is wrong."""

    code: str
    where: str
    text: str

    @property
    def is_lacking(self) -> bool:
        """Whether something is missing only, and nothing shows that it was changed."""
        return self.code in LACKING


@dataclass(slots=True)
class Verification:
    """What came of verifying one output folder: what was checked, what does not hold, and what nobody looked at."""

    checked: list[str] = field(default_factory=list)
    findings: set[Finding] = field(default_factory=set)
    unchecked: list[str] = field(default_factory=lambda: list(_ALWAYS_UNCHECKED))

    def find(self, code: str, where: str, text: str) -> None:
        """Note something that does not hold."""
        self.findings.add(Finding(code, where, text))


def verify_folder(out: Path, root: Path) -> Verification:
    """Verify the bundles of an output folder, and what was written from them, against the rules of the project at root.

    Shape: without a manifest the outputs are not compared, and that is said.
    Raises: UsageError when the folder holds no bundle.
    """
    folders = find_bundles(out)
    if not folders:
        fix = "name the output folder: the one that holds the folder bundles"
        raise UsageError("there is no bundle below it", where=str(out), fix=fix)
    seen = Verification()
    manifest = _manifest(out, seen)
    recordings: dict[str, set[str]] = {}
    subject = _check_bundles(folders, manifest, seen, recordings)
    _check_lists(out, folders, manifest, seen)
    _check_recordings(root, recordings, subject, seen)
    lines = None if manifest is None else manifest.history_lines
    own = [digest_bundle(folder) for folder in folders]
    claims, admission = claims_of(root), admission_for(root, subject, lines, own)
    is_alike = _check_rules(root, claims, admission, manifest, seen)
    now = datetime.now(UTC) if manifest is None else _time_of(manifest, seen)
    board = load_board(out, root, now, claims=claims, admission=admission, history_lines=lines)
    _check_board(board, seen)
    if manifest is None:
        seen.unchecked.append(f"the outputs: no {MANIFEST} says what they were written from (lanes report writes one)")
    elif any(each.code in {"bundle-missing", "bundle-unknown", "subject"} for each in seen.findings):
        seen.unchecked.append("the outputs: they were written from other bundles than those that lie here")
    elif is_alike:
        _check_outputs(out, board, manifest, seen)
    return seen


def _manifest(out: Path, seen: Verification) -> Manifest | None:
    path = out / MANIFEST
    if not path.is_file():
        return None
    try:
        return parse_manifest(path.read_bytes())
    except EvidenceError as error:
        seen.find("manifest", MANIFEST, error.what)
        return None


def _check_bundles(
    folders: tuple[Path, ...], manifest: Manifest | None, seen: Verification, recordings: dict[str, set[str]]
) -> Subject:
    """Read every bundle, one after the other, and return the subject that the evidence is about.

    Shape: the recordings that its records name are added to recordings.
    """
    subjects: dict[tuple[str, str, bool, str, str], Subject] = {}
    records = 0
    for folder in folders:
        bundle = read_bundle(folder)
        records += len(bundle.records)
        named_recordings(bundle.records, recordings)
        if bundle.header.run_id:
            subjects.setdefault(bundle.header.subject.identity, bundle.header.subject)
        for problem in bundle.problems:
            seen.find(problem.code, problem.where, problem.text)
    seen.checked.append(f"{len(folders)} bundles with {records} records: digests, chains, lists and trailers")
    told = sorted(subject.commit[:12] or subject.tree[:19] for subject in subjects.values())
    if manifest is None:
        if len(subjects) > 1:
            seen.find("subject", "bundles", f"they are about {len(subjects)} subjects: {', '.join(told)}")
        return next(iter(subjects.values()), Subject())
    if manifest.subject.identity not in subjects:
        about = manifest.subject.commit[:12] or manifest.subject.tree[:19]
        seen.find("subject", MANIFEST, f"the board is about {about}, the bundles about {', '.join(told) or 'nothing'}")
    return manifest.subject


def _check_lists(out: Path, folders: tuple[Path, ...], manifest: Manifest | None, seen: Verification) -> None:
    """Hold the bundles that lie there against those that the manifest and the merge name."""
    proofs = find_proof_bundles(out)
    there = {digest_bundle(folder): folder for folder in (*folders, *proofs)}
    if manifest is not None:
        _check_list(MANIFEST, {*manifest.bundles, *manifest.proofs}, there, seen)
    try:
        merged = read_merged(out)
    except EvidenceError as error:
        seen.find("merge", MERGED, error.what)
        return
    if merged is not None:
        _check_list(MERGED, {each.digest for each in merged}, there, seen)


def _check_list(name: str, listed: set[str], there: Mapping[str, Path], seen: Verification) -> None:
    for digest in sorted(listed - there.keys()):
        seen.find("bundle-missing", name, f"the bundle {digest} that it names is not there, or was changed")
    for digest in sorted(there.keys() - listed):
        folder = there[digest]
        text = f"it does not name this bundle ({digest}): one was changed, or came later"
        seen.find("bundle-unknown", f"{folder.parent.name}/{folder.name}", f"{name}: {text}")
    seen.checked.append(f"the {len(listed)} bundles that {name} names")


def _check_recordings(root: Path, named: Mapping[str, set[str]], subject: Subject, seen: Verification) -> None:
    """Digest every recording that records name anew; in another tree than theirs a difference says nothing."""
    same, other, gone = compare_recordings(root, named)
    if same:
        seen.checked.append(f"the digests of {len(same)} recordings that records name")
    if other and current_subject(root).identity == subject.identity:
        for name in other:
            seen.find("recording", name, "it is not the recording that was played, or records disagree about it")
    elif other:
        seen.unchecked.append(f"the recordings {', '.join(other)}: they differ here, where the tree is another one")
    if gone:
        seen.unchecked.append(f"the recordings {', '.join(gone)}: they are not here")


def _check_rules(
    root: Path, claims: Claims, admission: Admission, manifest: Manifest | None, seen: Verification
) -> bool:
    """Whether the project at root judges by the rules that the board was folded with."""
    if not len(claims):
        seen.unchecked.append("the rows: there is no claims file here; start in the project, or name it: --root DIR")
    if manifest is None:
        return False
    here = digest_rules(claims, admission)
    other = sorted(name for name in here if here[name] != manifest.rules.get(name))
    if other:
        seen.unchecked.append(
            f"the outputs: they were written with other {', '.join(other)} than those of this project; "
            "check out the board's commit, or fold anew: lanes report"
        )
        return False
    seen.checked.append("the rules: claims, provider table and trust store are those of the board")
    files = configuration_digests(root)
    changed = sorted(name for name, digest in manifest.configuration.items() if files.get(name) != digest)
    if changed:
        seen.unchecked.append(f"the configuration that the statements name: {', '.join(changed)} differ here")
    else:
        seen.checked.append(f"the {len(manifest.configuration)} files of configuration that the statements name")
    return True


def _time_of(manifest: Manifest, seen: Verification) -> datetime:
    try:
        return datetime.fromisoformat(manifest.folded_at)
    except ValueError:
        seen.find("manifest", MANIFEST, f"{manifest.folded_at!r:.40} is no time")
        return datetime.now(UTC)


def _check_board(board: Board, seen: Verification) -> None:
    """What folding the evidence anew found wrong with it."""
    named = {(finding.code, finding.where) for finding in seen.findings}
    for void in board.voids:
        if (void.code, void.node_id) not in named:
            seen.find(void.code, void.node_id, f"{void.text} ({void.rule})")
    for notice in board.notices:
        if notice.kind in GRAVE_NOTICES or notice.kind in LACKING - {"torn"}:
            seen.find(notice.kind, notice.lane, notice.text)
    for aside in board.set_aside:
        seen.unchecked.append(f"{aside.lane}, {aside.bundle}: it is about another subject, {aside.subject}")
    seen.checked.append(f"{sum(len(column.items) for column in board.columns)} items judged anew from raw facts")


def _check_outputs(out: Path, board: Board, manifest: Manifest, seen: Verification) -> None:
    """Render every file anew and compare it byte for byte with the one that lies there."""
    files = output_files(board, manifest.configuration)
    lying = {path.name for path in out.glob("statement-*.json")}
    for name in sorted((manifest.outputs.keys() | lying) - files.keys()):
        code = "statement-unfounded" if _STATEMENT.fullmatch(name) else "manifest"
        seen.find(code, name, "the evidence supports no such file")
    for name, render in files.items():
        try:
            given = _digest(render())
        except UsageError as error:  # a package is missing that this one form needs
            seen.unchecked.append(f"{name}: {error.what}")
            continue
        _check_output(out / name, given, render, manifest, seen)
    seen.checked.append(f"{len(files)} outputs, each rendered anew")


def _check_output(path: Path, given: str, render: Render, manifest: Manifest, seen: Verification) -> None:
    if not path.is_file():
        seen.find("output-missing", path.name, "the file is not there")
        return
    data = path.read_bytes()
    if digest_bytes(data) != given:
        code = "statement" if _STATEMENT.fullmatch(path.name) else "board" if path.name == JSON else "output"
        for text in differences(path.name, data.decode("utf-8", "replace"), "".join(render())):
            seen.find(code, path.name, text)
    elif manifest.outputs.get(path.name) != given:
        seen.find("manifest", path.name, f"{MANIFEST} names another digest for this file")


def _digest(pieces: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode("utf-8"))
    return f"sha256:{digest.hexdigest()}"
