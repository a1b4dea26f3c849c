"""What was seen before: the last live pass of each claim, and the provider ids that are used up.

Room: file input and output. Output and the nightly command come in; nothing of it ever fills a cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lanes.record import Json, JsonObject, canonical_json, digest_bytes
from lanes.whole_file import whole_file
from reports.board import LastSeen

HISTORY = Path("reports") / "history.jsonl"
CASSETTES = Path("cassettes")
_RECORDINGS = frozenset({".yaml", ".json", ".jsonl"})
_PROVIDER_ID = re.compile(r"""\bprovider_id["']?\s*:\s*["']?([^\s"',}\]]+)""")


def read_last_seen(path: Path, now: datetime, most: int | None = None) -> tuple[LastSeen, ...]:
    """The latest live pass of each claim in the history file, or in so many of its first lines; no file, no line.

    Shape: a history line is a JSON object with claim, status, live, commit, at (ISO 8601), model and host. Lines of
    another form are passed over: they say nothing about a live pass.
    """
    latest: dict[str, tuple[datetime, LastSeen]] = {}
    for document in _history_lines(path, most):
        seen = _seen(document, now)
        if seen is not None and (seen[1].claim_id not in latest or seen[0] > latest[seen[1].claim_id][0]):
            latest[seen[1].claim_id] = seen
    return tuple(latest[claim_id][1] for claim_id in sorted(latest))


def _seen(document: dict[str, Json], now: datetime) -> tuple[datetime, LastSeen] | None:
    if document.get("status") != "passed" or document.get("live") is not True:
        return None
    texts = [document.get(name) for name in ("claim", "commit", "at", "model", "host")]
    if not all(isinstance(text, str) for text in texts):
        return None
    claim_id, commit, at, model, host = (str(text) for text in texts)
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return when, LastSeen(claim_id, commit, max(0, (now - when).days), model, host)


def read_used_ids(root: Path, most: int | None = None, own: Collection[str] = ()) -> frozenset[str]:
    """The digests of every provider id in a cassette or in the history: a new live answer carries none of them.

    Shape: most is how many lines of the history count, all of them by default. An id that is written as a digest is
    taken as it is, any other is digested. own are the digests of the bundles that are judged: a line that was written
    of these alone tells of the very same answers, not of earlier ones.
    """
    found = {each if each.startswith("sha256:") else digest_bytes(each.encode()) for each in _ids_in_cassettes(root)}
    return frozenset(found.union(_told_in_history(root / HISTORY, "provider_ids", most, frozenset(own))))


def read_earlier_answers(root: Path, most: int | None = None, own: Collection[str] = ()) -> frozenset[str]:
    """The digests of the answers that the history has seen; a new one that is equal byte for byte is a doubtful one."""
    return frozenset(_told_in_history(root / HISTORY, "answers", most, frozenset(own)))


def _ids_in_cassettes(root: Path) -> Iterator[str]:
    for path in sorted(each for each in (root / CASSETTES).rglob("*") if each.suffix in _RECORDINGS):
        for match in _PROVIDER_ID.finditer(path.read_text(encoding="utf-8", errors="replace")):
            if match.group(1) not in {"null", "~"}:
                yield match.group(1)


def _told_in_history(path: Path, name: str, most: int | None, own: frozenset[str]) -> Iterator[str]:
    """The texts that lines list under a name, those about bundles that are judged now left out."""
    for document in _history_lines(path, most):
        told, bundles = document.get(name), document.get("bundles")
        if isinstance(bundles, list) and bundles and own.issuperset(str(each) for each in bundles):
            continue
        if isinstance(told, list):
            yield from (each for each in told if isinstance(each, str))


def read_history(path: Path, most: int | None = None) -> tuple[dict[str, Json] | None, ...]:
    """The lines of the history, oldest first, or so many of them; None for what is no JSON object. No file, no line."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(_object_in(line) for line in lines[:most])


def append_history(path: Path, lines: Sequence[JsonObject]) -> None:
    """Put lines behind the history, all of them or none: an interrupted write leaves the old file.

    Shape: a line is written in its canonical form, so that whoever reads it digests the same bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    with whole_file(path, synced=True) as file:  # what a night saw is nowhere else
        file.write(before + b"".join(canonical_json(line) + b"\n" for line in lines))


def _history_lines(path: Path, most: int | None) -> Iterator[dict[str, Json]]:
    # a line that is no JSON tells of no live pass; the chain of digests names it
    yield from (line for line in read_history(path, most) if line is not None)


def _object_in(line: str) -> dict[str, Json] | None:
    try:
        document: Json = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
