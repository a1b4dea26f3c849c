"""Merging: the bundles of many folders in one, each byte for byte as its writer left it, named by its content.

Room: file input and output. The lane command comes in; nothing is judged here, nothing repaired and nothing dropped.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanes.bundle import HEADER, PARTS, RECORDS, TRAILER, Bundle
from lanes.bundle_reading import read_bundle
from lanes.errors import EvidenceError, UsageError
from lanes.evidence_files import folders_with, read_plain_file
from lanes.output_place import keep_from_git
from lanes.whole_file import write_whole
from reports.missing import missing_shards, shard_words

MERGED = "merged.json"
SCHEMA = "merge/1"
BUNDLES, PROOFS = "bundles", "proofs"
_PARTS = (HEADER, RECORDS, TRAILER)
_STAGING = ".merging"
_NAME_DIGITS = 16  # of a digest of 64; the whole one stands in merged.json
_OUR_SUFFIX = re.compile(rf"\.[0-9a-f]{{{_NAME_DIGITS}}}\Z")


@dataclass(frozen=True, slots=True, order=True)
class Input:
    """One bundle of a merge: where it lies under the output folder, and the digest of its three files."""

    place: str
    digest: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did.

    Shape: inputs are the distinct bundles, sorted; repeated is how many were found more than once; gaps are the runs
    that lack a shard and problems what is wrong with a bundle, both in words; empty are the folders that held nothing.
    """

    inputs: tuple[Input, ...]
    repeated: int
    gaps: tuple[str, ...]
    problems: tuple[str, ...]
    empty: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing and every bundle can be believed as far as reading it tells."""
        return not (self.gaps or self.problems or self.empty)


def merge_folders(folders: Sequence[Path], out: Path) -> Merged:
    """Lay every bundle under some folders into one output folder, once each, beside the list of them.

    Shape: a folder may be an output folder, a bundle, or anything that holds such; merging what was merged before is
    merging its parts. out may be new, empty or an earlier merge, which is replaced as a whole.
    Raises: UsageError for a folder that is not there or an output folder that holds other things; EvidenceError for
    evidence of a newer version, and then nothing was written.
    """
    _check_out(out)
    found: dict[tuple[str, str], list[Path]] = {}
    empty: list[str] = []
    bundles: dict[str, Bundle] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"there is no folder {str(folder)!r}", where="lanes merge", expected="folders of evidence")
        held = list(evidence_folders(folder))
        empty += [] if held else [str(folder)]
        for kind, place in held:
            bundle = read_bundle(place)
            _refuse_newer(bundle, place)
            bundles.setdefault(bundle.digest, bundle)
            found.setdefault((kind, bundle.digest), []).append(place)
    keep_from_git(out)
    staging = out / _STAGING
    if staging.exists():
        shutil.rmtree(staging)
    inputs = []
    for (kind, digest), places in sorted(found.items()):
        name = _name_of(kind, bundles[digest], places)
        _copy(places[0], staging / kind / name)
        inputs.append(Input(f"{kind}/{name}", digest))
    (staging / BUNDLES).mkdir(parents=True, exist_ok=True)
    _swap(staging, out, sorted(inputs))
    lanes = {digest: bundles[digest] for kind, digest in found if kind == BUNDLES}
    return Merged(
        inputs=tuple(sorted(inputs)),
        repeated=sum(1 for places in found.values() if len(places) > 1),
        gaps=tuple(_gaps(lanes.values())),
        problems=tuple(sorted({f"{p.where}: {p.text} ({p.code})" for each in bundles.values() for p in each.problems})),
        empty=tuple(empty),
    )


def evidence_folders(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every folder at or below a folder that holds any of a bundle's files, with what it is: bundles or proofs."""
    for place in folders_with(folder, PARTS):
        if _STAGING not in place.parts:
            yield (PROOFS if place.parent.name == PROOFS else BUNDLES), place


def is_merged(out: Path) -> bool:
    """Whether an output folder holds what a merge laid there."""
    return (out / MERGED).is_file()


def read_merged(out: Path) -> tuple[Input, ...] | None:
    """What the merge that wrote an output folder listed; None where no merge did.

    Raises: EvidenceError when the list is there and cannot be read.
    """
    path = out / MERGED
    try:
        document = json.loads(read_plain_file(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EvidenceError(f"cannot be read: {error.strerror}", where=MERGED, fix="merge the folders anew") from None
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is no JSON: {error!s:.80}", where=MERGED, fix="merge the folders anew") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        told = document.get("schema") if isinstance(document, dict) else None
        fix = "read it with the version that wrote it, or merge anew"
        raise EvidenceError(f"schema is {told!r:.80}", where=MERGED, expected=f'"{SCHEMA}"', fix=fix)
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or not all(_is_input(each) for each in inputs):
        raise EvidenceError("the list of inputs has another form", where=MERGED, fix="merge the folders anew")
    return tuple(Input(each["place"], each["digest"]) for each in inputs)


def _is_input(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get("place"), str) and isinstance(value.get("digest"), str)


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is no folder", where="lanes merge --out", expected="a folder, or none yet")
    holds = out.is_dir() and any((out / name).exists() for name in (BUNDLES, PROOFS))
    if holds and not is_merged(out):
        fix = "name a new folder: lanes merge DIR… --out NEW"
        raise UsageError(f"{out} holds evidence that no merge laid there", where="lanes merge --out", fix=fix)


def _refuse_newer(bundle: Bundle, place: Path) -> None:
    for problem in bundle.problems:
        if problem.code == "schema-newer":
            fix = "merge with the version that wrote it, or a later one; nothing was written"
            raise EvidenceError(problem.text, where=f"{place}: {problem.where}", fix=fix, code="SCHEMA_NEWER")


def _name_of(kind: str, bundle: Bundle, places: Iterable[Path]) -> str:
    """Where a bundle goes: by what it says of itself, or by its folders where it says nothing, and by its digest."""
    header = bundle.header
    tail = "." + bundle.digest.partition(":")[2][:_NAME_DIGITS]
    folder = min(_OUR_SUFFIX.sub("", place.name) for place in places)
    if kind == PROOFS:
        return _safe(folder) + tail
    if header.run_id:
        return f"{_safe(header.tox_env or header.lane)}/{header.shard_index}-of-{header.shard_total}{tail}"
    return f"{_safe(min(place.parent.name for place in places))}/{_safe(folder)}{tail}"


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)[:80] or "lane"


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True, mode=0o700)
    for name in _PARTS:
        with contextlib.suppress(OSError):  # the problem of the bundle says so; what cannot be read cannot be carried
            (target / name).write_bytes(read_plain_file(source / name))


def _swap(staging: Path, out: Path, inputs: Sequence[Input]) -> None:
    """Put what was staged in the place of what an earlier merge laid there."""
    for kind in (BUNDLES, PROOFS):
        if (out / kind).exists():
            shutil.rmtree(out / kind)
        if (staging / kind).exists():
            (staging / kind).rename(out / kind)
    staging.rmdir()
    document = {"schema": SCHEMA, "inputs": [{"place": each.place, "digest": each.digest} for each in inputs]}
    write_whole(out / MERGED, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode("ascii"))


def _gaps(bundles: Iterable[Bundle]) -> Iterator[str]:
    """The runs that lack a shard, in words."""
    runs: dict[tuple[str, str, str], list[Bundle]] = {}
    for bundle in bundles:
        if bundle.header.run_id:
            header = bundle.header
            runs.setdefault((header.lane, header.tox_env, header.run_id), []).append(bundle)
    for (lane, _environment, run_id), group in sorted(runs.items()):
        missing, total = missing_shards(group)
        if missing:
            yield f"{lane}: shard {shard_words(missing, total)} of run {run_id} is missing"
