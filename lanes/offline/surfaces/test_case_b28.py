"""The field case of bad lines, through the real servers; and the files of all cases of the wires, byte by byte."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.wire import RealServer
from mock_provider.replies import script, step

CASES = Path(__file__).parents[2] / "cases" / "rpc"
FILES = {
    "B26-long-lines.json": "1b9bf019500cd59a96c2fa5d62d8e908da7ee8f24b493bab811f07a0235481fa",
    "B27-stray-output.json": "ebaeab2fddec4626c4b655999ca9c342a53b26d332a990dc11f1df7d2a11207c",
    "B28-bad-lines.ndjson": "63876aa1217e67717efc1352d27859c4dc2f0005dc00da1522b3eaa2f93f4101",
    "B28-expected.json": "1e138c80ac2e3b9769696b32a070175fff7c51446334c6de744497fcbc505b1d",
    "B29-cancel-races.json": "7594cb1c2e3611d90b4a3a14b6ca3d26d88ffcdf6124a7c897d509fb1353d049",
}
WIRES = ("sdk", "acp")
EXIT_S = 2.0  # the bound of the case for leaving at the end of the input
BUSY_S = 20.0  # what a machine with much else to do may add to it: the start of the program stands before it
SAID = script(*(step(f"Read {number}.") for number in range(1, 3)))


@pytest.mark.parametrize("name", FILES)
def test_the_case_files_of_the_wires_are_byte_exact(name: str) -> None:
    assert hashlib.sha256((CASES / name).read_bytes()).hexdigest() == FILES[name]


def bad_lines() -> Iterator[tuple[bytes, str | None, int | None]]:
    """Each line of the case with the id and the code it is answered with, where it is."""
    lines = (CASES / "B28-bad-lines.ndjson").read_bytes().splitlines(keepends=True)
    replies = json.loads((CASES / "B28-expected.json").read_text("utf-8"))["replies"]
    for line, reply in zip(lines, replies, strict=True):
        yield line, reply.get("id"), reply.get("code")


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B28_good_lines_are_answered_and_bad_ones_not_and_the_process_leaves_at_the_end(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    base_url = channels.loopback(SAID, is_judged=False).base_url("openai_chat")
    with RealServer(wire, tmp_path, base_url) as server:
        server.write((CASES / "B28-bad-lines.ndjson").read_bytes())
        begin = time.monotonic()
        assert (server.leave(), server.errors) == (0, b"")
        took_s = time.monotonic() - begin

    assert took_s < EXIT_S + BUSY_S
    found = {frame["id"]: frame["error"]["code"] for frame in server.frames}
    assert found == {identity: code for _, identity, code in bad_lines() if identity is not None}


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B28_the_server_is_alive_after_every_line(wire: str, channels: Channels, tmp_path: Path) -> None:
    base_url = channels.loopback(SAID, is_judged=False).base_url("openai_chat")
    with RealServer(wire, tmp_path, base_url) as server:
        *whole, (unfinished, _, _) = bad_lines()
        for line, identity, code in whole:
            server.write(line)
            if identity is not None:
                assert server.answer(identity)["code"] == code
            assert server.hello()
        server.write(unfinished)
        assert (server.leave(), server.errors) == (0, b"")
    assert all("L" not in str(frame.get("id")) or frame["id"] in {"L1", "L9", "L12"} for frame in server.frames)
