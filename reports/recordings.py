"""Recordings as records name them: whether the file or folder of that name is still the one that was played.

Room: file input. Verification comes in; what a recording says is read by the lanes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from lanes.evidence_files import read_plain_file
from lanes.record import Record, digest_bytes, digest_json


def named_recordings(records: Iterable[Record], found: dict[str, set[str]]) -> None:
    """Add the recordings that some records played, each with the digests that they tell of it."""
    for record in records:
        told = record.cassette or {}
        name, digest = told.get("id"), told.get("digest")
        if isinstance(name, str) and isinstance(digest, str):
            found.setdefault(name, set()).add(digest)


def compare_recordings(root: Path, named: Mapping[str, set[str]]) -> tuple[list[str], list[str], list[str]]:
    """The names of those that are the same below root, of those that differ, and of those that are not there."""
    same: list[str] = []
    other: list[str] = []
    gone: list[str] = []
    for name in sorted(named):
        digest = _digest_below(root, name)
        (gone if digest is None else same if {digest} == named[name] else other).append(name)
    return same, other, gone


def _digest_below(root: Path, name: str) -> str | None:
    """The digest of a recording, one file or a folder of files; None when it is not there, or is no path inside."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or "\0" in name:
        return None
    path = root / place
    try:
        if path.is_dir():
            files = {each.name: digest_bytes(read_plain_file(each)) for each in path.iterdir()}
            return digest_json(dict(files))
        return digest_bytes(read_plain_file(path))
    except OSError:
        return None
