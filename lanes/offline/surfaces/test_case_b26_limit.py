"""The field case of long lines: one that passes every limit, and one that never ends, through the real servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.offline.surfaces.wire import RealServer
from mock_provider.replies import script, step

WIRES = ("sdk", "acp")
LIMIT_BYTES = 128 << 20  # the documented one
OWN_BYTES = 400 << 20  # what a server may hold beside the line it reads: it is decoded, parsed and taken apart
SAID = script(*(step(f"Read {number}.") for number in range(1, 3)))


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B26_a_line_over_the_limit_is_dropped_with_one_message_and_framing_goes_on(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(SAID, is_judged=False)
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        server.write(b'{"jsonrpc":"2.0","id":"long","method":"no/such","params":{"a":"')
        for _ in range(LIMIT_BYTES // (1 << 20)):
            server.write(b"x" * (1 << 20))
        server.write(b'"}}\n')
        answer = server.ask("no/such/method", {})
        held = server.memory_peak_bytes
        assert server.leave() == 0

    assert answer["code"] == -32601
    assert [frame.get("id") for frame in server.frames].count("long") == 0
    (line,) = server.errors.decode().splitlines()
    assert str(LIMIT_BYTES) in line
    assert held < LIMIT_BYTES + OWN_BYTES


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B26_a_line_that_never_ends_holds_bounded_memory_and_the_process_leaves_at_the_end(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(SAID, is_judged=False)
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        before = server.memory_peak_bytes
        for _ in range(64):
            server.write(b"x" * (1 << 20))
        server.drained()
        grown = server.memory_peak_bytes - before
        assert (server.leave(), server.errors) == (0, b"")

    assert grown < LIMIT_BYTES
