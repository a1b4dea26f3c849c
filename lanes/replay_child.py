"""The program in a child process with a recording as its model: `python -m lanes.replay_child SPECIFICATION`.

Room: only the channel of recordings starts it. It calls the program's own entry with a player in place of the network,
and leaves behind what the player saw; a note carries the token of the item it was started for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.cli import main as harness_main
from lanes.errors import UsageError
from lanes.normalize import Place
from lanes.record import Json
from lanes.session_log import SessionLogPlayer
from lanes.spool import write_document
from lanes.witness import append_notes, played_notes

_FIELDS = ("argv", "begun", "folder", "notes", "places", "token", "verdict")


def main(arguments: Sequence[str]) -> int:
    """Run the program as the specification says and return its exit code."""
    specification = _load(arguments)
    places = [Place(spelling, token) for spelling, token in specification["places"]]
    player = SessionLogPlayer(Path(specification["folder"]), places=places, begun=specification["begun"])
    try:
        return harness_main(specification["argv"], transport=player)
    finally:
        notes = played_notes(player.answers, "session-log")
        append_notes(Path(specification["notes"]), notes, specification["token"])
        document: dict[str, Json] = {"cursors": player.cursors, "misses": player.misses, "problems": player.verify()}
        write_document(Path(specification["verdict"]), {**document, "facts": player.facts()})


def _load(arguments: Sequence[str]) -> dict[str, Any]:  # each field is handed to the room that checks it
    if len(arguments) != 1:
        raise UsageError("one specification is wanted", where="lanes.replay_child")
    document = json.loads(Path(arguments[0]).read_text("utf-8"))
    if not isinstance(document, dict) or sorted(document) != sorted(_FIELDS):
        raise UsageError("the specification has other fields", where="lanes.replay_child", expected=", ".join(_FIELDS))
    return document


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
