"""Remove the pictures that no conversation names.

Room: I/O; whoever looks after a session root comes in. A picture is never removed while any log of the root cannot be
read, because that log may name it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.log.attachments import AttachmentStore
from harness.log.attachments_objects import ObjectFiles
from harness.log.disk import read_plain
from harness.log.json_form import event_to_json
from harness.log.store import SessionStore

GRACE_MS = 24 * 60 * 60 * 1000  # a picture is stored before its message is queued; a day is longer than any such gap
LEAST_GRACE_MS = 60 * 1000  # far above the window in which a writer holds events that no file has yet

_ID = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did.

    Shape: removed are digests, in order; kept counts the objects that stay; blocked_by says for each log that cannot
    be read why, and then nothing was removed.
    """

    removed: tuple[str, ...]
    kept: int
    blocked_by: tuple[str, ...]


async def sweep(
    session_root: Path, *, clock: Callable[[], int], grace_ms: int = GRACE_MS, is_rehearsal: bool = False
) -> Swept:
    """Remove pictures that are older than the grace period and named by no log of this root, and torn writes.

    Shape: store and logs are found from one root, so that a store is never held against the logs of another. A
    rehearsal removes nothing and answers what would be.
    Units: milliseconds; clock is the time the files' own times are compared with.
    Limits: reads every log of the root once. Pictures may be stored meanwhile: one that is stored again becomes young.
    Raises: UsageError for a grace period below LEAST_GRACE_MS; OSError when the disk refuses, with some pictures
    removed.
    """
    if grace_ms < LEAST_GRACE_MS:
        raise UsageError(
            f"a grace period of {grace_ms} ms would take pictures whose messages are being written",
            where="attachment sweep",
            expected=f"{LEAST_GRACE_MS} ms or more",
        )
    files = AttachmentStore.beside(session_root).files
    sessions = SessionStore(session_root, clock=clock)
    return await asyncio.to_thread(_sweep, files, sessions, clock() - grace_ms, is_rehearsal)


def _sweep(files: ObjectFiles, sessions: SessionStore, oldest_kept_ms: int, is_rehearsal: bool) -> Swept:
    objects = files.list()
    torn = [found for found in files.staged() if found.changed_ms < oldest_kept_ms]
    old = [found for found in objects if found.changed_ms < oldest_kept_ms]
    named, unreadable = _named_in_logs(sessions) if old else (frozenset[str](), ())
    orphans = [] if unreadable else [found for found in old if found.name not in named]
    if not torn and not orphans:
        return Swept((), len(objects), unreadable)
    if is_rehearsal:
        return Swept(tuple(found.name for found in orphans), len(objects) - len(orphans), unreadable)
    with files.held(exclusive=True):
        for found in torn:
            files.remove(found)
        removed = tuple(found.name for found in orphans if files.remove(found))
    return Swept(removed, len(objects) - len(removed), unreadable)


def _named_in_logs(sessions: SessionStore) -> tuple[frozenset[str], tuple[str, ...]]:
    """The digests that any log names, and why logs could not be read.

    A digest counts wherever it stands: in the events as they read, whatever their spelling in the file, and in bytes
    that are not part of the log, such as a torn last record.
    """
    named: set[str] = set()
    unreadable: list[str] = []
    for listing in sessions.list():
        if listing.header is None:
            unreadable.append(f"{listing.path}: {listing.problem}")
            continue
        try:
            named.update(_digests_in(read_plain(listing.path).decode("utf-8", "replace")))
            for event in sessions.inspect(listing.header.id).events:
                named.update(_digests_in(repr(event_to_json(event))))
        except (HarnessError, OSError) as error:
            unreadable.append(f"{listing.path}: {_reason(error, listing.path)}")
    return frozenset(named), tuple(unreadable)


def _digests_in(text: str) -> list[str]:
    return _ID.findall(text)


def _reason(error: HarnessError | OSError, path: Path) -> str:
    if isinstance(error, HarnessError):
        return f"{error.what} [{error.error_code}]"
    return error.strerror or f"{path.name} cannot be read"
