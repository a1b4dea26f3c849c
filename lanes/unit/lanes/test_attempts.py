"""The lane `real` of a tiny project, with a key that opens nothing: its guard, and its attempts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lanes.record import Record
from lanes.unit.lanes.authority import make_authority
from lanes.unit.lanes.stand_in import KEY, copy_project

TESTS = """
import os
import socket
from pathlib import Path

import pytest

ROOM = Path("attempts.txt")


def attempt():
    ROOM.write_text(ROOM.read_text() + "x" if ROOM.exists() else "x")
    return len(ROOM.read_text())


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_key_is_here():
    assert os.environ["STANDIN_API_KEY"] == "sk-canary-0f3e9b"
    assert "FORGE_TOKEN" not in os.environ


def test_second_attempt(folder):
    assert list(folder.iterdir()) == []
    (folder / "left.txt").write_text("by an earlier attempt")
    assert attempt() == 2


def test_never():
    assert os.environ["HOME"] == "somewhere else"


def test_loopback():
    with pytest.raises(RuntimeError):
        socket.create_connection(("::1", 9))


@pytest.mark.parametrize("module", ["respx", "vcr", "mock_provider"])
def test_stand_in(module):
    with pytest.raises(RuntimeError):
        __import__(module)
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, object]:
    folder = tmp_path_factory.mktemp("real")
    project = copy_project(folder, make_authority(folder, "nobody"), 1)  # nobody listens there, and nobody is asked
    shutil.rmtree(folder / "lanes" / "real")
    project.write("lanes/real/test_a.py", TESTS)
    keys = {KEY: "sk-canary-0f3e9b", "FORGE_TOKEN": "tok-canary-456"}
    return project.run("run", "real", PYTHONPATH=str(folder), **keys), project


@pytest.fixture
def records(real: tuple[object, object]) -> dict[str, Record]:
    return real[1].records("real")


def attempts(record: Record) -> list[str]:
    return [each.verdict for each in record.attempts]


def test_attempts_38_a_pass_after_a_failure_keeps_both_attempts(records: dict[str, Record]) -> None:
    record = records["test_second_attempt"]

    assert (record.verdict, attempts(record)) == ("passed", ["failed", "passed"])
    assert "assert 1 == 2" in (record.attempts[0].failure or "")


def test_real_has_two_further_attempts_and_no_more(records: dict[str, Record]) -> None:
    record = records["test_never"]

    assert (record.verdict, attempts(record)) == ("failed", ["failed"] * 3)


def test_a_pass_at_the_first_attempt_is_one_attempt(records: dict[str, Record]) -> None:
    assert attempts(records["test_key_is_here"]) == ["passed"]


def test_real_refuses_loopback_even_when_the_test_expects_it(records: dict[str, Record]) -> None:
    record = records["test_loopback"]

    assert (record.verdict, record.reason_code) == ("failed", "guard-refusal")
    assert record.guard["refusals"] == [{"what": "look-up of ::1", "tries": 3}]


@pytest.mark.parametrize("module", ["respx", "vcr", "mock_provider"])
def test_live_17_real_refuses_what_could_answer_in_the_provider_s_place(
    records: dict[str, Record], module: str
) -> None:
    record = records[f"test_stand_in[{module}]"]

    assert (record.verdict, record.guard["refusals"]) == ("failed", [{"what": f"import of {module}", "tries": 3}])


def test_the_key_is_written_nowhere(real: tuple[object, object]) -> None:
    ended, project = real
    out = Path(project.root) / "reports"

    assert not any(b"sk-canary-0f3e9b" in path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert "sk-canary-0f3e9b" not in ended.stdout.replace("== 'sk-canary-0f3e9b'", "")


def test_live_18_a_pass_without_a_model_call_is_void(real: tuple[object, object]) -> None:
    ended, project = real
    board = json.loads((Path(project.root) / "reports" / "out" / "board.json").read_text("utf-8"))

    assert ended.exit_code == 3
    assert "no-call" in {void["code"] for void in board["voids"]}
