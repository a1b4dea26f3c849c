"""A file that a person names is read up to its limit, and no further."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mock_provider.errors import ScriptError
from mock_provider.named_files import TooLargeError, UnreadableError, read_named
from mock_provider.script import load_script


def test_a_text_with_or_without_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes("é\r\n".encode())
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + "é\r\n".encode())
    assert [read_named(tmp_path / name, 9) for name in ("plain", "marked")] == ["é\r\n"] * 2


def test_a_device_without_an_end_is_read_up_to_the_limit_alone() -> None:
    with pytest.raises(TooLargeError, match="5 bytes are more than 4"):
        read_named(Path("/dev/zero"), 4)


def test_a_script_on_a_pipe_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"version: 1\nsteps: [{reply: hi}]\n")
    os.close(writing)
    try:
        script = load_script(f"/dev/fd/{reading}")
    finally:
        os.close(reading)
    assert [len(one.steps()) for one in script.conversations] == [1]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        pytest.param("none", "cannot be read: No such file or directory", id="missing"),
        pytest.param(".", "cannot be read: Is a directory", id="folder"),
        pytest.param("loop", "cannot be read: Too many levels of symbolic links", id="link-to-itself"),
        pytest.param("a\0b", "cannot be read: embedded null byte", id="null-in-the-name"),
        pytest.param("wide", "byte 0 is not UTF-8", id="utf-16"),
        pytest.param("bytes", "byte 3 is not UTF-8", id="bytes"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "wide").write_bytes("text".encode("utf-16"))
    (tmp_path / "bytes").write_bytes(b"a\nb\xff")
    with pytest.raises(UnreadableError) as caught:
        read_named(tmp_path / name, 1000)
    assert caught.value.what == what
    with pytest.raises(ScriptError):
        load_script(tmp_path / name)
