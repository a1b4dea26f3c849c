"""A provider on loopback, over real TLS with an authority of the test, and a copy of the project whose table names it.

It answers the journeys of the real suite as a good model would; the model it is asked for, or its mood, says what is
wrong with its answers. Its table and its authority are in the copy alone: no other board admits anything of it.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lanes.providers import Provider, load_providers
from lanes.unit.lanes.authority import Authority, make_authority
from lanes.unit.lanes.conftest import REPOSITORY, Ended, Project

KEY = "STANDIN_API_KEY"
KEY_VALUE = "sk-canary-of-the-stand-in-77"
MODELS = ("m-standard", "m-old-date", "m-no-date", "m-no-usage", "m-no-id", "m-odd-id", "m-same-id", "m-no-price")
RUN_TIMEOUT_S = 110
COPIED_ID = "standin-copied-00000001"
TABLE = """
[stand-in]
base_url = "https://127.0.0.1:{port}/v1"
path_prefix = "/v1/"
dialect = "openai_chat"
key = "STANDIN_API_KEY"
model = "m-standard"
id_pattern = "standin-[a-z0-9-]+"
sends_date = true
peers = "private"
authority = "authority.pem"
priced_on = "2031-03-04"
max_out_tokens = 1000
{models}

[messages]
base_url = "https://localhost:{port}/v1"
path_prefix = "/v1/"
dialect = "anthropic_messages"
key = "MESSAGES_API_KEY"
model = "m-standard"
id_pattern = "standin-[a-z0-9-]+"
sends_date = true
peers = "private"
authority = "authority.pem"
priced_on = "2031-03-04"

[messages.models.m-standard]
in = 1.0
cached = 0.1
out = 2.0

[acme]
base_url = "https://api.acme.example/v1"
path_prefix = "/v1/"
dialect = "openai_chat"
key = "ACME_API_KEY"
model = "m-standard"
id_pattern = "standin-[a-z0-9-]+"
sends_date = true
peers = "global"
priced_on = "2031-03-04"
max_out_tokens = 1000

[acme.models.m-standard]
in = 1.0
cached = 0.1
out = 2.0
"""
PACKAGES = ("harness", "mock_provider", "lanes", "reports")
NOT_COPIED = shutil.ignore_patterns("unit", "snapshot", "replay", "offline", "real", "proofs", "out", "node_modules")


@dataclass
class StandIn:
    """One server.

    Shape: mood is `well`, `rejects` (401), `spent` (402), `busy` (503), `mumbles` (never says what it was asked for),
    `late` (its clock is ten minutes behind) or `reshaped` (its answers look other than they used to); after `good_for`
    requests it changes to `then`. fails_at holds the numbers of the tasks, from 1, that it gives up on. `requests` are
    the bodies it was sent.
    """

    authority: Authority
    mood: str = "well"
    good_for: int | None = None
    then: str = "well"
    fails_at: frozenset[int] = frozenset()
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        self._tasks = itertools.count(1)
        self._giving_up = False
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                stand_in.keys.add(self.headers.get("x-api-key") or self.headers.get("authorization", "")[7:])
                stand_in.answer(self, body)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return format_datetime(datetime.now(UTC) - timedelta(seconds=stand_in.behind_s), usegmt=True)

            def send_response(self, code: int, message: str | None = None) -> None:
                self.send_response_only(code, message)
                if stand_in.model != "m-no-date":
                    self.send_header("Date", self.date_time_string())

            def log_message(self, *_arguments: object) -> None:
                """Print nothing."""

        self.model = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = self.authority.server_context().wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def behind_s(self) -> int:
        """How far its clock is behind, in seconds."""
        return 600 if self.mood == "late" or self.model == "m-old-date" else 0

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def be(self, mood: str, *, good_for: int | None = None, then: str = "well", fails_at: frozenset[int] = frozenset()):
        """Begin anew, in a mood."""
        self.mood, self.good_for, self.then, self.fails_at = mood, good_for, then, fails_at
        self._tasks, self._giving_up = itertools.count(1), False
        self.requests.clear()

    def answer(self, handler: BaseHTTPRequestHandler, body: Mapping[str, Any]) -> None:
        """Answer one request."""
        if self.good_for is not None and len(self.requests) >= self.good_for:
            self.mood = self.then
        self.requests.append(body)
        self.model = str(body["model"])
        status = {"rejects": 401, "spent": 402, "busy": 503}.get(self.mood, 200)
        if status != 200:
            self._send(handler, status, "application/json", json.dumps({"error": {"message": self.mood}}).encode())
            return
        if handler.path.endswith("/messages"):
            said = self._speak(_as_chat(body["messages"]))
            self._send(handler, 200, *self._encode_message(body, *said))
            return
        text, call = self._speak(body["messages"])
        self._send(handler, 200, *self._encode(body, text, call))

    def _speak(self, messages: list[Mapping[str, Any]]) -> tuple[str, tuple[str, Mapping[str, str]] | None]:
        """What a good model says: words, or a tool call."""
        at = max(number for number, each in enumerate(messages) if each["role"] == "user")
        task = _text(messages[at]["content"])
        results = [_text(each["content"]) for each in messages[at:] if each["role"] == "tool"]
        if "Answer with this one word" in task:
            return ("hm", None) if self.mood == "mumbles" else (task.split()[-1], None)
        if "check.py" in task and not results:
            self._giving_up = next(self._tasks) in self.fails_at
        if self._giving_up:
            return "I give up.", None
        plan = _plan(task, [_text(each["content"]) for each in messages if each["role"] == "user"])
        if len(results) < len(plan):
            return "", plan[len(results)]
        token = re.search(r"[0-9a-f]{16}", "".join(results))
        return f"done {token[0] if token else ''}", None

    def _encode(
        self, body: Mapping[str, Any], text: str, call: tuple[str, Mapping[str, str]] | None
    ) -> tuple[str, bytes]:
        number = next(self._ids)
        made: dict[str, Any] = {"object": "chat.completion", "created": 1, "model": self.model}
        made["id"] = {"m-same-id": COPIED_ID, "m-odd-id": "mock-1"}.get(self.model, f"standin-{self.port}-{number:08d}")
        if self.model == "m-no-id":
            del made["id"]
        if self.mood == "reshaped":
            made |= {"created": "just now", "tier": "standard"}
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        finish = "tool_calls" if call else "stop"
        usage = {} if self.model == "m-no-usage" else {"usage": {"prompt_tokens": 400, "completion_tokens": 20}}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return "application/json", json.dumps({**made, "choices": [choice], **usage}).encode()
        chunks = [
            {**made, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**made, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**made, "choices": [], **usage},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()

    def _encode_message(
        self, body: Mapping[str, Any], text: str, call: tuple[str, Mapping[str, str]] | None
    ) -> tuple[str, bytes]:
        number = next(self._ids)
        usage = {"input_tokens": 400, "output_tokens": 20}
        made = {"id": f"standin-{self.port}-{number:08d}", "type": "message", "role": "assistant", "model": self.model}
        reason = "tool_use" if call else "end_turn"
        if not body.get("stream"):
            whole = {**made, "content": [{"type": "text", "text": text}], "stop_reason": reason, "usage": usage}
            return "application/json", json.dumps(whole).encode()
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": text}
        if call is not None:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**made, "content": [], "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ]
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        return "text/event-stream", "".join(lines).encode()

    def _send(self, handler: BaseHTTPRequestHandler, status: int, kind: str, content: bytes) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@dataclass(frozen=True)
class LiveCopy:
    """A copy of the project whose provider table and authority are those of a stand-in."""

    project: Project
    stand_in: StandIn

    def run(self, *arguments: str, **variables: str) -> Ended:
        """Run the lane `real` of the copy, with the stand-in's key unless told otherwise."""
        paths = {"PYTHONPATH": str(self.project.root), KEY: KEY_VALUE}
        process = self.project.start("run", "real", *arguments, **{**paths, **variables})
        try:
            stdout, stderr = process.communicate(timeout=RUN_TIMEOUT_S)
        finally:
            process.kill()
        return Ended(process.returncode, stdout, stderr)

    @property
    def table(self) -> Path:
        """The provider table of the copy."""
        return self.project.root / "lanes" / "providers.toml"

    def providers(self) -> tuple[Provider, ...]:
        """The providers of that table."""
        return load_providers(self.table)

    @property
    def board(self) -> dict[str, Any]:
        """The board that the last run left."""
        found: dict[str, Any] = json.loads((self.project.root / "reports/out/board.json").read_text("utf-8"))
        return found

    def cell(self, claim: str, column: str = "real:stand-in") -> dict[str, Any]:
        """One cell of that board."""
        row = next(each for each in self.board["claims"] if each["id"] == claim)
        found: dict[str, Any] = row["cells"][column]
        return found


def copy_project(root: Path, authority: Authority, port: int) -> Project:
    """Copy the packages, bytecode too, and put the table and the authority of a stand-in in the place of our own."""
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, root / package, ignore=NOT_COPIED)
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    models = "\n".join(
        f"[stand-in.models.{each}]" + ("" if each == "m-no-price" else "\nin = 1.0\ncached = 0.1\nout = 2.0")
        for each in MODELS
    )
    (root / "lanes" / "providers.toml").write_text(TABLE.format(port=port, models=models), "utf-8")
    (root / "lanes" / "authority.pem").write_bytes(authority.certificate.read_bytes())
    shutil.copytree(REPOSITORY / "lanes" / "real", root / "lanes" / "real", ignore=shutil.ignore_patterns("local*"))
    return Project(root)


def open_stand_in(folder: Path) -> StandIn:
    """A stand-in with an authority of its own."""
    return StandIn(make_authority(folder, "stand-in"))


def _plan(task: str, asked: list[str]) -> list[tuple[str, Mapping[str, str]]]:
    """The tool calls by which a good model does a task of the real suite."""
    plan: list[tuple[str, Mapping[str, str]]] = []
    words = [found[1] for each in asked if (found := re.search(r"single word (\w+) to the end of notes.txt", each))]
    if "check.py" in task:
        plan.append(("write_file", {"path": "calc.py", "content": "def add(a, b):\n    return a + b\n"}))
    elif "to the end of notes.txt" in task:
        plan.append(("shell", {"command": f"printf '{words[-1]}\\n' >> notes.txt"}))
    elif "first ask you to add" in task:
        plan.append(("write_file", {"path": "first.txt", "content": f"{words[0]}\n"}))
    elif "note.txt" in task:
        plan.append(("read_file", {"path": "note.txt"}))
        plan.append(("write_file", {"path": "answer.txt", "content": "42\n"}))
    if "token.txt" in task:
        plan.append(("read_file", {"path": "token.txt"}))
    return plan


def _as_chat(messages: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Messages of the one dialect as the other has them: what a tool gave is said by the tool."""
    found: list[Mapping[str, Any]] = []
    for each in messages:
        blocks = each["content"] if isinstance(each["content"], list) else [{"type": "text", "text": each["content"]}]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        found += [{"role": "tool", "content": block["content"]} for block in results]
        found += [] if results else [{"role": each["role"], "content": blocks}]
    return found


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content or "")
