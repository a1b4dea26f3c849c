"""The installed program as a child process: started as a user starts it, interrupted or killed at a known moment.

Room: the suites and the demo may come in. It imports neither the product nor the mock provider: what it knows of them
are command lines, standard streams and the files they leave.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from lanes.errors import ScenarioError
from lanes.normalize import Json
from lanes.scenario import Run, Scenario
from lanes.story_log import inside, read_rows

RUN_LIMIT_S = 90  # a journey is over in seconds; past this it hangs, and the test says so instead of the whole lane
SIGNAL_BASE = 128  # a shell's way of writing that a signal ended a program


@dataclass(frozen=True, slots=True)
class Finished:
    """How one start of the program ended. exit is the code a shell would show."""

    exit: int
    stdout: str
    stderr: str


def console_command(name: str) -> list[str]:
    """The console command of this environment; without an installed one, the module by its name."""
    beside = Path(sys.executable).parent / name
    return [str(beside)] if beside.exists() else [sys.executable, "-m", name.replace("-", "_")]


@dataclass(frozen=True, slots=True)
class Program:
    """Where a story's program runs and what it talks to.

    Shape: base_url is the model's address as the program is told it; environ is added to this process's own variables.
    """

    workspace: Path
    session_root: Path
    base_url: str | None
    model: str = "m-small"
    provider: str = "openai"
    environ: Mapping[str, str] | None = None

    def arguments(self, run: Run) -> list[str]:
        """The arguments after the program's name."""
        address = [] if self.base_url is None else ["--base-url", self.base_url]
        resumed = ["--resume", self.session_id()] if run.resume else []
        return [
            "run",
            *address,
            "--provider",
            self.provider,
            "--model",
            self.model,
            "--session-root",
            str(self.session_root),
            "--cwd",
            str(self.workspace),
            *run.flags,
            *resumed,
            run.task,
        ]

    def environment(self) -> dict[str, str]:
        """This process's variables, with the environment's own commands first on the path."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        return {**os.environ, "PATH": path, **(self.environ or {})}

    def run(self, run: Run) -> Finished:
        """Start the program once and wait for its end.

        Raises: ScenarioError when it does not end, or never shows what it was to be interrupted after.
        """
        command = [*console_command("harness"), *self.arguments(run)]
        if run.interrupt_after is None:
            return run_command(command, self.environment(), self.workspace)
        shown = ShownText(run.interrupt_after)
        return stop_when(command, self.environment(), self.workspace, shown.has_come, signal.SIGINT)

    def log_file(self) -> Path:
        """The log of the story's one root session."""
        return self.log_files()[0]

    def log_files(self) -> list[Path]:
        """The logs of the root session and of its children, these in the order in which they were created."""
        headers = {path: _header_of(path) for path in self.session_root.rglob("session.jsonl")}
        roots = [path for path, header in headers.items() if "parentSession" not in header]
        if len(roots) != 1:
            raise ScenarioError(
                f"{len(roots)} session logs are stored", where="session root", expected="one", fix="see what was run"
            )
        children = [path for path in headers if path != roots[0]]
        return [*roots, *sorted(children, key=lambda path: (cast("int", headers[path]["createdAt"]), path))]

    def log_rows(self) -> list[Json]:
        """The rows of that log, header first, as spelled on disk."""
        return read_rows(self.log_file())

    def session_id(self) -> str:
        """The id of that session."""
        header = self.log_rows()[0]
        return str(cast("dict[str, Json]", header)["id"])


def run_command(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Finished:
    """Run a command to its end with empty input."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _hangs(error.stderr or b"") from None
    return Finished(_shell_code(done.returncode), _text(done.stdout), _text(done.stderr))


def stop_when(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    moment: Callable[[str], bool],
    sent: signal.Signals,
    *,
    before_signal: Callable[[], None] | None = None,
) -> Finished:
    """Run a command, and send it a signal once a line of its output says that the moment has come.

    Shape: before_signal runs between the moment and the signal, for a second condition outside the program.
    Raises: ScenarioError when the output ends without the moment.
    """
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as child,
    ):
        try:
            seen = _read_until(child, moment)
            if seen is None:
                child.wait(RUN_LIMIT_S)
                errors.seek(0)
                raise ScenarioError(
                    "the program ended before the moment it was to be stopped at",
                    where="run",
                    expected="the output the story names",
                    fix=f"it said: {_text(errors.read())[-400:]!r}",
                )
            if before_signal is not None:
                before_signal()
            child.send_signal(sent)
            rest, _ = child.communicate(timeout=RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            errors.seek(0)
            raise _hangs(errors.read()) from None
        finally:
            if child.poll() is None:
                child.kill()
        errors.seek(0)
        return Finished(_shell_code(child.returncode), _text(seen + rest), _text(errors.read()))


def _read_until(child: subprocess.Popen[bytes], moment: Callable[[str], bool]) -> bytes | None:
    """What the child wrote up to the moment; None when its output ended without it."""
    seen = b""
    while line := child.stdout.readline() if child.stdout else b"":
        seen += line
        if moment(_text(line)):
            return seen
    return None


@dataclass(slots=True)
class ShownText:
    """Watches --json output until the model's text so far contains the wanted piece."""

    wanted: str
    text: str = ""

    def has_come(self, line: str) -> bool:
        """Take one line of output."""
        event = event_of(line)
        chunk = inside(inside(event, "data"), "chunk")
        if event.get("type") == "assistant/chunk" and isinstance(chunk.get("text"), str):
            self.text += str(chunk["text"])
        return self.wanted in self.text


def _header_of(path: Path) -> dict[str, Json]:
    """The first row of a log; it is whole as soon as the file is there."""
    with path.open(encoding="utf-8") as file:
        header: dict[str, Json] = json.loads(file.readline())
    return header


def event_of(line: str) -> dict[str, Json]:
    """The session event in one line of --json output; empty for any other line."""
    try:
        value: Json = json.loads(line)
    except ValueError:
        return {}
    return inside(value if isinstance(value, dict) else {}, "event")


def check_finished(run: Run, finished: Finished) -> list[str]:
    """How the end of one run differs from the story, one line each."""
    problems: list[str] = []
    if finished.exit != run.exit:
        problems.append(f"exit code {finished.exit}, expected {run.exit}; stderr: {finished.stderr[-600:]!r}")
    if run.stdout is not None and finished.stdout != run.stdout:
        problems.append(f"stdout is {finished.stdout[-400:]!r}, expected {run.stdout!r}")
    problems.extend(
        f"stderr {finished.stderr[-400:]!r} does not contain {piece!r}"
        for piece in run.stderr
        if piece not in finished.stderr
    )
    if "Traceback" in finished.stderr:
        problems.append(f"stderr shows a traceback: {finished.stderr[-600:]!r}")
    return problems


def check_story(scenario: Scenario, finished: Sequence[Finished]) -> list[str]:
    """How the ends of all runs differ from the story, each line with the number of its run."""
    return [
        f"run {number}: {problem}"
        for number, (run, done) in enumerate(zip(scenario.runs, finished, strict=True), start=1)
        for problem in check_finished(run, done)
    ]


def _shell_code(code: int) -> int:
    return SIGNAL_BASE - code if code < 0 else code


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="backslashreplace")


def _hangs(said: bytes) -> ScenarioError:
    return ScenarioError(
        f"the program did not end within {RUN_LIMIT_S} s",
        where="run",
        expected="an end",
        fix=f"it said: {_text(said)[-400:]!r}",
    )
