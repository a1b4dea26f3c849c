"""A session log that breaks in the middle of a turn: on every surface its own code, the file, and what to do."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harness.assemble import Assembled
from harness.log.disk import Disk
from harness.log.events import Event, TurnEnd
from lanes.unit.surfaces.acp_bench import AcpBench
from lanes.unit.surfaces.conftest import Bench
from lanes.unit.surfaces.scripted import Script, say, served, use
from lanes.unit.surfaces.sdk_bench import SdkBench

ROOT = Path(__file__).parents[3]
FIRST = replace(use("read_file", {"path": "long.txt"}), hold=0)  # the log breaks while the model answers
KEPT = "what was not written is kept and tried again"
ONE_WRITER = "nothing more is written from here; resume the session in one program only"
# The limit in bytes is more than the log of a first request, less than with a long result. It holds while the program
# itself is at work: what a lane or a measurement notes at the start and at the end of each process is long by itself.
LIMITED = """
import resource, runpy
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, most))
try:
    runpy.run_module("harness", run_name="__main__", alter_sys=True)
finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
"""


@dataclass(frozen=True)
class Fault:
    """What befalls the log, and what a person has to read of it."""

    strike: Callable[[pytest.MonkeyPatch, Path], object]
    code: str
    what: str
    fix: str


def refusing(number: int) -> Callable[[pytest.MonkeyPatch, Path], object]:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    def strike(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
        monkeypatch.setattr(Disk, "write", refuse)
        monkeypatch.setattr(Disk, "truncate", refuse)

    return strike


def write_behind_its_back(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    log.write_bytes(log.read_bytes() + b"x\n")


def replaced(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    data = log.read_bytes()
    log.unlink()
    log.write_bytes(data)


FAULTS = {
    "full": Fault(
        refusing(errno.ENOSPC),
        "LOG_WRITE_FAILED",
        "could not write: No space left on device",
        f"free space or mend the disk; {KEPT}",
    ),
    "read-only": Fault(
        refusing(errno.EROFS),
        "LOG_WRITE_FAILED",
        "could not write: Read-only file system",
        f"make the file system writable again; {KEPT}",
    ),
    "other-writer": Fault(write_behind_its_back, "LOG_BUSY", "somebody else touched this log: it is ", ONE_WRITER),
    "replaced": Fault(replaced, "LOG_BUSY", "somebody else touched this log: it was moved or replaced", ONE_WRITER),
    "gone": Fault(
        lambda monkeypatch, log: log.unlink(),
        "LOG_BUSY",
        "somebody else touched this log: it was moved or replaced",
        ONE_WRITER,
    ),
}


@pytest.fixture(params=list(FAULTS.values()), ids=list(FAULTS))
def fault(request: pytest.FixtureRequest) -> Fault:
    found: Fault = request.param
    return found


class Strike:
    """Called while the model answers: the fault befalls the one log under the folder; path is then where it stood."""

    def __init__(self, fault: Fault, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._fault, self._monkeypatch, self._folder = fault, monkeypatch, folder
        self.path = folder

    async def __call__(self) -> None:
        (self.path,) = self._folder.rglob("session.jsonl")
        self._fault.strike(self._monkeypatch, self.path)


async def test_the_command_names_what_befell_the_log_and_exits_1(
    fault: Fault, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike = Strike(fault, monkeypatch, tmp_path)
    outcome = await bench.run(FIRST, on_hold=strike)
    (line,) = [line for line in outcome.err.splitlines() if line.startswith(f"harness: {fault.code}: ")]
    assert (outcome.exit_code, "UNKNOWN" in outcome.err) == (1, False)
    assert line.startswith(f"harness: {fault.code}: {strike.path}: {fault.what}")
    assert line.endswith(f"; fix: {fault.fix}")


async def test_the_sdk_server_tells_the_client_and_the_person_what_befell_the_log(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike = Strike(fault, monkeypatch, tmp_path)
    bench = SdkBench(tmp_path, FIRST, on_hold=strike)
    await bench.prompt("a")
    await bench.idle()
    refused = await bench.prompt("b")
    await bench.leave()
    reason: Any = next(event["data"]["reason"] for event in bench.events() if event["type"] == "turn/end")
    assert (reason["kind"], reason["failure"]["code"]) == ("error", fault.code)
    assert reason["failure"]["message"].startswith(f"{strike.path}: {fault.what}")
    assert reason["failure"]["message"].endswith(f"; fix: {fault.fix}")
    assert bench.said[0].startswith(f"session s: {strike.path}: {fault.what}")
    assert bench.said[0].endswith(f" fix: {fault.fix}")
    assert refused["code"] == -32603
    assert f"[{fault.code}]" in refused["message"]


async def test_the_acp_server_answers_the_prompt_with_what_befell_the_log(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike = Strike(fault, monkeypatch, tmp_path)
    bench = AcpBench(tmp_path, FIRST, on_hold=strike)
    answer = await bench.say(await bench.ready(), "a")
    await bench.leave()
    assert answer["code"] == -32603
    assert answer["message"].startswith(f"Internal error: turn failed: {strike.path}: {fault.what}")
    assert f"[{fault.code}]" in answer["message"]
    assert answer["message"].endswith(f"  fix: {fault.fix}")


GONE = "nothing more once its writer let go of the file fix: resume the session to go on with it"


async def test_a_turn_whose_writer_is_gone_did_run_and_is_told_so_with_exit_1(bench: Bench) -> None:
    made: list[Assembled] = []

    async def let_go() -> None:
        await made[0].writer.close()

    outcome = await bench.run(FIRST, on_hold=let_go, hook=made.append)
    (line,) = outcome.err.splitlines()
    assert (outcome.exit_code, line.startswith("harness: the turn could not be ended: session session-")) == (1, True)
    assert line.endswith(f" can be added, the session was closed [LOG_CLOSED] expected: {GONE}")


@pytest.mark.parametrize("surface", ["sdk", "acp"])
async def test_a_log_that_cannot_even_begin_is_answered_with_code_place_and_remedy(
    surface: str, tmp_path: Path
) -> None:
    root = tmp_path / "sessions"
    root.write_text("in the way")
    bench = SdkBench(tmp_path) if surface == "sdk" else AcpBench(tmp_path)
    if isinstance(bench, SdkBench):
        refused = await bench.prompt("a")
    else:
        await bench.initialize()
        refused = await bench.ask("session/new", cwd=str(bench.work), mcpServers=[])
    await bench.leave()
    said = (
        f"{root}: the log cannot be opened for writing: Not a directory [LOG_WRITE_FAILED]\n"
        "  fix: look at the owner and mode of it and of the folders above it, and whether the disk is full or read-only"
    )
    assert (refused["code"], refused["message"].removeprefix("Internal error: ")) == (-32603, said)


async def test_a_log_that_can_be_written_again_holds_the_code_of_what_befell_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Disk.write
    is_full = False

    def write_or_refuse(disk: Disk, fd: int, data: bytes | memoryview) -> int:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(disk, fd, data)

    async def fill() -> None:
        nonlocal is_full
        is_full = True

    def free(event: Event) -> None:
        nonlocal is_full
        is_full = is_full and not isinstance(event.payload, TurnEnd)

    def watch(assembled: Assembled) -> None:
        assembled.agent.log.observe(free)

    monkeypatch.setattr(Disk, "write", write_or_refuse)
    outcome = await bench.run(FIRST, on_hold=fill, hook=watch)
    (stored,) = bench.logs()
    (refused,) = [row["data"]["error"]["code"] for row in stored if row["type"] == "tool/result"]
    assert (refused, stored[-1]["data"]["reason"]["failure"]["code"]) == ("LOG_WRITE_FAILED", "LOG_WRITE_FAILED")
    assert (outcome.exit_code, [line[:26] for line in outcome.err.splitlines()]) == (1, ["harness: LOG_WRITE_FAILED:"])


def test_the_program_on_a_disk_that_takes_no_more_names_log_and_remedy(tmp_path: Path) -> None:
    """The kernel refuses here: a limit on the size of files stands in for a full disk, in a real process."""
    (tmp_path / "long.txt").write_text("a line of a long file\n" * 1000)
    foreign = ("HARNESS_", "OPENAI_", "COVERAGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    with served(Script([replace(FIRST, hold=None), say("never")])) as base_url:
        ended = subprocess.run(
            [sys.executable, "-c", LIMITED, "run", "--model", "m", "--base-url", base_url, "read it"],
            cwd=tmp_path,
            env={
                **kept,
                "PYTHONDONTWRITEBYTECODE": "1",  # a compiled file that the limit cuts off would break later imports
                "HOME": str(tmp_path),
                "HARNESS_SESSION_ROOT": str(tmp_path / "sessions"),
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    (log,) = (tmp_path / "sessions").rglob("session.jsonl")
    said = (
        f"LOG_WRITE_FAILED: {log}: could not write: File too large; fix: raise the limit on the size of files; {KEPT}"
    )
    assert (ended.returncode, f"harness: {said}" in ended.stderr.splitlines()) == (1, True)
    assert log.read_bytes().endswith(b"}\n")
