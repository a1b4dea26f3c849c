"""Keeping session logs: a story's own script through the real program, its logs stored as one recording.

Room: the recorder and the suites may come in. No model speaks here, and the origin of every recording says so.

An override file is written by hand and stays as it is; a recording that needs one is stored only once it is right.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from lanes.errors import CassetteError
from lanes.normalize import Json, Place, replace_places
from lanes.overrides import OVERRIDE_NAME
from lanes.playing import workspace_places
from lanes.policy import DUMMY_KEY
from lanes.program import Finished, Program, check_story
from lanes.recorded_log import LOG_NAME, ORIGIN_NAME, child_name, load_recorded_session
from lanes.recording_lock import held_for_recording
from lanes.redaction import Redactor
from lanes.scenario import Scenario, write_workspace
from lanes.story_log import check_log, read_rows
from lanes.world import check_world
from mock_provider.server import ServerThread

SEED = "recorded"
NOBODY = "http://none.invalid"  # stands for the address of the mock provider; it never resolves (RFC 6761)
HOLD_GATE = "hold"  # the gate of a script behind which an interrupted answer waits


def record_session_log(scenario: Scenario, folder: Path) -> None:
    """Play the story's own script through the real program over loopback, and keep its session logs.

    Raises: CassetteError when the story does not hold, or its logs cannot be replayed; the old recording then stays.
    """
    with (
        held_for_recording(folder),
        tempfile.TemporaryDirectory(prefix="story-") as place,
        ServerThread(scenario.script) as mock,
    ):
        workspace, sessions = Path(place) / "workspace", Path(place) / "sessions"
        workspace.mkdir()
        sessions.mkdir()
        write_workspace(scenario, workspace)
        program = Program(
            workspace,
            sessions,
            mock.base_url("openai_chat"),
            environ={"HARNESS_SEED": SEED, "OPENAI_API_KEY": DUMMY_KEY},
        )
        finished: list[Finished] = []
        for run in scenario.runs:
            finished.append(program.run(run))
            if run.interrupt_after is not None:
                mock.gate(HOLD_GATE).open()
        problems = check_story(scenario, finished) + check_world(scenario.world, workspace)
        problems += check_log(scenario.log, read_rows(program.log_file()))
        verdict = mock.verify()
        problems += [] if verdict.ok else [str(verdict)]
        if problems:
            raise CassetteError(
                "the story does not hold, nothing was stored",
                where=scenario.name,
                expected="what the scenario says",
                fix="\n".join(problems),
                code="CASSETTE_REFUSED",
            )
        address = Place(mock.base_url("openai_chat").removesuffix("/v1"), NOBODY)
        places = (*workspace_places(workspace), address)
        logs = [replace_places(path.read_text(encoding="utf-8"), places) for path in program.log_files()]
        _check_no_secret(scenario, logs)
        _store(scenario, folder, logs)


def _check_no_secret(scenario: Scenario, logs: list[str]) -> None:
    if found := Redactor().findings("\n".join(logs)):
        raise CassetteError(
            f"the log of the story holds a secret: {', '.join(found)}",
            where=scenario.name,
            expected="no secret in any form",
            fix="take it out of the story; nothing was stored",
            code="CASSETTE_SECRET",
        )


def _store(scenario: Scenario, folder: Path, logs: list[str]) -> None:
    """Put the whole recording in place of the old one, once it was read back; left-over children go with the old."""
    names = [LOG_NAME, *(child_name(number) for number in range(1, len(logs)))]
    texts = dict(zip(names, logs, strict=True)) | {ORIGIN_NAME: _origin(scenario)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
        fresh = Path(place) / folder.name
        fresh.mkdir()
        for name, text in texts.items():
            (fresh / name).write_bytes(text.encode("utf-8"))
        if (folder / OVERRIDE_NAME).exists():
            shutil.copyfile(folder / OVERRIDE_NAME, fresh / OVERRIDE_NAME)
        load_recorded_session(fresh)
        if folder.exists():
            folder.rename(Path(place) / "before")
        fresh.rename(folder)


def _origin(scenario: Scenario) -> str:
    origin: dict[str, Json] = {
        "class": "scripted",
        "story": scenario.name,
        "model": str(scenario.script.get("model")),
        "recorder": "lanes.recorder/1",
        "recorded_at": None,
        "note": "no model spoke: the answers are the story's own script, played by the mock provider",
    }
    return json.dumps(origin, indent=1) + "\n"
