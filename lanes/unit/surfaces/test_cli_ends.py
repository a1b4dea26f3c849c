"""How the command ends when nobody foresaw it: one line for a person, an exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest

from harness import cli
from harness.errors import InternalError

ROOT = Path(__file__).parents[3]
RAISED = [
    pytest.param(
        RuntimeError("odd\x07"), InternalError.exit_code, "harness: RuntimeError: odd\x07\n", id="a-bug-of-ours"
    ),
    pytest.param(KeyboardInterrupt(), 130, "", id="an-interrupt"),
    pytest.param(InternalError("broken", where="the loop"), InternalError.exit_code, None, id="an-error-with-a-place"),
]


@pytest.mark.parametrize(("error", "code", "said"), RAISED)
def test_whatever_is_raised_ends_in_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def dispatch(*arguments: object) -> int:
        raise error

    monkeypatch.setattr(cli, "_dispatch", dispatch)
    ended = cli.main(["run", "x"])
    out, err = capfd.readouterr()
    assert (ended, out, err) == (code, "", f"harness: {error}\n" if said is None else said)


def version_of(name: str) -> str:
    return "1.2.3"


def no_version_of(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    ("version", "said"), [(version_of, "harness 1.2.3\n"), (no_version_of, "harness (not installed)\n")]
)
def test_the_version_is_the_installed_packages(
    version: object, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "version", version)
    assert (cli.main(["--version"]), capfd.readouterr().out) == (0, said)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]], ids=" ".join)
def test_help_that_nobody_reads_costs_one_line_and_exit_1(arguments: Sequence[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, b"harness: standard output cannot be written, broken pipe\n")


def test_loading_the_module_of_the_command_runs_nothing() -> None:
    from harness import __main__ as entry

    assert entry.main is cli.main
