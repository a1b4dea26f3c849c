"""Pinned transcripts: what clients and the program say to each other for given answers, frame by frame, as accepted.

Room: the snapshot suite and `lanes accept` may come in. The program is started as a child that has its model inside.
The transcript of the SDK wire has two producers, our client in Python and in Node: one expected file, and both must
give it. Those of the Agent Client Protocol are told by stories of frames.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, cast

from lanes.errors import ExpectedError, ScenarioError
from lanes.expected import Expected, diff_events
from lanes.normalize import Identities, Json, normalize_log, places_of
from lanes.pinned_headers import Header, check_headers, read_classes, take_headers
from lanes.policy import DUMMY_KEY

SUITE = Path(__file__).parent / "snapshot" / "transcripts"
STORIES = tuple(sorted(path.stem for path in (SUITE / "stories").glob("*.json")))
PRODUCERS: Mapping[str, str] = {"python": "drive_sdk.py", "node": "drive_sdk.mjs"}
FRAMES = "frames"  # the producer of a story that is told frame by frame
LIMIT_S = 60
SEED = "pinned"
MODEL, PROVIDER = "gpt-4.1-mini", "openai"
OPENING: tuple[Mapping[str, Any], ...] = (
    {"ask": ["initialize", {"protocolVersion": 1, "clientCapabilities": {}}]},
    {"wait": {"answer": 1}},
    {"ask": ["session/new", {"cwd": "<workspace>", "mcpServers": []}]},
    {"wait": {"answer": 2}},
)
PICTURE = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a GIF of one pixel


class ScriptedProgram(Protocol):
    """The program as a child process with its answers inside."""

    @property
    def base_url(self) -> str:
        """What the program is told as the model's address."""
        ...

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs the program with these arguments."""
        ...


OpenChild = Callable[[Mapping[str, Json]], ScriptedProgram]


@dataclass(frozen=True, slots=True)
class Story:
    """One transcript: the model's answers, the program's arguments, and who says what once a session is open.

    Shape: without steps it is the clients that drive.
    """

    name: str
    script: Mapping[str, Json]
    arguments: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]

    @property
    def producers(self) -> tuple[str, ...]:
        """Who can play it."""
        return (FRAMES,) if self.steps else tuple(PRODUCERS)

    @property
    def file(self) -> str:
        """Its expected file, below the folder of expected output."""
        return f"{self.name}/transcript.jsonl"


def load_story(name: str) -> Story:
    """Read a story of `snapshot/transcripts/stories`."""
    document = json.loads((SUITE / "stories" / f"{name}.json").read_text("utf-8"))
    return Story(name, document["script"], tuple(document["arguments"]), tuple(document.get("steps", ())))


def expected_names() -> list[str]:
    """Every file that a transcript owns."""
    return [load_story(name).file for name in STORIES]


def missing_program(producer: str) -> str | None:
    """What a producer runs on that is not here."""
    return "node" if producer == "node" and shutil.which("node") is None else None


def play(story: Story, producer: str, folder: Path, open_child: OpenChild) -> list[Json]:
    """Play a story in an empty folder of its own and give its normalised transcript.

    Raises: ScenarioError when it does not come to its end.
    """
    place = _Place(folder, open_child(story.script))
    place.workspace.mkdir()
    for name in (step["wait"]["tool"] for step in story.steps if "tool" in step.get("wait", {})):
        os.mkfifo(place.workspace / name)
    return _play_frames(story, place) if producer == FRAMES else _play_client(story, producer, place)


def check_one(story: Story, producer: str, transcript: Sequence[Json], expected: Expected) -> None:
    """Compare what one producer gave with what is stored.

    Raises: MismatchError; ExpectedError when one producer of several were to be accepted alone.
    """
    if expected.mode == "accept" and len(story.producers) > 1:
        raise ExpectedError(
            f"{producer} alone is not accepted",
            where=story.file,
            expected=f"the same transcript from {' and '.join(story.producers)}",
            fix=f"tox -e accept -- {story.name} plays them all",
        )
    _check_events(story, transcript, expected)


def check_producers(story: Story, transcripts: Mapping[str, Sequence[Json]]) -> None:
    """Check that all producers of a story gave a transcript, and the same one.

    Raises: ExpectedError.
    """
    absent = [producer for producer in story.producers if producer not in transcripts]
    if absent:
        raise ExpectedError(
            f"nothing came from {', '.join(absent)}",
            where=story.file,
            expected=f"the same transcript from {' and '.join(story.producers)}",
            fix="accept where both are installed; nothing was stored",
        )
    first, *others = story.producers
    for other in others:
        differences = diff_events(transcripts[first], transcripts[other])
        if differences:
            raise ExpectedError(
                f"{first} and {other} give different transcripts\n" + "\n".join(differences),
                where=story.file,
                fix="mend the client that is wrong; nothing was stored",
            )


def check_all(story: Story, transcripts: Mapping[str, Sequence[Json]], expected: Expected) -> None:
    """Compare what all producers gave with each other, and then with what is stored, or accept it.

    Raises: ExpectedError when a producer is missing, or they differ; MismatchError.
    """
    check_producers(story, transcripts)
    _check_events(story, transcripts[story.producers[0]], expected)


def _check_events(story: Story, transcript: Sequence[Json], expected: Expected) -> None:
    """Compare a transcript, its request headers against their pins."""
    headers: list[Header] = []
    classes = read_classes(expected.root)
    events = [take_headers(event, classes, headers) for event in transcript]
    check_headers(story.name, headers, expected)
    expected.check_events(story.file, events)


@dataclass(slots=True)
class _Place:
    folder: Path
    child: ScriptedProgram
    identities: Identities = field(default_factory=Identities)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    def environment(self) -> dict[str, str]:
        own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": self.child.base_url, "HARNESS_SEED": SEED}
        return {**os.environ, **own, "HARNESS_SESSION_ROOT": str(self.sessions), "HARNESS_RETRY_BASE_MS": "0"}

    def command(self, arguments: Sequence[str]) -> list[str]:
        return self.child.command(list(arguments))

    def normalized(self, events: Sequence[Json]) -> list[Json]:
        spellings = {
            token: sorted({str(path), str(path.resolve())})
            for token, path in (("<workspace>", self.workspace), ("<sessions>", self.sessions))
        }
        return normalize_log(events, places_of(spellings), self.identities)


def _play_client(story: Story, producer: str, place: _Place) -> list[Json]:
    """Let a client drive the program: its requests with their answers, what it was told, what came of its runs.

    An answer may overtake a notification and the other way round, so the two are kept apart.
    """
    record, task = place.folder / "record", place.folder / "task.json"
    command = [sys.executable, "-m", "lanes.tap", str(record), *place.command(story.arguments)]
    document = {"command": command, "workspace": str(place.workspace), "provider": PROVIDER, "model": MODEL}
    task.write_text(json.dumps(document), "utf-8")
    runner = "node" if producer == "node" else sys.executable
    done = subprocess.run(
        [runner, str(SUITE / PRODUCERS[producer]), str(task)],
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise ScenarioError(f"its {producer} client failed: {done.stderr[-1500:]}", where=story.name)
    sent, received = (_frames(Path(f"{record}.{way}")) for way in ("in", "out"))
    answers = {frame["id"]: frame.get("result", frame.get("error")) for frame in received if "method" not in frame}
    events: list[Json] = [
        {"ask": frame["method"], "params": frame.get("params", {}), "answer": answers.get(frame["id"])}
        for frame in sent
    ]
    events += [{"told": frame["method"], "params": frame["params"]} for frame in received if "method" in frame]
    events += [{"result": result} for result in json.loads(done.stdout)]
    events.append({"exit": int(Path(f"{record}.exit").read_text("utf-8"))})
    return place.normalized(events)


def _frames(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _play_frames(story: Story, place: _Place) -> list[Json]:
    """Say the story's frames and take down all that goes over the wire, in its order."""
    errors = place.folder / "stderr.txt"
    with (
        errors.open("wb") as errors_file,
        subprocess.Popen(
            place.command([*story.arguments, "--provider", PROVIDER, "--model", MODEL]),
            env=place.environment(),
            cwd=place.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors_file,
        ) as server,
    ):
        talk = _Talk(server, place)
        try:
            for step in (*OPENING, *story.steps):
                talk.take(step)
            talk.end()
        except BaseException:
            server.kill()
            raise
        server.wait(LIMIT_S)
    talk.events.append({"exit": server.returncode, "stderr": errors.read_text("utf-8")})
    return place.normalized(talk.events)


class _Talk:
    """One conversation in frames: what was said so far, by whom."""

    def __init__(self, server: subprocess.Popen[bytes], place: _Place) -> None:
        self._input = cast("IO[bytes]", server.stdin)
        self._output = cast("IO[bytes]", server.stdout)
        self._place = place
        self._asked = 0
        self._read = 0
        self._words = {"<workspace>": str(place.workspace), "<picture>": PICTURE}
        self._question: Json = None
        self._frames: list[dict[str, Any]] = []
        self.events: list[Json] = []

    def take(self, step: Mapping[str, Any]) -> None:
        """Do one step: ask, tell, reply, several of them in one write, or wait for a frame."""
        if "wait" in step:
            self._wait(step["wait"])
            return
        frames = [self._frame(part) for part in step.get("together", [step])]
        self.events += [{"client": frame} for frame in frames]
        self._input.write(b"".join(json.dumps(frame).encode("ascii") + b"\n" for frame in frames))
        self._input.flush()

    def end(self) -> None:
        """Close the client's end and hear what is said until the server's end."""
        self._input.close()
        while self._next() is not None:
            continue

    def _frame(self, part: Mapping[str, Any]) -> dict[str, Json]:
        if "reply" in part:
            return {"jsonrpc": "2.0", "id": self._question, "result": part["reply"]}
        method, params = part["ask"] if "ask" in part else part["tell"]
        frame = {"jsonrpc": "2.0", "method": method, "params": self._filled(params)}
        if "ask" in part:
            self._asked += 1
            frame["id"] = self._asked
        return frame

    def _filled(self, value: Any) -> Any:
        text = json.dumps(value)
        for word, meaning in self._words.items():
            text = text.replace(word, json.dumps(meaning)[1:-1])
        return json.loads(text)

    def _wait(self, what: Mapping[str, Any]) -> None:
        """Read on until the frame came: `answer: n` of the n-th request, `update: kind`, or a request of a `method`.

        `tool: name` waits until a running tool has written to that pipe in the workspace instead.
        """
        if "tool" in what:
            self._wait_for_tool(self._place.workspace / what["tool"])
            return
        if any(self._fits(frame, what) for frame in self._heard("answer" not in what)):
            return
        while (frame := self._next()) is not None:
            if self._fits(frame, what):
                return
        raise ScenarioError(f"the program ended before {what}", where="transcript")

    def _wait_for_tool(self, pipe: Path) -> None:
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not select.select([end], [], [], LIMIT_S)[0]:
                raise ScenarioError("no tool wrote to its pipe", where=pipe.name)
        finally:
            os.close(end)

    def _heard(self, is_new: bool) -> list[dict[str, Any]]:
        """The server's frames, all of them or those since the last wait for one that is no answer."""
        return self._frames[self._read if is_new else 0 :]

    def _fits(self, frame: dict[str, Any], what: Mapping[str, Any]) -> bool:
        if "answer" in what:
            return "method" not in frame and frame.get("id") == what["answer"]
        if "update" in what:
            update = frame.get("params", {}).get("update", {})
            has_come = frame.get("method") == "session/update" and update.get("sessionUpdate") == what["update"]
        else:
            has_come = frame.get("method") == what["method"]
            self._question = frame.get("id") if has_come else self._question
        if has_come:
            self._read = self._frames.index(frame) + 1
        return has_come

    def _next(self) -> dict[str, Any] | None:
        line = self._output.readline()
        if not line:
            return None
        frame: dict[str, Any] = json.loads(line)
        session = frame.get("result", {}).get("sessionId") if isinstance(frame.get("result"), dict) else None
        if isinstance(session, str):
            self._words["<session>"] = session
            self._place.identities.token("session", session)
        about = frame["result"].get("agentInfo") if isinstance(frame.get("result"), dict) else None
        if isinstance(about, dict):
            about["version"] = "<version>"  # another one with each release
        self._frames.append(frame)
        self.events.append({"server": frame})
        return frame
