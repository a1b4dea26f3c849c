"""The one folder the tools may touch, and every path turned into a place inside it.

Room: the file tools and the shell may come in. Files are opened here and nowhere else in the tools: component by
component, refusing links, so that a link swapped in after the check leads nowhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import HarnessError
from harness.tools.plain_text import name_of_printable, printable_name

SPILL_PREFIX = "@output"  # names the folder of spilled outputs; no file of the workspace can be meant by it
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe that nobody writes to must not hold the call
_NEW_FILE_MODE = 0o666  # a file of the person's project: their umask decides, unlike files of our own state


class ToolError(HarnessError):
    """A tool cannot do what the call asks; becomes an error result for the model."""

    code = "TOOL_FAILED"


@dataclass(frozen=True, slots=True)
class Place:
    """A checked path: real is absolute and free of links, shown is how results name it."""

    real: Path
    shown: str
    base: Path


class Workspace:
    """Resolves the paths a model gives, and opens what they name.

    Shape: paths are relative to the root, or absolute below it; `@output/NAME` reads a spilled output. A name may be
    given as it is or as results show it, with \\xNN for what is not printable.
    Raises: ToolError PATH_INVALID, PATH_OUTSIDE, PATH_MISSING, NOT_A_FILE or FILE_FAILED; nothing was changed.
    """

    def __init__(self, root: Path, *, spill_dir: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.spill_dir = Path(os.path.realpath(spill_dir))

    def place(self, path: str, *, writing: bool = False) -> Place:
        """Check one path; links are followed and must end inside."""
        shown = printable_name(path)
        path = self._meant(path)
        if path == "" or "\0" in path or ("\n" in path and not os.path.lexists(self.root / path)):
            raise ToolError(
                "not a usable path", where=repr(shown), expected="a path in the workspace", code="PATH_INVALID"
            )
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ToolError(
                "the path holds half a character (a lone surrogate)",
                where=shown,
                expected="a path in the workspace",
                code="PATH_INVALID",
            ) from None
        parts = PurePosixPath(path).parts
        if parts[:1] == (SPILL_PREFIX,):
            if writing:
                raise ToolError("spilled outputs are read-only", where=shown, code="PATH_OUTSIDE")
            return self._inside(self.spill_dir, self.spill_dir.joinpath(*parts[1:]), shown)
        return self._inside(self.root, self.root / path, shown)

    def _meant(self, path: str) -> str:
        """The path itself, or the one that results show so when only that exists."""
        name = name_of_printable(path)
        is_shown = name != path and not os.path.lexists(self.root / path) and os.path.lexists(self.root / name)
        return name if is_shown else path

    def _inside(self, base: Path, path: Path, shown: str) -> Place:
        try:
            real = Path(os.path.realpath(path))
        except OSError as error:
            raise self.failure(shown, error) from None
        if real != base and base not in real.parents:
            raise ToolError(
                "leads outside the workspace",
                where=shown,
                expected="a path below the workspace folder, links included",
                fix="use a path relative to the workspace",
                code="PATH_OUTSIDE",
            )
        return Place(real=real, shown=self.shown(real), base=base)

    def shown(self, real: Path) -> str:
        """How results name a place: relative, never absolute."""
        if real == self.root or self.root in real.parents:
            return printable_name(real.relative_to(self.root).as_posix())
        return printable_name((PurePosixPath(SPILL_PREFIX) / real.relative_to(self.spill_dir).as_posix()).as_posix())

    def failure(self, shown: str, error: OSError) -> ToolError:
        """The error a tool reports for a failed file operation; holds no absolute path."""
        if error.errno == errno.ENOENT:
            return ToolError(
                "no such file or folder", where=shown, fix="list_files shows what is there", code="PATH_MISSING"
            )
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            return ToolError("a link that leads in circles or was just changed", where=shown, code="PATH_OUTSIDE")
        return ToolError((error.strerror or "failed").lower(), where=shown, code="FILE_FAILED")

    @contextmanager
    def folder(self, place: Place, *, create: bool = False) -> Iterator[int]:
        """An open descriptor of the folder that holds the place, reached without following any link."""
        flags = os.O_RDONLY | os.O_DIRECTORY | _OPEN_FLAGS
        descriptor = os.open(place.base, flags)
        try:
            for part in place.real.relative_to(place.base).parts[:-1]:
                if create:
                    with suppress(FileExistsError):  # anything but a folder fails in the open below
                        os.mkdir(part, dir_fd=descriptor)
                inner = os.open(part, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        except OSError as error:
            raise self.failure(place.shown, error) from None
        finally:
            os.close(descriptor)

    def read(self, place: Place, *, limit_bytes: int) -> bytes:
        """The whole content of a regular file."""
        return self.read_with_identity(place, limit_bytes=limit_bytes)[0]

    def read_with_identity(self, place: Place, *, limit_bytes: int) -> tuple[bytes, tuple[int, int, int]]:
        """The content, and what tells this state of the file from a later one."""
        if place.real == place.base:
            raise _not_a_file(place.shown)
        with self.folder(place) as folder:
            descriptor = os.open(place.real.name, os.O_RDONLY | _OPEN_FLAGS, dir_fd=folder)
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                os.close(descriptor)
                raise _not_a_file(place.shown)
            with os.fdopen(descriptor, "rb") as file:
                if facts.st_size > limit_bytes:
                    raise ToolError(
                        f"the file has {facts.st_size} bytes",
                        where=place.shown,
                        expected=f"at most {limit_bytes} bytes",
                        fix="use the shell to look at a part of it, for example with head or sed",
                        code="FILE_TOO_LARGE",
                    )
                return file.read(limit_bytes + 1), _identity(facts)

    def write(self, place: Place, content: bytes, *, expected: tuple[int, int, int] | None = None) -> bool:
        """Put content in place in one step, folders included; True when the file is new.

        Raises: ToolError EDIT_CONFLICT when the file is no longer the one whose identity was expected.
        """
        if place.real == place.base:
            raise _not_a_file(place.shown)
        name = place.real.name
        draft = f".{secrets.token_hex(12)}.draft"  # a name that nobody else can have there
        with self.folder(place, create=True) as folder:
            try:
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                facts = None
            if facts is not None and not stat.S_ISREG(facts.st_mode):
                raise _not_a_file(place.shown)
            descriptor = os.open(
                draft,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                _NEW_FILE_MODE,
                dir_fd=folder,
            )
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if facts is not None:
                        os.fchmod(descriptor, stat.S_IMODE(facts.st_mode))
                    file.write(content)
                if expected is not None:
                    _check_unchanged(name, folder, expected, place.shown)
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(draft, dir_fd=folder)
                raise
        return facts is None


def _identity(facts: os.stat_result) -> tuple[int, int, int]:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _check_unchanged(name: str, folder: int, expected: tuple[int, int, int], shown: str) -> None:
    try:
        now: tuple[int, int, int] | None = _identity(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        now = None
    if now != expected:
        raise ToolError(
            "the file was changed by someone else during the edit",
            where=shown,
            expected="the content the edit was made from",
            fix="read the file again and repeat the edit",
            code="EDIT_CONFLICT",
        )


def _not_a_file(shown: str) -> ToolError:
    return ToolError("not a regular file", where=shown, fix="list_files shows what is there", code="NOT_A_FILE")
