"""Where the logs of a session root stand, and which of its places nobody can look into.

Room: blocking I/O; the store comes in. What cannot be looked into counts as there and as not readable: a listing tells
it, an id that may stand there is not given away, and no picture that it may name is removed.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import LogDamagedError, LogReadError, LogWriteError, SessionExistsError, SessionNotFoundError
from harness.log.names import LOG_NAME, segment_of, slug_of
from harness.model.messages import SessionId

_MEND_MODE = "look at the owner and mode of it and of the folders above it"
_MEND_LINK = (
    "put the file itself where the link stands; one that reads through its link is copied by harness sessions salvage "
    "ID"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or a log that stands somewhere; or one that may, with the problem that keeps anyone from telling."""

    path: Path
    problem: str | None = None


def logs_under(root: Path) -> Iterator[Place]:
    """Every log under the root by path, and every place where there may be one."""
    for project in _projects(root):
        for session in (project,) if project.problem is not None else _folders(project.path):
            if session.problem is not None:
                yield session
            elif (log := _log_in(session.path)) is not None:
                yield log


def log_of(root: Path, session_id: SessionId) -> Path:
    """Where the log of that id stands, whatever its project.

    Raises: SessionNotFoundError; LogDamagedError when two projects claim the id; LogReadError when it may stand in a
    folder that cannot be looked into.
    """
    found, unknown = _places_of(root, session_id)
    if len(found) > 1:
        raise LogDamagedError(
            f"session {session_id!r} stands in {len(found)} projects",
            where=str(root),
            expected="an id once under a root",
            fix=f"move all but one away: {', '.join(str(path) for path in found)}",
        )
    if not found and unknown:
        raise _untold(session_id, unknown)
    if not found:
        raise SessionNotFoundError(
            f"no session {session_id!r}",
            where=str(root),
            fix="harness sessions list tells those there are; or name another session root",
        )
    return found[0]


def check_absent(root: Path, session_id: SessionId) -> None:
    """Refuse an id that is on disk, or may be.

    Raises: SessionExistsError; LogReadError when it may stand in a folder that cannot be looked into.
    """
    found, unknown = _places_of(root, session_id)
    for path in found:
        raise SessionExistsError(
            f"session {session_id!r} exists already",
            where=str(path),
            fix="resume it, or choose another id",
        )
    if unknown:
        raise _untold(session_id, unknown)


def reason_of(error: OSError) -> str:
    """What the system says is wrong, in a few words and without a path."""
    return error.strerror or str(error)


def unreadable(error: OSError, path: Path) -> LogReadError:
    """The error for a log whose bytes cannot be read."""
    return LogReadError(f"the log cannot be read: {reason_of(error)}", where=str(path), fix=_mending(path))


def unwritable(error: OSError, path: Path) -> LogWriteError:
    """The error for a log, or a folder of logs, that cannot be opened for writing."""
    return LogWriteError(
        f"the log cannot be opened for writing: {reason_of(error)}",
        where=str(path),
        fix=_MEND_LINK if _is_link(path) else f"{_mending(path)}, and whether the disk is full or read-only",
    )


def _mending(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return _MEND_MODE
    if stat.S_ISLNK(mode):
        return _MEND_LINK
    if path.name == LOG_NAME and not stat.S_ISREG(mode):
        return "move it away; a session is a plain file"
    return _MEND_MODE


def _untold(session_id: SessionId, unknown: tuple[Place, ...]) -> LogReadError:
    first = unknown[0]
    more = f"; and so do {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return LogReadError(
        f"session {session_id!r} may stand here, and nobody can tell: {first.problem}{more}",
        where=str(first.path),
        expected="a session root whose folders can be looked into",
        fix=f"{_MEND_MODE}, move it out of the session root, or name another session root",
    )


def _places_of(root: Path, session_id: SessionId) -> tuple[tuple[Path, ...], tuple[Place, ...]]:
    """Where the log of that id stands, and the places where it may.

    A folder that no working directory gives its name to cannot hold it unseen.
    """
    segment = segment_of(session_id)
    found: list[Path] = []
    unknown: list[Place] = []
    for project in _projects(root):
        may_hold = project.path == root or slug_of(project.path.name) == project.path.name
        if project.problem is not None:
            unknown.extend([project] if may_hold else [])
            continue
        folder = project.path / segment
        try:
            folder.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unknown.extend([Place(project.path, reason_of(error))] if may_hold else [])
            continue
        if _log_in(folder) is not None or (_is_link(folder) and not folder.exists()):
            found.append(folder / LOG_NAME)
    return tuple(found), tuple(unknown)


def _projects(root: Path) -> Iterator[Place]:
    return (place for place in _folders(root) if place.path == root or place.path.name[0] != ".")


def _folders(folder: Path) -> Iterator[Place]:
    """The folders in a folder by name; the folder itself with its problem when they cannot be told."""
    try:
        entries = sorted(folder.iterdir()) if _is_folder(folder) else []
    except OSError as error:
        yield Place(folder, reason_of(error))
        return
    for entry in entries:
        try:
            if _is_folder(entry):
                yield Place(entry)
        except OSError as error:
            yield Place(entry, reason_of(error))


def _is_folder(path: Path) -> bool:
    """Whether a folder stands there; False when nothing does.

    Raises: OSError when nobody can tell.
    """
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        if _is_link(path):
            raise OSError(errno.ENOENT, "it is a link to something that is not there", str(path)) from error
        return False


def _is_link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except OSError:
        return False


def _log_in(folder: Path) -> Place | None:
    log = folder / LOG_NAME
    try:
        log.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Place(log, reason_of(error))
    return Place(log)
