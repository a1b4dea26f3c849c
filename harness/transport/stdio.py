"""The standard streams of the process: read as bytes, written whole, and kept for the one who claimed them.

Room: the command line claims the streams and hands them to a surface; nobody else touches sys.stdin, stdout or stderr.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.errors import PeerError, UsageError

MAX_INPUT_BYTES = 8 << 20  # a task read from a pipe; no model takes as much, and a wrong pipe must not fill memory
_READ_BYTES = 1 << 16


class OutputClosedError(PeerError):
    """Whoever read standard output is gone."""

    code = "OUTPUT_CLOSED"


class StandardStreams:
    """Standard input, output and error of one process, by descriptor.

    Shape: texts are UTF-8; half a character, which UTF-8 cannot hold, is spelled \\udXXX.
    Raises: OutputClosedError from the write functions; write_error never raises.
    """

    def __init__(self, *, input_fd: int | None, output_fd: int | None, error_fd: int | None) -> None:
        self._input = input_fd
        self._output = output_fd
        self._error = error_fd
        self._is_kept = False

    def keep(self) -> None:
        """Do not give the streams back: what is printed after the last frame stays off the output, too."""
        self._is_kept = True

    @property
    def is_kept(self) -> bool:
        """Whether the streams stay claimed until the process ends."""
        return self._is_kept

    @property
    def is_input_terminal(self) -> bool:
        """Whether a person would have to type the input."""
        return self._input is not None and os.isatty(self._input)

    @property
    def is_error_terminal(self) -> bool:
        """Whether a person sees what is written to standard error."""
        return self._error is not None and os.isatty(self._error)

    @property
    def input_descriptor(self) -> int | None:
        """Where frames are read from; None when standard input was closed from the start."""
        return self._input

    @property
    def output_descriptor(self) -> int | None:
        """Where frames are written to; None when standard output was closed from the start."""
        return self._output

    def read_input(self) -> str:
        """All of standard input.

        Raises: UsageError when it is not UTF-8 or too long.
        """
        data = b""
        while self._input is not None:
            piece = os.read(self._input, _READ_BYTES)
            if not piece:
                break
            data += piece
            if len(data) > MAX_INPUT_BYTES:
                raise UsageError(
                    f"more than {MAX_INPUT_BYTES} bytes",
                    where="standard input",
                    expected="a task",
                    fix="put long material into a file of the workspace and name it in the task",
                )
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"not UTF-8 at byte {error.start}", where="standard input", expected="text") from None

    def write(self, text: str) -> None:
        """Write text to standard output, all of it before returning."""
        self.write_bytes(text.encode("utf-8", "backslashreplace"))

    def write_bytes(self, data: bytes) -> None:
        """Write bytes to standard output, all of them before returning."""
        if self._output is None:
            raise OutputClosedError("standard output is closed")
        try:
            _write_all(self._output, data)
        except OSError as error:
            raise OutputClosedError(
                f"standard output cannot be written, {(error.strerror or 'failed').lower()}"
            ) from None

    def write_error(self, text: str) -> None:
        """Write text to standard error if that is possible; there is nobody left to tell when it is not."""
        if self._error is None:
            return
        try:
            _write_all(self._error, text.encode("utf-8", "backslashreplace"))
        except OSError:
            self._error = None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # the description is shared with a program that made it non-blocking
            poll = select.poll()
            poll.register(descriptor, select.POLLOUT)
            poll.poll()


@contextmanager
def claimed_streams() -> Iterator[StandardStreams]:
    """The streams of this process, with standard output out of everybody else's reach until the end of the block.

    Shape: descriptor 1 points to standard error meanwhile, so that no print, library or child can mix into the output,
    and descriptor 0 to the null device, so that none can take a part of the input. A descriptor that was closed is
    filled with the null device, so that no file opened later takes its place. What others still hold in their buffers
    at the end of the block is written to standard error, before the streams are given back.
    """
    is_open = [_is_open(descriptor) for descriptor in (0, 1, 2)]
    for descriptor in (0, 1, 2):
        if not is_open[descriptor]:
            _fill(descriptor)
    private, private_input = os.dup(1), os.dup(0)  # not inherited by children
    _point_to_null(0)
    visible = sys.stdout
    _flush(visible)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    streams = StandardStreams(
        input_fd=private_input if is_open[0] else None,
        output_fd=private if is_open[1] else None,
        error_fd=2 if is_open[2] else None,
    )
    try:
        yield streams
    finally:
        for stream in (sys.stderr, visible, sys.__stdout__):
            _flush(stream)
        if not streams.is_kept:
            _flush_libraries()
            sys.stdout = visible
            os.dup2(private, 1)
            os.dup2(private_input, 0)
            os.close(private)
            os.close(private_input)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _point_to_null(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def _fill(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def _flush_libraries() -> None:
    """Have C code write what it holds in its own buffers; where there is no C library to ask, it holds nothing."""
    import ctypes  # late: only the end of a process needs it

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)


def _flush(stream: object) -> None:
    flush: Callable[[], object] | None = getattr(stream, "flush", None)
    if flush is None:
        return
    try:
        flush()
    except (OSError, ValueError):
        return  # the reader is gone or the stream was closed; what it held has no place to go
