"""The program in a child process with a recording as its model: `python -m lanes.replay_child SPECIFICATION`.

Room: only the channel of recordings starts it. It calls the program's own entry with a player in place of the network,
and leaves behind what the player saw; a note carries the token of the item it was started for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import main as harness_main
from lanes.normalize import Place
from lanes.record import Json
from lanes.session_log import SessionLogPlayer
from lanes.spool import read_specification, write_document
from lanes.witness import append_notes, played_notes

_FIELDS = ("argv", "begun", "folder", "notes", "places", "token", "verdict")


def main(arguments: Sequence[str]) -> int:
    """Run the program as the specification says and return its exit code."""
    specification = read_specification(arguments, "lanes.replay_child", _FIELDS)
    places = [Place(spelling, token) for spelling, token in specification["places"]]
    player = SessionLogPlayer(Path(specification["folder"]), places=places, begun=specification["begun"])
    try:
        return harness_main(specification["argv"], transport=player)
    finally:
        notes = played_notes(player.answers, "session-log")
        append_notes(Path(specification["notes"]), notes, specification["token"])
        document: dict[str, Json] = {"cursors": player.cursors, "misses": player.misses, "problems": player.verify()}
        write_document(Path(specification["verdict"]), {**document, "facts": player.facts()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
