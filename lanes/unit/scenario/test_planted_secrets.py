"""Secrets planted in address, headers, body and answer of a recorded exchange: found in nothing that was ever written.

A journey is recorded by the real command against a server on this machine, and its cassette played by the replay lane.
Every file of both runs is kept and searched, with all that they printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lanes.cassette import load_cassette
from lanes.fragments import joined_texts
from lanes.redaction import KEY_PATTERNS, forms_of
from lanes.unit.lanes.conftest import Ended, Project

KNOWN = "canary-known/0417+value"  # what a variable of the environment holds
SHAPED = "sk-" + "proj-" + "c4n4ry" * 5  # what nobody knows, and what has the shape of a key
OTHER = "gh" + "p_" + "c4n4ry" * 6
TOLD = "The code is redacted, the key redacted or redacted."  # what is left of what the model said
STORY = "small-read-file"
PATIENCE_S = 250  # for one command; a busy machine needs long
pytestmark = pytest.mark.timeout(2 * PATIENCE_S)
CASSETTE = f"cassettes/openai_chat/{STORY}.yaml"
VARIABLES = {"OPENAI_API_KEY": KNOWN, "ACME_SECRET": KNOWN}
PLAYED = """
import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lanes.playing import Target, drive_story, workspace_places
from lanes.scenario import find_scenario
from lanes.unit.scenario.careless_recording import Careless


@pytest.mark.parametrize("task", ["redacted", "something else"], ids=["as-recorded", "another"])
def test_played(channels, tmp_path, task):
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir(), sessions.mkdir()
    story = find_scenario("small-read-file")
    runs = tuple(replace(run, task=f"{run.task} My key is {task}.") for run in story.runs)
    told = replace(story, workspace={"code.txt": "The code is redacted.\\n"}, runs=runs, world=())
    player = channels.cassette(Path.cwd() / "cassettes/openai_chat/small-read-file.yaml")
    target = Target("http://127.0.0.1:1/v1", "openai", "m-small", None)
    around = Careless(player, "redacted", "redacted")
    asyncio.run(drive_story(told, target, {"OPENAI_API_KEY": "none"}, workspace, sessions, around))
    assert player.verify() == ()
"""


def _chunk(number: int, delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "model": "m-small",
        "access_token": f"t-{OTHER}",
    }
    return f"data: {json.dumps({**made, 'choices': [choice]})}\n\n".encode()


def _answer(number: int) -> bytes:
    """First a tool call, then words; both hold secrets, a few letters of them at a time."""
    said = f"The code is {KNOWN}, the key {SHAPED} or {OTHER}."
    pieces = [said[at : at + 3] for at in range(0, len(said), 3)]
    if number == 1:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": ""}}
        arguments = json.dumps({"path": "code.txt"})
        parts = [{"function": {"arguments": arguments[at : at + 3]}} for at in range(0, len(arguments), 3)]
        chunks = [_chunk(number, {"reasoning_content": piece}) for piece in pieces]
        chunks += [
            _chunk(number, {"tool_calls": [call]}),
            *(_chunk(number, {"tool_calls": [{"index": 0, **each}]}) for each in parts),
        ]
        chunks.append(_chunk(number, {}, "tool_calls"))
    else:
        chunks = [*(_chunk(number, {"content": piece}) for piece in pieces), _chunk(number, {}, "stop")]
    return b"".join([*chunks, b"data: [DONE]\n\n"])


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = _answer(1 + any(each["role"] == "tool" for each in body["messages"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("set-cookie", f"sid={OTHER}; HttpOnly")
        self.send_header("x-request-token", KNOWN)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A service that tells secrets."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True, slots=True)
class Written:
    """One command and the folder in which everything is that was ever written by it."""

    project: Project
    ended: Ended

    def texts(self) -> dict[str, str]:
        """Every file but those of the story's own workspace, where one was planted, and what was printed."""
        root = self.project.root
        files = [path for path in root.rglob("*") if path.is_file() and "workspace" not in path.parts]
        found = {str(path.relative_to(root)): path.read_bytes().decode("utf-8", "replace") for path in files}
        return {**found, "stdout": self.ended.stdout, "stderr": self.ended.stderr}

    def logs(self) -> list[Path]:
        """The session logs of the programs that it ran."""
        return sorted(self.project.root.rglob("session.jsonl"))


def record(project: Project, base_url: str, *, fails: bool = False) -> Written:
    """Record the story with everything planted, and keep what is written."""
    temporary = project.root / "temporary"
    temporary.mkdir(exist_ok=True)
    program = Path(__file__).with_name("careless_recording.py")
    done = subprocess.run(
        [sys.executable, str(program), "record", STORY, "--target", base_url],
        cwd=project.root,
        env={**project.environ(), **VARIABLES, "TMPDIR": str(temporary)},
        input=json.dumps({"known": KNOWN, "shaped": SHAPED, "fails": fails}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Written(project, Ended(done.returncode, done.stdout, done.stderr))


def play(written: Written) -> Written:
    """Play what was recorded in the replay lane, and print the board."""
    project = written.project
    project.write("lanes/replay/test_played.py", PLAYED)
    kept = {"TMPDIR": str(project.root / "temporary"), **VARIABLES}
    ran, told = (_run(project, *arguments, **kept) for arguments in (("run", "replay"), ("report",)))
    return Written(project, Ended(ran.exit_code, ran.stdout + told.stdout, ran.stderr + told.stderr))


def _run(project: Project, *arguments: str, **variables: str) -> Ended:
    process = project.start(*arguments, **variables)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    return Ended(process.returncode, stdout, stderr)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, base_url: str) -> Written:
    return record(Project(tmp_path_factory.mktemp("planted")), base_url)


@pytest.fixture(scope="module")
def played(recorded: Written) -> Written:
    return play(recorded)


def leaks(texts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Where a secret stands: file, which one, and in which form."""
    forms = [(name, kind, form) for name in (KNOWN, SHAPED, OTHER) for kind, form in forms_of(name).items()]
    return [(path, name, kind) for path, text in sorted(texts.items()) for name, kind, form in forms if form in text]


def test_case_B36_no_file_of_a_recording_and_nothing_it_prints_holds_a_planted_secret(recorded: Written) -> None:
    texts = recorded.texts()

    assert recorded.ended.stdout.startswith(f"{CASSETTE}: recorded and played back")
    assert (recorded.ended.exit_code, CASSETTE in texts, len(recorded.logs())) == (0, True, 2)
    assert leaks(texts) == []


def test_case_B36_nor_do_the_fragments_of_its_streams_when_they_are_put_together(recorded: Written) -> None:
    bodies = [each.body for each in load_cassette(recorded.project.root / CASSETTE).interactions]
    said = {f"answer {number}": "\n".join(joined_texts(body)) for number, body in enumerate(bodies, start=1)}

    assert [text.count(TOLD) for text in said.values()] == [1, 1]
    assert [TOLD in path.read_text("utf-8") for path in recorded.logs()] == [True, True]
    assert leaks(said) == []


def test_case_B36_nor_do_the_bundle_and_the_board_of_its_replay_in_any_form(played: Written) -> None:
    texts = played.texts()

    board = {path.rpartition("/")[2] for path in texts if path.startswith("reports/out/")}
    assert board >= {"board.txt", "board.md", "board.json", "board.html", "junit-replay.xml", "ctrf-replay.json"}
    assert board >= {"records.jsonl", "header.json", "trailer.json"}
    records = played.project.records("replay")
    assert {name: record.verdict for name, record in records.items()} == {
        "test_played[as-recorded]": "passed",
        "test_played[another]": "failed",
    }
    assert leaks(texts) == []


def test_case_B36_a_recording_that_fails_says_why_without_them_and_leaves_the_old_one(
    tmp_path: Path, base_url: str
) -> None:
    project = Project(tmp_path)
    project.write(CASSETTE, "old")

    failed = record(project, base_url, fails=True)

    assert failed.ended.exit_code == 1
    assert "nothing was stored" in failed.ended.stderr
    assert failed.texts()[CASSETTE] == "old"
    assert leaks(failed.texts()) == []


def test_case_B36_the_search_finds_each_of_them_where_it_stands() -> None:
    written = {"a": f"x {KNOWN}", "b": SHAPED, "c": OTHER, "d": "canary"}

    assert {(path, kind) for path, _, kind in leaks(written)} >= {(path, "as it is") for path in "abc"}
    assert sum(pattern.search(each) is not None for each in (SHAPED, OTHER) for pattern in KEY_PATTERNS.values()) == 2
