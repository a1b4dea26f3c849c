"""The session logs of one root folder: create, resume, fork, read and list them.

Room: I/O; assemble makes the store, surfaces list and inspect through it. One JSONL file a session:
<root>/<project>/<id>/session.jsonl, files 0600, folders 0700.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.errors import (
    InvalidEventError,
    LogBusyError,
    LogDamagedError,
    LogError,
)
from harness.log.disk import Disk, Lock, LogFile, is_held, read_plain
from harness.log.events import Event, SessionHeader
from harness.log.fold import open_turn
from harness.log.load import Scan, encode_events, read_header, scan
from harness.log.names import LOG_NAME, segment_of, slug_of
from harness.log.places import check_absent, log_of, logs_under, reason_of, unreadable, unwritable
from harness.log.repair import repair
from harness.log.session_log import Check, SessionLog
from harness.log.writer import Later, SessionWriter
from harness.model.messages import SessionId

WINDOW_S = 0.2  # long enough to gather a burst of chunks, short enough that a person loses a blink of output
_HEADER_BYTES = 1 << 16  # a first line is a few hundred bytes; a file without a newline is not read whole to list it


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log as it reads, without a hold on it.

    Shape: log ends with the closers an interrupted session would get, unless live says that a writer is at work;
    damage says what was passed over; nothing was written.
    """

    path: Path
    log: SessionLog
    damage: str | None
    live: bool

    @property
    def header(self) -> SessionHeader:
        """The log's header."""
        return self.log.header

    @property
    def events(self) -> Sequence[Event]:
        """The log's events."""
        return self.log


@dataclass(frozen=True, slots=True)
class Listing:
    """One session found: its header, or the problem that keeps it from being read."""

    path: Path
    header: SessionHeader | None
    problem: str | None


class SessionStore:
    """The logs under one root.

    Shape: create and resume give writers, each holding its session's lock until closed; inspect and list only read.
    Raises: SessionExistsError, SessionNotFoundError, LogBusyError, LogDamagedError, LogUnsupportedError; LogReadError
    when a log, or a folder where it may stand, cannot be read.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Callable[[], int],
        window_s: float = WINDOW_S,
        disk: Disk | None = None,
        later: Later | None = None,
        report: Callable[[Exception], None] | None = None,
        check: Callable[[], Check] | None = None,
    ) -> None:
        self.root = root
        self._clock = clock
        self._window_s = window_s
        self._disk = disk if disk is not None else Disk()
        self._later = later
        self._report = report
        self._check = check

    def path_of(self, session_id: SessionId, cwd: str | None) -> Path:
        """Where the log of that id and working directory stands, or would stand."""
        return self.root / slug_of(cwd) / segment_of(session_id) / LOG_NAME

    def find(self, session_id: SessionId) -> Path:
        """Where the log of that id stands, whatever its project.

        Raises: SessionNotFoundError; LogDamagedError when two projects claim the id; LogReadError when it may stand in
        a folder that cannot be looked into.
        """
        return log_of(self.root, session_id)

    async def create(self, header: SessionHeader) -> SessionWriter:
        """A new session, ready to be appended to; its file appears with the first batch.

        Raises: SessionExistsError when the id is on disk, under any project; LogBusyError when it is being created;
        InvalidEventError for a header with a seed, which only a fork has.
        """
        if header.seed_length:
            raise InvalidEventError(
                f"{header.seed_length} inherited events, and a new session has none",
                where="header.seedLength",
                fix="fork the session it comes from",
            )
        log = SessionLog(header, clock=self._clock, check=self._new_check(), report=self._report)
        return await self._open_new(log)

    async def resume(self, session_id: SessionId) -> SessionWriter:
        """Open a stored session for work: repaired on disk when it was interrupted, its earlier lifetime ended.

        Raises: SessionNotFoundError, LogBusyError, LogDamagedError, LogUnsupportedError.
        """
        lock, file, found = await asyncio.to_thread(self._open_stored, session_id)
        log = SessionLog(found.log.header, clock=self._clock, check=self._new_check(), report=self._report)
        log.adopt(found.log)
        durable = len(log)
        log.end_seed()
        return self._writer(log, file.path, lock, file, durable, found.damage)

    async def fork(
        self,
        source: SessionLog,
        child_id: SessionId,
        *,
        boundary: int | None = None,
        origin: Literal["subagent"] | None = None,
        delegation_depth: int | None = None,
        agent_preset: str | None = None,
    ) -> SessionWriter:
        """A new session that begins with the source's events up to the boundary seq, or all of them.

        Shape: lineage, working directory and seed length go into the child's header; queued messages stay behind.
        Raises: SessionExistsError first, then LogError with code INVALID_BOUNDARY or OPEN_TURN.
        """
        await asyncio.to_thread(self._check_absent, child_id)
        length = check_boundary(source, boundary)
        header = SessionHeader(
            child_id,
            self._clock(),
            cwd=source.header.cwd,
            parent_session=source.header.id,
            seed_length=length,
            origin=origin,
            delegation_depth=source.header.delegation_depth if delegation_depth is None else delegation_depth,
            agent_preset=source.header.agent_preset if agent_preset is None else agent_preset,
        )
        log = SessionLog.resumed(
            header, source[:length], clock=self._clock, check=self._new_check(), report=self._report
        )
        return await self._open_new(log)

    async def salvage(self, session_id: SessionId, child_id: SessionId) -> SessionWriter:
        """Copy what still reads of a damaged session into a new one; the damaged file stays as it is.

        Shape: the child names the damaged session as its parent and inherits its queue; an open turn is closed.
        Raises: SessionNotFoundError, SessionExistsError; LogBusyError while a writer is at work on it; LogDamagedError
        when not even the header reads.
        """
        await asyncio.to_thread(self._check_absent, child_id)
        path = self.find(session_id)
        if is_held(self._lock_path(session_id)):
            raise LogBusyError("a program is at work on this session", where=str(path), fix="close it, then try again")
        data = await asyncio.to_thread(_bytes_of, path)
        found = self._scan(data, path, salvage=True)
        header = replace(found.log.header, id=child_id, created_at=self._clock(), parent_session=session_id)
        log = SessionLog(header, clock=self._clock, check=self._new_check(), report=self._report)
        log.adopt(found.log)
        repair(log)
        log.end_seed()
        writer = await self._open_new(log)
        writer.damage = found.damage
        return writer

    def inspect(self, session_id: SessionId) -> LoadedLog:
        """Read a session without a hold on it; blocking, and it writes nothing."""
        path = self.find(session_id)
        live = is_held(self._lock_path(session_id))
        found = self._scan(_bytes_of(path), path)
        self._check_place(found.log.header, path)
        if not live:
            repair(found.log)
        return LoadedLog(path, found.log, None if live else found.damage, live)

    def list(self) -> tuple[Listing, ...]:
        """Every session under the root, by path; one that cannot be read stands there with its reason. Blocking."""
        return tuple(
            self._listing(place.path) if place.problem is None else Listing(place.path, None, place.problem)
            for place in logs_under(self.root)
        )

    def _listing(self, path: Path) -> Listing:
        try:
            header = read_header(read_plain(path, _HEADER_BYTES).rstrip(b"\n"))
            self._check_place(header, path)
        except OSError as error:
            return Listing(path, None, reason_of(error))
        except LogError as error:
            return Listing(path, None, f"{error.what} [{error.error_code}]")
        return Listing(path, header, None)

    def _lock_path(self, session_id: SessionId) -> Path:
        return self.root / ".locks" / f"{segment_of(session_id)}.lock"

    def _new_check(self) -> Check | None:
        return None if self._check is None else self._check()

    def _check_absent(self, session_id: SessionId) -> None:
        check_absent(self.root, session_id)

    def _check_place(self, header: SessionHeader, path: Path) -> None:
        if (path.parent.name, path.parent.parent.name) != (segment_of(header.id), slug_of(header.cwd)):
            raise LogDamagedError(
                f"the header says session {header.id!r} of {header.cwd!r}, which does not belong here",
                where=str(path),
                fix=f"move the file to {self.path_of(header.id, header.cwd)}",
            )

    def _scan(self, data: bytes, path: Path, *, salvage: bool = False) -> Scan:
        with _collecting_later():
            try:
                return scan(data, clock=self._clock, salvage=salvage)
            except LogError as error:
                error.where = error.where or str(path)
                raise

    async def _open_new(self, log: SessionLog) -> SessionWriter:
        session_id = log.header.id
        path = self.path_of(session_id, log.header.cwd)
        lock = await asyncio.to_thread(self._reserve, session_id)
        return self._writer(log, path, lock, None, 0, None)

    def _reserve(self, session_id: SessionId) -> Lock:
        """Blocking: hold an id nobody has; who comes second finds it held or on disk."""
        self._check_absent(session_id)
        lock = self._lock(session_id, f"session {session_id!r}")
        try:
            self._check_absent(session_id)
        except BaseException:
            lock.release()
            raise
        return lock

    def _lock(self, session_id: SessionId, what: str) -> Lock:
        try:
            return Lock.acquire(self._lock_path(session_id), what, self._disk)
        except OSError as error:
            raise unwritable(error, self.root) from error

    def _open_stored(self, session_id: SessionId) -> tuple[Lock, LogFile, Scan]:
        """Blocking: take the lock, repair what is on disk, and trust only what reads back."""
        path = self.find(session_id)
        lock = self._lock(session_id, str(path))
        file: LogFile | None = None
        try:
            file = LogFile.open(path, self._disk)
            data = file.read()
            found = self._scan(data, path)
            self._check_place(found.log.header, path)
            added = repair(found.log)
            if found.good_size < len(data) or found.lacks_newline or added:
                found = self._repair(file, data, found, added)
        except BaseException as error:
            if file is not None:
                file.close()
            lock.release()
            if isinstance(error, OSError):
                raise unwritable(error, path) from error
            raise
        return lock, file, found

    def _repair(self, file: LogFile, data: bytes, found: Scan, added: tuple[Event, ...]) -> Scan:
        """Cut the torn tail, close the open turn, and read everything again before it is trusted."""
        if found.good_size < len(data):
            file.cut(found.good_size)
        patch = (b"\n" if found.lacks_newline else b"") + encode_events(added)
        if patch:
            file.append(patch)
        expected = data[: found.good_size] + patch
        written = file.read()
        again = self._scan(written, file.path)
        if written != expected or repair(again.log):
            raise LogDamagedError(
                "the repaired log does not read back as it was written",
                where=str(file.path),
                fix="copy the file and salvage it; the disk may be failing",
            )
        return replace(again, damage=found.damage)

    def _writer(
        self, log: SessionLog, path: Path, lock: Lock, file: LogFile | None, durable: int, damage: str | None
    ) -> SessionWriter:
        return SessionWriter(
            log,
            path,
            lock=lock,
            file=file,
            durable=durable,
            damage=damage,
            disk=self._disk,
            window_s=self._window_s,
            later=self._later,
            report=self._report,
        )


@contextmanager
def _collecting_later() -> Iterator[None]:
    """No garbage collection in the block: it would look through all that was made so far again and again.

    What was made counts as long-lived from the start, so that the next collection does not look through it either.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # a host that froze objects of its own keeps them frozen
            gc.freeze()
            gc.unfreeze()  # puts them all among the oldest
        if collects:
            gc.enable()


def _bytes_of(path: Path) -> bytes:
    try:
        return read_plain(path)
    except OSError as error:
        raise unreadable(error, path) from error


def check_boundary(events: Sequence[Event], boundary: int | None) -> int:
    """How many events a fork at that seq takes; all of them for None.

    Raises: LogError with code INVALID_BOUNDARY for a seq that is not there, OPEN_TURN for one inside a turn.
    """
    length = len(events) if boundary is None else boundary + 1
    if boundary is not None and not 0 <= boundary < len(events):
        raise LogError(
            f"seq {boundary} is not in the log",
            where="fork",
            expected=f"a seq from 0 to {len(events) - 1}",
            code="INVALID_BOUNDARY",
        )
    if open_turn(events[:length]) is not None:
        raise LogError(
            f"seq {length - 1} lies inside a turn",
            where="fork",
            expected="the end of a turn, or an event between turns",
            code="OPEN_TURN",
        )
    return length
