"""The file system calls a log is made of: append or nothing, appear whole or not at all, one holder at a time.

Room: blocking I/O; only store and writer come in, off the event loop. Tests hand in a Disk that fails on purpose.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from harness.errors import LogBusyError, LogWriteError, SessionExistsError

FILE_MODE = 0o600
FOLDER_MODE = 0o700
LOCK_ATTEMPTS = 4  # a reader that looks whether a lock is held holds it for some microseconds itself
LOCK_PAUSE_S = 0.005


_MENDS = {
    errno.EROFS: "make the file system writable again",
    errno.EDQUOT: "free space within the quota of the user",
    errno.EFBIG: "raise the limit on the size of files",
}


class Disk:
    """The four calls that can fail in the middle; everything else here is built from them."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write some of the bytes and say how many."""
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Return once the file's bytes survive a power cut."""
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file to that size."""
        os.ftruncate(fd, size)

    def link(self, source: Path, target: Path) -> None:
        """Give the file a second name; fails when that name is taken."""
        os.link(source, target)


class Lock:
    """An exclusive hold on a name, let go by the kernel when the process ends however it ends."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd: int | None = fd

    @classmethod
    def acquire(cls, path: Path, what: str, disk: Disk) -> Lock:
        """Take the lock now or fail.

        Raises: LogBusyError naming what is held and the process that holds it.
        """
        make_folder(path.parent, disk)
        for attempt in range(LOCK_ATTEMPTS):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            try:
                lock = cls._held(path, fd, what, is_last=attempt + 1 == LOCK_ATTEMPTS)
            except BaseException:
                os.close(fd)
                raise
            if lock is not None:
                return lock
            os.close(fd)
        raise LogBusyError("its lock changes hands without end", where=what, fix="try again")

    @classmethod
    def _held(cls, path: Path, fd: int, what: str, *, is_last: bool) -> Lock | None:
        """The lock with our number in its file, or None to try again; with an error the name of a file we hold is gone.

        Raises: LogBusyError at the last attempt; OSError. The descriptor stays the caller's then.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            if not is_last:
                time.sleep(LOCK_PAUSE_S)
                return None
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise LogBusyError(
                f"another writer holds this log (process {holder})",
                where=what,
                expected="one writer for each session",
                fix="close the other program, or read the session without resuming it",
            ) from error
        if not _same_file(fd, path):
            return None  # its last holder removed the name between our open and our lock
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode("ascii"), 0)
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one worth telling
                path.unlink()
            raise
        return cls(path, fd)

    def release(self) -> None:
        """Let go and remove the name; a second call does nothing."""
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        with contextlib.suppress(OSError):  # somebody cleaned up the folder; the lock itself goes with the descriptor
            if _same_file(fd, self._path):
                self._path.unlink()
        os.close(fd)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock of that name; creates nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


class LogFile:
    """An open log that only grows by whole batches.

    Shape: size is what is known to be durable. A batch is there wholly or not at all.
    """

    def __init__(self, path: Path, fd: int, size: int, disk: Disk) -> None:
        self.path = path
        self.size = size
        self._fd: int | None = fd
        self._disk = disk

    @classmethod
    def open(cls, path: Path, disk: Disk) -> LogFile:
        """Open a log that exists; what is no plain file, or a link to one, is refused with an OSError that says so."""
        fd = open_plain(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
        return cls(path, fd, os.fstat(fd).st_size, disk)

    @classmethod
    def appear(cls, path: Path, data: bytes, disk: Disk) -> LogFile:
        """Create a log with its first bytes; it gets its name once they are durable.

        Raises: SessionExistsError when the name is taken; OSError when the disk refuses, and then nothing is left.
        """
        make_folder(path.parent, disk)
        staged = path.with_name(f"{path.name}.new")
        staged.unlink(missing_ok=True)  # left by a holder that was killed here; we hold the lock now
        fd = os.open(staged, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        linked = False
        try:
            write_all(disk, fd, data)
            disk.sync(fd)
            disk.link(staged, path)
            linked = True
            sync_folder(path.parent, disk)
            staged.unlink()
        except BaseException as error:
            os.close(fd)
            with contextlib.suppress(OSError):  # the first error is the one worth telling
                staged.unlink(missing_ok=True)
                if linked:
                    path.unlink(missing_ok=True)
            if isinstance(error, FileExistsError):
                raise SessionExistsError("the log exists already", where=str(path)) from error
            raise
        return cls(path, fd, len(data), disk)

    def read(self) -> bytes:
        """All bytes of the file."""
        assert self._fd is not None  # noqa: S101 - a closed log is a bug of the caller
        size = os.fstat(self._fd).st_size
        pieces: list[bytes] = []
        at = 0
        while at < size:
            piece = os.pread(self._fd, min(size - at, 1 << 24), at)
            if not piece:
                break
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def cut(self, size: int) -> None:
        """Drop everything behind that size, durably."""
        assert self._fd is not None  # noqa: S101 - a closed log is a bug of the caller
        self._disk.truncate(self._fd, size)
        self._disk.sync(self._fd)
        self.size = size

    def append(self, data: bytes) -> None:
        """Add a batch and return once it is durable.

        Raises: LogBusyError when somebody else wrote to the file or took its name away; nothing is written then.
        LogWriteError when the disk refuses; the file is back at its old size, or the message says it is not.
        """
        assert self._fd is not None  # noqa: S101 - a closed log is a bug of the caller
        self._check_untouched()
        try:
            write_all(self._disk, self._fd, data)
            self._disk.sync(self._fd)
        except OSError as error:
            if os.fstat(self._fd).st_size == self.size:
                raise unwritten(error, self.path) from error  # a read-only file system would refuse an undoing, too
            try:
                self._disk.truncate(self._fd, self.size)
                self._disk.sync(self._fd)
            except OSError as second:
                raise LogWriteError(
                    f"could not write ({error.strerror or error}), and could not undo it ({second.strerror or second})",
                    where=str(self.path),
                    fix=f"close the program, free space and cut the file to {self.size} bytes",
                ) from error
            raise unwritten(error, self.path) from error
        self.size += len(data)

    def _check_untouched(self) -> None:
        assert self._fd is not None  # noqa: S101 - a closed log is a bug of the caller
        size = os.fstat(self._fd).st_size
        if size != self.size or not _same_file(self._fd, self.path):
            what = "was moved or replaced" if size == self.size else f"is {size} bytes and should be {self.size}"
            raise LogBusyError(
                f"somebody else touched this log: it {what}",
                where=str(self.path),
                expected="one writer for each session",
                fix="nothing more is written from here; resume the session in one program only",
            )

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)


def unwritten(error: OSError, path: Path) -> LogWriteError:
    """The error for a batch that the disk refuses to take, with what mends that refusal."""
    return LogWriteError(
        f"could not write: {error.strerror or error}",
        where=str(path),
        fix=f"{_MENDS.get(error.errno or 0, 'free space or mend the disk')}; "
        "what was not written is kept and tried again",
    )


def open_plain(path: Path, flags: int) -> int:
    """Open a file that exists without ever waiting for one at the other end of a pipe; gives its descriptor.

    Raises: OSError that says what stands there when it is no plain file.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        kind = _kind_of(path)
        if kind and error.errno in (errno.ELOOP, errno.ENOENT, errno.ENXIO, errno.EISDIR):
            raise OSError(error.errno, kind, str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, _kind_of(path) or "it is no plain file", str(path))
    return fd


def read_plain(path: Path, limit: int = -1) -> bytes:
    """The bytes of a file that exists, or its first line when a limit says how much of it is looked at.

    Raises: as open_plain.
    """
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read() if limit < 0 else file.readline(limit)


def _kind_of(path: Path) -> str:
    """What stands there in place of a plain file, in words; empty for a plain file and for nothing."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            is_dead = not path.exists()
            return "it is a link to something that is not there" if is_dead else "it is a link and no file of its own"
    except OSError:
        return ""
    if stat.S_ISDIR(mode):
        return "it is a folder"
    return "" if stat.S_ISREG(mode) else "it is a pipe, a socket or a device"


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Write every byte, however little the system takes at once."""
    rest = memoryview(data)
    while rest:
        rest = rest[disk.write(fd, rest) :]


def make_folder(path: Path, disk: Disk) -> None:
    """Create a folder and those above it, for its owner only, each one durable in the one above."""
    missing: list[Path] = []
    at = path
    while not at.exists():
        missing.append(at)
        at = at.parent
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process made it in between, and that is what we want
            folder.mkdir(mode=FOLDER_MODE)
        sync_folder(folder.parent, disk)


def sync_folder(path: Path, disk: Disk) -> None:
    """Return once the names in a folder survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
