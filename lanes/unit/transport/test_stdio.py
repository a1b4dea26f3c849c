"""The standard streams are read and written whole, and standard output belongs to who claimed it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.transport.stdio import MAX_INPUT_BYTES, OutputClosedError, StandardStreams, claimed_streams


def streams(*, source: int | None = None, out: int | None = None, err: int | None = None) -> StandardStreams:
    return StandardStreams(input_fd=source, output_fd=out, error_fd=err)


def read(data: bytes, folder: Path) -> str:
    path = folder / "input"
    path.write_bytes(data)
    with path.open("rb") as file:
        return streams(source=file.fileno()).read_input()


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", ""), (b"a\r\n", "a\r\n"), (b"\xef\xbb\xbfa", "a"), ("é€😀".encode(), "é€😀")],
    ids=["empty", "line-end", "byte-order-mark", "multibyte"],
)
def test_input_is_read_as_utf8(data: bytes, text: str, tmp_path: Path) -> None:
    assert read(data, tmp_path) == text


@pytest.mark.parametrize("data", [b"ab\xff", b"a" * (MAX_INPUT_BYTES + 1)], ids=["not-utf-8", "too-long"])
def test_input_that_is_no_task_is_a_usage_error(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read(data, tmp_path)


def test_a_closed_input_is_empty() -> None:
    assert streams().read_input() == ""


def test_more_than_a_pipe_holds_is_written_whole_also_when_it_is_non_blocking() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    received: list[bytes] = []

    def drain() -> None:
        while piece := os.read(reader, 65536):
            received.append(piece)

    thread = threading.Thread(target=drain)
    thread.start()
    streams(out=writer).write("x" * 1_000_000)
    os.close(writer)
    thread.join()
    os.close(reader)
    assert sum(map(len, received)) == 1_000_000


def test_a_reader_that_is_gone_is_an_error_of_its_own() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(OutputClosedError, match="broken pipe"):
            streams(out=writer).write("x")
    finally:
        os.close(writer)


def test_writing_to_an_error_stream_that_is_gone_raises_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    gone = streams(err=writer)
    gone.write_error("x")
    os.close(writer)
    gone.write_error("y")
    streams().write_error("z")


def test_case_B16_half_a_character_is_spelled_out(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        streams(out=file.fileno()).write("a\ud800b\n")
    assert (tmp_path / "out").read_bytes() == b"a\\ud800b\n"


def test_a_claimed_output_is_out_of_everybody_elses_reach_and_given_back(capfd: pytest.CaptureFixture[str]) -> None:
    with claimed_streams() as claimed:
        sys.stdout.write("text layer\n")
        os.write(1, b"descriptor\n")
        claimed.write("mine\n")
    sys.stdout.write("after\n")
    captured = capfd.readouterr()
    assert captured.out == "mine\nafter\n"
    assert sorted(captured.err.splitlines()) == ["descriptor", "text layer"]


NOISE = """
import ctypes, os, subprocess, sys
from harness.transport.stdio import claimed_streams
with claimed_streams() as streams:
    print("print")
    sys.stdout.flush()
    os.write(1, b"descriptor\\n")
    libc = ctypes.CDLL(None)
    libc.puts(b"library")
    libc.fflush(None)
    libc.puts(b"buffered")
    subprocess.run(["sh", "-c", "echo child; cat; head -c 5"])
    sys.__stdout__.write("original\\n")
    streams.write_bytes(os.read(streams.input_descriptor, 100))
"""


def noisy(program: str) -> subprocess.CompletedProcess[bytes]:
    """A process whose standard output is a pipe, so that everybody's buffers are full ones."""
    paths = [os.environ.get("PYTHONPATH"), str(Path(__file__).parents[3])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        [sys.executable, "-c", program], input=b"{}\n", capture_output=True, env=environment, timeout=60, check=True
    )


def test_TR16_TR17_only_frames_reach_standard_output_and_no_child_eats_a_frame() -> None:
    ended = noisy(NOISE)
    assert ended.stdout == b"{}\n"
    noise = ended.stderr.decode().split()
    assert sorted(noise) == ["buffered", "child", "descriptor", "library", "original", "print"]


LATE_NOISE = """
import atexit, os, sys
from harness.transport.stdio import claimed_streams
atexit.register(os.write, 1, b"exit\\n")
with claimed_streams() as streams:
    streams.keep()
    streams.write("mine\\n")
print("after")
"""


def test_TR16_streams_that_are_kept_are_nobody_elses_until_the_process_ends() -> None:
    ended = noisy(LATE_NOISE)
    assert (ended.stdout, sorted(ended.stderr.split())) == (b"mine\n", [b"after", b"exit"])
