"""What clients of both servers may name wrongly: it is theirs to mend, and nothing is opened for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harness.log.disk import Disk
from lanes.unit.surfaces.acp_bench import AcpBench
from lanes.unit.surfaces.scripted import say
from lanes.unit.surfaces.sdk_bench import SdkBench

TOO_LONG = "/" + "a" * 5000
FOLDERS = [
    pytest.param(TOO_LONG, "the folder cannot be looked at: File name too long", id="too-long"),
    pytest.param("/nul\0byte", "there is no folder /nul\0byte", id="nul"),
    pytest.param("/half\ud800", "there is no folder /half\ud800", id="half-a-character"),
    pytest.param("/dev/null", "there is no folder /dev/null", id="a-device"),
    pytest.param("/\0" + "n" * 9999, "there is no folder /\0" + "n" * 198, id="long-and-none"),
]


@pytest.mark.parametrize(("folder", "what"), FOLDERS)
async def test_SV20_a_folder_that_is_none_is_told_by_field(folder: str, what: str, tmp_path: Path) -> None:
    bench = SdkBench(tmp_path)
    hello = await bench.hello(cwd=folder)
    await bench.leave()
    assert (hello, bench.said) == ({"code": -32602, "message": f"cwd: {what}"}, [])


@pytest.mark.parametrize(("folder", "what"), FOLDERS)
async def test_AC07_a_folder_that_is_none_is_told_by_field(folder: str, what: str, tmp_path: Path) -> None:
    bench = AcpBench(tmp_path)
    await bench.initialize()
    refused = await bench.ask("session/new", cwd=folder, mcpServers=[])
    await bench.leave()
    assert (refused, bench.said, len(bench.live)) == (
        {"code": -32602, "message": f"Invalid params: cwd: {what}"}, [], 0,
    )  # fmt: skip


async def test_SV01_a_relative_folder_of_a_server_whose_own_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    bench = SdkBench(tmp_path)
    refused, taken = await bench.hello(cwd="."), await bench.hello()
    await bench.leave()
    assert refused == {"code": -32602, "message": "cwd: the folder of the server itself is gone"}
    assert ("serverInfo" in taken, bench.said) == (True, [])


@pytest.mark.parametrize("field", ["provider", "model"])
async def test_a_blank_name_is_refused_and_not_taken_for_the_usual_one(field: str, tmp_path: Path) -> None:
    bench = SdkBench(tmp_path)
    refused = await bench.hello(**{field: " \t"})
    await bench.leave()
    assert refused == {"code": -32602, "message": f"{field}: expected a name"}


async def test_the_name_of_an_unknown_provider_is_repeated_only_as_far_as_a_person_reads(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path)
    refused = await bench.hello(provider="p" * 100_000)
    await bench.leave()
    assert refused["message"] == f'no adapter registered for provider "{"p" * 60}"'


@pytest.mark.parametrize("cwd", [5, [], {}, False])
async def test_DS10_a_listing_of_what_is_no_folder_is_refused(cwd: Any, tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, stored=True)
    await bench.initialize()
    refused = await bench.ask("session/list", cwd=cwd)
    await bench.leave()
    assert refused == {"code": -32602, "message": "Invalid params: cwd: expected a text"}


async def test_DS6_a_turn_that_could_not_be_stored_is_said_when_the_agent_comes_to_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = SdkBench(tmp_path, say("one"), say("two"))
    await bench.prompt("a")
    await bench.idle()
    before = list(bench.said)

    def full(self: Disk, fd: int, data: object) -> int:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(Disk, "write", full)
        await bench.prompt("b")
        await bench.idle(count=2)
    after = list(bench.said)
    await bench.leave()
    assert (before, [("session s: " in line, "No space left" in line) for line in after]) == ([], [(True, True)])
