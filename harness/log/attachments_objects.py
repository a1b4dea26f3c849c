"""Files named by their content: there whole and durable, or not there.

Room: blocking I/O; only the attachment rooms come in, off the event loop. Tests hand in a Disk that fails on purpose.
<root>/objects/<first two digits>/<digest>, <root>/staging for what is being written, <root>/lock; files 0600,
folders 0700.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import AttachmentError
from harness.log.disk import FILE_MODE, Disk, make_folder, sync_folder, write_all

_DIGEST = re.compile(r"[0-9a-f]{64}")
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One file as its folder lists it. Units: changed_ms is its last change in milliseconds since 1970."""

    name: str
    path: Path
    changed_ms: int


class ObjectFiles:
    """The objects under one root.

    Shape: put returns once the object is durable under its digest; the same bytes are one object. boundary is the
    folder that is known to be durable; every folder from the object's up to it is made so with each put, because a
    folder that is seen need not have reached the disk.
    Raises: OSError when the disk refuses; AttachmentError [ATTACHMENT_CORRUPT] when an object is not what its name
    says.
    """

    def __init__(self, root: Path, *, boundary: Path | None = None, disk: Disk | None = None) -> None:
        self.root = root
        self._boundary = boundary if boundary is not None else root.parent
        self._disk = disk if disk is not None else Disk()
        self._numbers = itertools.count()

    def path_of(self, digest: str) -> Path:
        """Where the object of that digest stands, or would stand."""
        return self.root / "objects" / digest[:2] / digest

    def put(self, data: bytes) -> str:
        """Keep these bytes and give their digest.

        Shape: an object that was there is read back and counts as new for the sweep. With an error there may be an
        object that nobody names; its name is never wrong.
        """
        digest = hashlib.sha256(data).hexdigest()
        target = self.path_of(digest)
        with self.held(exclusive=False):
            make_folder(target.parent, self._disk)
            if os.path.lexists(target):
                self._confirm(target, digest)
                self._sync_folders(target.parent)
                return digest
            staged = self._stage(data)
            try:
                try:
                    self._disk.link(staged, target)
                except FileExistsError:
                    self._confirm(target, digest)  # another process wrote the same bytes meanwhile
                self._sync_folders(target.parent)
            finally:
                with contextlib.suppress(OSError):  # the sweep takes what is left in the staging folder
                    staged.unlink()
        return digest

    def keep(self, digest: str) -> None:
        """Make sure that a stored object is whole and durable and is not swept before long.

        Raises: FileNotFoundError.
        """
        target = self.path_of(digest)
        with self.held(exclusive=False):
            self._confirm(target, digest)
            self._sync_folders(target.parent)

    def read(self, digest: str) -> bytes:
        """The object's bytes, as its digest says.

        Raises: FileNotFoundError.
        """
        with self._opened(self.path_of(digest), digest) as fd:
            return self._read(fd, digest)

    def list(self) -> tuple[StoredObject, ...]:
        """Every object by digest; what is no object is left alone."""
        folders = [folder for folder in _entries(self.root / "objects") if folder.is_dir() and not folder.is_symlink()]
        paths = [path for folder in folders for path in _entries(folder) if path.name[:2] == folder.name]
        return tuple(_found(path for path in paths if _DIGEST.fullmatch(path.name)))

    def remove(self, found: StoredObject) -> bool:
        """Remove an object or a staged file unless it changed since it was found; True when it was removed.

        Shape: only under the exclusive hold, or a put may rely on what is being removed.
        """
        try:
            if _changed_ms(found.path) != found.changed_ms:
                return False
            found.path.unlink()
        except FileNotFoundError:
            return False
        return True

    def staged(self) -> tuple[StoredObject, ...]:
        """What puts that never ended left behind, and what others are writing now."""
        return tuple(_found(_entries(self.root / "staging")))

    @contextlib.contextmanager
    def held(self, *, exclusive: bool) -> Iterator[None]:
        """Keep sweeps and puts apart: many may put at a time, one may sweep while nobody puts. Waits for its turn."""
        make_folder(self.root, self._disk)
        fd = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield
        finally:
            os.close(fd)

    def _stage(self, data: bytes) -> Path:
        """A new durable file with these bytes that only we know."""
        folder = self.root / "staging"
        make_folder(folder, self._disk)
        fd, staged = self._new_file(folder)
        try:
            write_all(self._disk, fd, data)
            self._disk.sync(fd)
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one worth telling
                staged.unlink()
            raise
        finally:
            os.close(fd)
        return staged

    def _new_file(self, folder: Path) -> tuple[int, Path]:
        for number in self._numbers:
            path = folder / f"{os.getpid()}-{number}"
            with contextlib.suppress(FileExistsError):  # left by a process that had our number before us
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE), path
        raise AssertionError("numbers do not end")

    def _confirm(self, target: Path, digest: str) -> None:
        """Read an object back before anyone relies on it, and make it young and durable."""
        with self._opened(target, digest) as fd:
            self._read(fd, digest)
            os.utime(fd)
            self._disk.sync(fd)

    @contextlib.contextmanager
    def _opened(self, path: Path, digest: str) -> Iterator[int]:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
                raise _corrupt(path, digest, "it is no plain file") from error
            raise
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _corrupt(path, digest, "it is no plain file")
            yield fd
        finally:
            os.close(fd)

    def _read(self, fd: int, digest: str) -> bytes:
        pieces = []
        while piece := os.read(fd, _READ_BYTES):
            pieces.append(piece)
        data = b"".join(pieces)
        if hashlib.sha256(data).hexdigest() != digest:
            raise _corrupt(self.path_of(digest), digest, "its bytes are not those that were stored")
        return data

    def _sync_folders(self, folder: Path) -> None:
        while True:
            sync_folder(folder, self._disk)
            if folder in (self._boundary, folder.parent):
                return
            folder = folder.parent


def _entries(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(folder.iterdir()))
    except FileNotFoundError:
        return ()


def _found(paths: Iterable[Path]) -> Iterator[StoredObject]:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # a put that was under way has ended
            yield StoredObject(path.name, path, _changed_ms(path))


def _changed_ms(path: Path) -> int:
    return path.lstat().st_mtime_ns // 1_000_000


def _corrupt(path: Path, digest: str, what: str) -> AttachmentError:
    return AttachmentError(
        f"the stored picture is damaged: {what}",
        where=f"attachment sha256:{digest}",
        fix=f"move {path} away and send the picture again; the disk may be failing",
        code="ATTACHMENT_CORRUPT",
    )
