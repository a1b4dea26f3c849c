"""Pinned stories: what the whole program sends, logs and prints for given answers, as it was accepted.

Room: the snapshot suite and `lanes accept` may come in. The program is started as a child that has its model inside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lanes import transcripts
from lanes.expected import Expected
from lanes.normalize import Identities, Json, Place, normalize_json, normalize_log, normalize_text, places_of
from lanes.pinned_headers import (
    Header,
    check_headers,
    classes_of,
    pin_names,
    read_classes,
    take_headers,
)
from lanes.policy import DUMMY_KEY
from lanes.program import Program, check_story, run_command
from lanes.scenario import Scenario, write_workspace
from lanes.story_log import check_log, read_rows, unpack_rows
from lanes.world import check_world

PINNED = ("fix-test", "parallel-tools")
FILES = ("requests.jsonl", "session.jsonl", "stdout.txt")
SEED = "pinned"
REQUEST_FIELDS = ("method", "path", "body")
REQUEST_HEADERS = ("accept", "authorization", "content-type")  # the others name versions of the HTTP library


class ScriptedProgram(Protocol):
    """The program as a child process with its answers inside; the lane's channel and `lanes accept` have one."""

    @property
    def base_url(self) -> str:
        """What the program is told as the model's address."""
        ...

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs the program with these arguments."""
        ...

    @property
    def requests(self) -> Sequence[Mapping[str, object]]:
        """The requests it made, once it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Played:
    """What came of playing a pinned story, normalised; problems says where it is not as the story tells."""

    name: str
    requests: tuple[Json, ...]
    log: tuple[Json, ...]
    stdout: str
    problems: tuple[str, ...]

    def check(self, expected: Expected) -> None:
        """Compare all of it with what is stored, or accept it.

        Raises: MismatchError from the first file that differs.
        """
        classes = classes_of(self.name, self.requests, read_classes(expected.root))
        headers: list[Header] = []
        requests = [take_headers(request, classes, headers) for request in self.requests]
        log = [take_headers(row, classes, headers) for row in self.log]
        check_headers(self.name, headers, expected)
        expected.check_events(f"{self.name}/requests.jsonl", requests)
        expected.check_events(f"{self.name}/session.jsonl", log)
        expected.check_text(f"{self.name}/stdout.txt", self.stdout)


def expected_names() -> list[str]:
    """Every file that a pinned story, a transcript or a class of headers owns."""
    stories = [f"{name}/{file}" for name in PINNED for file in FILES]
    return [*stories, *transcripts.expected_names(), *pin_names()]


def play_pinned(
    scenario: Scenario, folder: Path, open_child: Callable[[Mapping[str, Json]], ScriptedProgram]
) -> Played:
    """Play the first run of a story with its answers given inside the program, and take down what it did.

    Shape: folder is empty and belongs to this story alone.
    """
    workspace, sessions = folder / "workspace", folder / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    write_workspace(scenario, workspace)
    child = open_child(scenario.script)
    program = Program(workspace, sessions, child.base_url, environ={"HARNESS_SEED": SEED, "OPENAI_API_KEY": DUMMY_KEY})
    run = scenario.runs[0]
    done = run_command(child.command(program.arguments(run)), program.environment(), workspace)
    problems = check_story(scenario, [done]) + check_world(scenario.world, workspace)
    rows = read_rows(program.log_file())
    problems += check_log(scenario.log, rows)
    places = _places(workspace, sessions)
    identities = Identities()
    log = normalize_log(unpack_rows(rows), places, identities)
    return Played(
        name=scenario.name,
        requests=tuple(normalize_json(_request(entry), places, identities) for entry in child.requests),
        log=tuple(log),
        stdout=normalize_text(done.stdout, places, identities),
        problems=tuple(problems),
    )


def _request(noted: Mapping[str, object]) -> Json:
    """A request as it went over the wire, without what depends on the HTTP library's version."""
    entry: dict[str, Json] = json.loads(json.dumps(dict(noted)))
    headers = entry.get("headers")
    kept = {name: headers[name] for name in REQUEST_HEADERS if name in headers} if isinstance(headers, dict) else {}
    return {**{name: entry.get(name) for name in REQUEST_FIELDS}, "headers": kept}


def _places(workspace: Path, sessions: Path) -> tuple[Place, ...]:
    return places_of(
        {
            "<workspace>": sorted({str(workspace), str(workspace.resolve())}),
            "<sessions>": sorted({str(sessions), str(sessions.resolve())}),
        }
    )
