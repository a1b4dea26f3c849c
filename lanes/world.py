"""What must be true of the world after a story: files, commands run again from outside, processes that are gone.

Room: scenario and the suites may come in. The agent's own report is never looked at.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

COMMAND_LIMIT_S = 60  # a check that takes longer has itself gone wrong
SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A file of the workspace: equal to a text, containing one, or absent."""

    file: str
    equals: str | None = None
    contains: str | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class CommandCheck:
    """A command run in the workspace by the test, never by the agent; a first word `python` is this interpreter."""

    command: tuple[str, ...]
    exit: int = 0
    stdout: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessCheck:
    """No process is left whose command line contains the marker and that works inside the workspace."""

    marker: str


WorldCheck: TypeAlias = FileCheck | CommandCheck | ProcessCheck


def check_world(checks: tuple[WorldCheck, ...], workspace: Path) -> list[str]:
    """What is not as the story says, one line each; empty when all is well."""
    return [problem for check in checks for problem in _check(check, workspace)]


def _check(check: WorldCheck, workspace: Path) -> list[str]:
    if isinstance(check, FileCheck):
        return _check_file(check, workspace)
    if isinstance(check, CommandCheck):
        return _check_command(check, workspace)
    left = processes_with(check.marker, workspace)
    return [f"process {pid} is left: {command}" for pid, command in left]


def _check_file(check: FileCheck, workspace: Path) -> list[str]:
    path = workspace / check.file
    if check.absent:
        return [f"{check.file} exists, it should be absent"] if path.exists() else []
    if not path.is_file():
        return [f"{check.file} is missing"]
    text = path.read_bytes().decode("utf-8", errors="backslashreplace")
    if check.equals is not None and text != check.equals:
        return [f"{check.file} is {_shown(text)}, expected {_shown(check.equals)}"]
    if check.contains is not None and check.contains not in text:
        return [f"{check.file} is {_shown(text)}, expected to contain {_shown(check.contains)}"]
    return []


def _check_command(check: CommandCheck, workspace: Path) -> list[str]:
    shown = " ".join(check.command)
    command = [sys.executable if check.command[0] == "python" else check.command[0], *check.command[1:]]
    try:
        done = subprocess.run(
            command,
            cwd=workspace,
            capture_output=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        return [f"`{shown}` could not be started: {error.strerror}"]
    except subprocess.TimeoutExpired:
        return [f"`{shown}` did not end within {COMMAND_LIMIT_S} s"]
    problems: list[str] = []
    output = done.stdout.decode("utf-8", errors="backslashreplace")
    if done.returncode != check.exit:
        said = done.stderr.decode("utf-8", errors="backslashreplace") or output
        problems.append(f"`{shown}` ended with {done.returncode}, expected {check.exit}: {_shown(said)}")
    if check.stdout is not None and output != check.stdout:
        problems.append(f"`{shown}` wrote {_shown(output)}, expected {_shown(check.stdout)}")
    return problems


def processes_with(marker: str, workspace: Path) -> list[tuple[int, str]]:
    """Running processes whose command line contains the marker, limited to those working inside the workspace.

    Limits: the working folder is known on Linux only; elsewhere the command line alone decides.
    """
    proc = Path("/proc")
    if not (proc / "self" / "cmdline").exists():
        return _processes_by_ps(marker)
    found: list[tuple[int, str]] = []
    inside = workspace.resolve()
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            place = (folder / "cwd").readlink()
        except OSError:  # the process ended while we looked, or belongs to somebody else
            continue
        if marker in command and place.is_relative_to(inside):
            found.append((int(folder.name), command))
    return sorted(found)


def _processes_by_ps(marker: str) -> list[tuple[int, str]]:
    listing = subprocess.run(["/bin/ps", "-axo", "pid=,command="], capture_output=True, text=True, check=True)
    found: list[tuple[int, str]] = []
    for line in listing.stdout.split("\n"):
        pid, _, command = line.strip().partition(" ")
        if marker in command and pid.isdigit():
            found.append((int(pid), command))
    return found


def _shown(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"
    return repr(cut)
