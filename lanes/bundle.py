"""Bundles: one writer's folder of evidence, header, records and trailer.

Room: file input and output. Lanes write here, one process a folder; lanes.bundle_reading
reads. A record enters as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from lanes.errors import EvidenceError
from lanes.evidence_files import folders_with
from lanes.output_place import keep_from_git
from lanes.record import Json, JsonObject, Record, Subject, canonical_json, digest_json, encode_record, group_to_json
from lanes.whole_file import write_whole

SCHEMA = "bundle/1"
HEADER = "header.json"
RECORDS = "records.jsonl"
TRAILER = "trailer.json"
PARTS = frozenset({HEADER, RECORDS, TRAILER})
FOLDER = "bundles"  # of an output folder
MAX_SHARDS = 10_000  # a missing shard is named in the report, in stretches of neighbours


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """One test item of the lane, and the claims it speaks for."""

    node_id: str
    claim_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BundleHeader:
    """What a bundle says before its first record.

    Shape: `expected` lists every collected item of the whole lane, the same in each shard; `selected` lists the ids
    this shard runs (None: all of them); `deselected` lists items a filter took out, which are in neither of the two.
    A lane that decided not to start has `not_run_code` from lanes.record.REASONS and no items.
    marker is "tox" or "self"; lane_mark and tox_env are the two other witnesses of the lane's name.
    """

    lane: str
    run_id: str
    subject: Subject
    shard_index: int = 1
    shard_total: int = 1
    expected: tuple[ExpectedItem, ...] = ()
    selected: tuple[str, ...] | None = None
    deselected: tuple[ExpectedItem, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    lane_mark: str = ""
    tox_env: str = ""
    marker: str = "tox"
    guard_depth: str = ""
    canary_start: str = ""
    keys_removed: int = 0
    not_run_code: str | None = None
    not_run_text: str = ""
    started_at: str = ""
    extra: JsonObject = field(default_factory=dict)

    @property
    def expected_digest(self) -> str:
        """The digest of the expected item list."""
        return digest_json(items_to_json(self.expected))

    def to_json(self) -> dict[str, Json]:
        """The header as a JSON object."""
        configuration: dict[str, Json] = dict(self.configuration)
        document: dict[str, Json] = {
            "schema": SCHEMA,
            "lane": self.lane,
            "run_id": self.run_id,
            "subject": group_to_json(self.subject),
            "shard": {"index": self.shard_index, "total": self.shard_total},
            "expected": {
                "count": len(self.expected),
                "digest": self.expected_digest,
                "items": items_to_json(self.expected),
            },
            "selected": None if self.selected is None else list(self.selected),
            "deselected": items_to_json(self.deselected),
            "configuration": configuration,
            "lane_mark": self.lane_mark,
            "tox_env": self.tox_env,
            "marker": self.marker,
            "guard_depth": self.guard_depth,
            "canary_start": self.canary_start,
            "keys_removed": self.keys_removed,
            "not_run_code": self.not_run_code,
            "not_run_text": self.not_run_text,
            "started_at": self.started_at,
        }
        return {**self.extra, **document}


@dataclass(frozen=True, slots=True)
class BundleTrailer:
    """What a bundle says after its last record.

    Shape: breaches are lane failures outside any item, one sentence each (a refusal at import, a changed tracked
    file, a secret found); any of them fails the lane. canary_end is "refused" when the guard was shown to the end.
    is_judged is False from the last record until the parent of the run has added what it alone can know.
    """

    run_id: str
    count: int
    digest: str
    canary_end: str = ""
    exit_code: int = 0
    breaches: tuple[str, ...] = ()
    extra: JsonObject = field(default_factory=dict)
    is_judged: bool = True

    def to_json(self) -> dict[str, Json]:
        """The trailer as a JSON object."""
        return dict(self.extra) | {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "count": self.count,
            "digest": self.digest,
            "canary_end": self.canary_end,
            "exit_code": self.exit_code,
            "breaches": list(self.breaches),
            "judged": self.is_judged,
        }


@dataclass(frozen=True, slots=True)
class BundleProblem:
    """Something wrong with a bundle as it was read.

    Shape: code is "unreadable", "schema-newer", "no-records", "torn", "damaged", "record-id", "no-trailer",
    "trailer" (of another run, or its count or digest differ), "unjudged" (its run was not judged to the end) or
    "expected" (the item list is not what it says).
    """

    code: str
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle as read: nothing is repaired and nothing is dropped without a problem that names it."""

    header: BundleHeader
    records: tuple[Record, ...]
    trailer: BundleTrailer | None = None
    problems: tuple[BundleProblem, ...] = ()
    name: str = ""
    digest: str = ""


class BundleWriter:
    """Write one bundle, a line at a time, each flushed to the disk before the call returns.

    Limits: one writer a folder; an old bundle in the folder is removed first. `secrets` are values that may occur
    nowhere; they are compared with the raw text and with its JSON spelling.
    Raises: EvidenceError from write, code SECRET_FOUND; OSError when the disk refuses.
    """

    def __init__(self, folder: Path, header: BundleHeader, *, secrets: Sequence[str] = ()) -> None:
        clear_folder(folder)
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._header = header
        self._secrets = tuple(secret for secret in secrets if secret.strip())
        self._count = 0
        self._chain = start_digest(header)
        _write_json(folder / HEADER, header.to_json())
        self._file: BinaryIO | None = (folder / RECORDS).open("ab")

    @property
    def header(self) -> BundleHeader:
        """The header as it stands on disk."""
        return self._header

    def replace_header(self, header: BundleHeader) -> None:
        """Write another header, for facts known only after collection; run, lane and shard stay as they were."""
        if start_digest(header) != start_digest(self._header):
            raise ValueError("a header may not change its run, lane or shard")
        self._header = header
        _write_json(self._folder / HEADER, header.to_json())

    def write(self, record: Record) -> None:
        """Append one record and make it durable."""
        if self._file is None:
            raise ValueError("the bundle is closed")
        line = encode_record(record)
        if found := _holds_secret(line, self._secrets):
            raise EvidenceError(
                f"the record held the values of keys, {found} in number; nothing of it was written",
                where=record.node_id,
                fix="keep the key out of what the test prints, compares or raises",
                code="SECRET_FOUND",
            )
        self._file.write(line + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._chain = next_digest(self._chain, line)
        self._count += 1

    def close(
        self,
        *,
        canary_end: str = "",
        exit_code: int = 0,
        breaches: Sequence[str] = (),
        extra: JsonObject | None = None,
        is_judged: bool = True,
    ) -> BundleTrailer:
        """Write the trailer; closing twice keeps the first one.

        Shape: is_judged is False where a parent process has yet to judge what the run left.
        """
        trailer = BundleTrailer(
            run_id=self._header.run_id,
            count=self._count,
            digest=self._chain,
            canary_end=canary_end,
            exit_code=exit_code,
            breaches=tuple(breaches),
            extra=extra or {},
            is_judged=is_judged,
        )
        if self._file is not None:
            self._file.close()
            self._file = None
            _write_json(self._folder / TRAILER, trailer.to_json())
        return trailer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and kind is not None:
            self._file.close()
            self._file = None
        else:
            self.close()


def amend_trailer(
    folder: Path,
    *,
    canary_end: str | None = None,
    exit_code: int | None = None,
    breaches: Sequence[str] = (),
    extra: JsonObject | None = None,
) -> None:
    """Add to a trailer what only the parent process can know, which judges it; without a trailer nothing is written.

    Shape: breaches are added to those that are there; None leaves a fact as it is; extra are facts of their own.
    """
    path = folder / TRAILER
    try:
        trailer = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):  # not there, or damaged, which whoever reads it will say
        return
    if not isinstance(trailer, dict) or not isinstance(trailer.setdefault("breaches", []), list):
        return
    trailer["breaches"] = [*trailer["breaches"], *breaches]
    if canary_end is not None:
        trailer["canary_end"] = canary_end
    if exit_code is not None:
        trailer["exit_code"] = exit_code
    trailer.update(extra or {})
    trailer["judged"] = True
    _write_json(path, trailer)


def write_not_run(folder: Path, header: BundleHeader) -> None:
    """Write the bundle of a lane that decided not to start: its header names the reason."""
    with BundleWriter(folder, header):
        pass


def clear_folder(folder: Path) -> None:
    """Take away what an earlier run left where a bundle will be, and make the folders around it."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    keep_from_git(next((each.parent for each in folder.parents if each.name == FOLDER), folder.parent))
    folder.parent.mkdir(parents=True, exist_ok=True)


def bundle_folder(out: Path, environment: str, index: int = 1, total: int = 1) -> Path:
    """Where the bundle of an environment and shard lives under an output folder.

    Shape: most environments are called as their lane is; two that fill one lane keep their evidence apart.
    """
    return out / FOLDER / environment / f"{index}-of-{total}"


def start_digest(header: BundleHeader) -> str:
    """Where the running digest starts: at the run, lane and shard, so that no trailer fits another run."""
    return digest_json([header.run_id, header.lane, header.shard_index, header.shard_total])


def next_digest(chain: str, line: bytes) -> str:
    """The running digest after one more line."""
    return "sha256:" + hashlib.sha256(chain.encode("ascii") + b"\n" + line).hexdigest()


def find_bundles(out: Path) -> tuple[Path, ...]:
    """Every folder under an output folder's bundles that holds any of a bundle's files, in a stable order."""
    root = out / FOLDER
    return tuple(folders_with(root, PARTS)) if root.is_dir() else ()


def items_to_json(items: Sequence[ExpectedItem]) -> list[Json]:
    """An item list as it is written and digested."""
    return [{"node_id": item.node_id, "claim_ids": list(item.claim_ids)} for item in items]


def _holds_secret(line: bytes, secrets: Sequence[str]) -> int:
    text = line.decode("ascii")
    return sum(1 for secret in secrets if secret in text or canonical_json(secret).decode("ascii")[1:-1] in text)


def _write_json(path: Path, document: JsonObject) -> None:
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True)
    write_whole(path, text.encode("ascii") + b"\n", synced=True)  # evidence, which nobody can make again
