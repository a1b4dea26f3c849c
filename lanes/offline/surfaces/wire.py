"""The installed program as the server it is, at the other end of three pipes: what is written to it, and what it says.

Room: the tests of the field cases and of the servers as processes come in. Every line of its standard output has to be
a frame; one that is not fails whoever waits for the next frame.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanes.policy import DUMMY_KEY
from lanes.program import Program, console_command

LIMIT_S = 60.0  # for what is over at once on a machine that has nothing else to do
PROVIDER, MODEL = "openai", "gpt-4.1-mini"
OPEN = {
    "sdk": ["sdk"],
    "acp": ["acp", "--provider", PROVIDER, "--model", MODEL],
}


class RealServer:
    """One server process.

    Shape: `frames` are those it wrote so far, oldest first; `errors` is what stands on its standard error. It speaks
    either wire: `hello`, `open_session`, `prompt` and `cancel` say the same on both.
    """

    def __init__(
        self, wire: str, folder: Path, base_url: str, *flags: str, command: Sequence[str] | None = None, **environ: str
    ) -> None:
        self.wire, self.folder = wire, folder
        self.workspace, self.sessions = folder / "workspace", folder / "sessions"
        self.workspace.mkdir(exist_ok=True)
        own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": base_url, "HARNESS_SESSION_ROOT": str(self.sessions)}
        program = Program(self.workspace, self.sessions, base_url)
        self.process = subprocess.Popen(
            [*(command or [*console_command("harness"), *OPEN[wire]]), *flags],
            cwd=self.workspace,
            env={**program.environment(), **own, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.frames: list[Any] = []
        self.strays: list[bytes] = []
        self.errors = b""
        self._ids = 0
        self._came = threading.Condition()
        self._has_ended = False
        self._may_read = threading.Event()
        self._may_read.set()
        self._readers = [threading.Thread(target=run, daemon=True) for run in (self._read_output, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> RealServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(LIMIT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    # bytes and frames

    @contextmanager
    def not_reading(self) -> Iterator[None]:
        """Read nothing of its standard output meanwhile."""
        self._may_read.clear()
        try:
            yield
        finally:
            self._may_read.set()

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        stdin = self.process.stdin
        assert stdin is not None
        view = memoryview(data)
        while view:
            view = view[stdin.write(view) or 0 :]

    def write_slowly(self, data: bytes, piece: int = 4096) -> None:
        """Write in pieces, each only once the one before was taken out of the pipe."""
        stdin = self.process.stdin
        assert stdin is not None
        fcntl.fcntl(stdin.fileno(), 1031, piece)  # F_SETPIPE_SZ: the pipe holds one piece, so that a write waits
        for at in range(0, len(data), piece):
            self.write(data[at : at + piece])

    def drained(self) -> None:
        """Wait until it has taken everything out of the pipe: fill the pipe once more, with what ends no line."""
        assert self.process.stdin is not None
        size = fcntl.fcntl(self.process.stdin.fileno(), 1032)  # F_GETPIPE_SZ
        self.write(b" " * size)

    def frame(self, method: str, params: Any, identity: Any = None) -> bytes:
        """A line with a request, or with a notification when it has no id."""
        own = {} if identity is None else {"id": identity}
        return json.dumps({"jsonrpc": "2.0", **own, "method": method, "params": params}).encode() + b"\n"

    def next_id(self) -> int:
        """An id that no request had."""
        self._ids += 1
        return self._ids

    def send(self, method: str, params: Any) -> int:
        """Send a request and give its id."""
        identity = self.next_id()
        self.write(self.frame(method, params, identity))
        return identity

    def until(self, is_there: Callable[[list[Any]], Any]) -> Any:
        """What the condition gives for all frames so far, once that is something."""
        end = time.monotonic() + LIMIT_S
        with self._came:
            while True:
                assert self.strays == [], self.strays
                if found := is_there(self.frames):
                    return found
                assert not self._has_ended, f"it ended with {self.process.poll()}: {self.errors[-2000:]!r}"
                assert self._came.wait(end - time.monotonic()), f"nothing came; last: {self.frames[-3:]}"

    def answer(self, identity: Any) -> Any:
        """The answer to a request: its result, or its error."""
        frame = self.until(lambda frames: next((one for one in frames if is_answer(one, identity)), None))
        return frame.get("result", frame.get("error"))

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and wait for its answer."""
        return self.answer(self.send(method, params))

    # the same on both wires

    def hello(self) -> Any:
        """Shake hands."""
        if self.wire == "acp":
            return self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return self.ask("initialize", {"cwd": str(self.workspace), "provider": PROVIDER, "model": MODEL})

    def open_session(self) -> str:
        """A session to work in; on the SDK wire its name is the client's choice."""
        if self.wire == "sdk":
            return "s"
        return str(self.ask("session/new", {"cwd": str(self.workspace), "mcpServers": []})["sessionId"])

    def prompt_line(self, session: str, text: str) -> tuple[int, bytes]:
        """A prompt of one text: its id and its line."""
        blocks, identity = [{"type": "text", "text": text}], self.next_id()
        name = "prompt" if self.wire == "acp" else "contentBlocks"
        return identity, self.frame("session/prompt", {"sessionId": session, name: blocks}, identity)

    def prompt(self, session: str, text: str) -> int:
        """Send a prompt and give its id."""
        identity, line = self.prompt_line(session, text)
        self.write(line)
        return identity

    def cancel_line(self, session: str) -> bytes:
        """The line that cancels what a session does: a request on the SDK wire, a notification on the other."""
        identity = self.next_id() if self.wire == "sdk" else None
        return self.frame("session/cancel", {"sessionId": session}, identity)

    def ended(self, prompts: int) -> list[str]:
        """How each of the prompts so far ended, in their order, once that many have: the reason or the stop reason."""
        if self.wire == "acp":
            self.until(lambda frames: len(stops(frames)) >= prompts)
            return stops(self.frames)
        idle = {"sessionId": "s", "status": "idle"}
        self.until(lambda frames: len(reasons(frames)) >= prompts and frames[-1].get("params") == idle)
        return reasons(self.frames)

    def texts(self) -> list[str]:
        """What the model said, message by message, as the client was told; messages without words are left out."""
        if self.wire == "acp":
            updates = [one["params"]["update"] for one in self.frames if one.get("method") == "session/update"]
            return [one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk"]
        messages = [event["data"]["message"] for event in events(self.frames) if event["type"] == "assistant/message"]
        said = ["".join(block["text"] for block in one["content"] if block["type"] == "text") for one in messages]
        return [words for words in said if words]

    # the process

    @property
    def memory_peak_bytes(self) -> int:
        """The most memory it ever held."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024

    def children(self) -> list[int]:
        """The processes it started and that are still there."""
        listed = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for path in listed for pid in path.read_text("utf-8").split()]

    def close_input(self) -> None:
        """Close the client's end."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        """Wait until it ends by itself; its exit status, negative for a signal."""
        status = self.process.wait(LIMIT_S)
        for reader in self._readers:
            reader.join(LIMIT_S)
        assert self.strays == [], self.strays
        return status

    def leave(self) -> int:
        """Close the client's end and wait."""
        self.close_input()
        return self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        held = bytearray()
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            held += data
            self._may_read.wait()
            if b"\n" not in data:
                continue
            *lines, rest = bytes(held).split(b"\n")
            held = bytearray(rest)
            with self._came:
                for line in lines:
                    self._take(line)
                self._came.notify_all()
        with self._came:
            if held:
                self.strays.append(bytes(held))
            self._has_ended = True
            self._came.notify_all()

    def _take(self, line: bytes) -> None:
        try:
            frame = json.loads(line)
        except ValueError:
            frame = None
        if isinstance(frame, dict) and frame.get("jsonrpc") == "2.0":
            self.frames.append(frame)
        else:
            self.strays.append(line)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 1 << 16):
            self.errors += data


def is_answer(frame: Any, identity: Any) -> bool:
    """Whether a frame answers that request."""
    return "method" not in frame and frame.get("id") == identity and type(frame["id"]) is type(identity)


def events(frames: Sequence[Any]) -> list[Any]:
    """The session events that an SDK client was told of."""
    return [frame["params"]["event"] for frame in frames if frame.get("method") == "session.event"]


def reasons(frames: Sequence[Any]) -> list[str]:
    """How the turns that an SDK client was told of ended."""
    return [event["data"]["reason"]["kind"] for event in events(frames) if event["type"] == "turn/end"]


def stops(frames: Sequence[Any]) -> list[str]:
    """The stop reasons of the prompts an ACP client got answers to; an error by its message."""
    results = [frame for frame in frames if "method" not in frame]
    return [
        frame["result"]["stopReason"] if "result" in frame else frame["error"]["message"]
        for frame in results
        if "error" in frame or "stopReason" in frame["result"]
    ]
