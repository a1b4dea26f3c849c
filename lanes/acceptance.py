"""Accepting: what the program now prints, sends and logs becomes what is expected of it.

Room: `lanes accept` comes in. A person asks for it and reads the difference; no lane and no test gets here.
"""

from __future__ import annotations

import difflib
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.channels import Channels
from lanes.errors import ExpectedError, UsageError
from lanes.expected import MODE_VARIABLE, Expected, mode_of, orphans
from lanes.observation import Observation
from lanes.pinned import EXPECTED_FOLDER, PINNED, Played, expected_names, play_pinned
from lanes.policy import LANES
from lanes.scenario import find_scenario

_OURS = EXPECTED_FOLDER.parents[2]


def check_place(root: Path) -> None:
    """Check that what would be written belongs to the project at root, and not to another copy of it.

    Raises: UsageError.
    """
    ours = root / EXPECTED_FOLDER.relative_to(_OURS)
    if ours.resolve() != EXPECTED_FOLDER.resolve():
        message = f"there is no {EXPECTED_FOLDER.relative_to(_OURS)} of this command here"
        raise UsageError(message, where="lanes accept", expected=f"to be started in {_OURS}", code="OTHER_COPY")


def accept_expected(
    names: Sequence[str], environ: Mapping[str, str], *, folder: Path = EXPECTED_FOLDER
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Play the pinned stories and store what they do; gives the files that changed, and those that belong to none.

    Raises: ExpectedError in CI, and when a story does not end as it tells; nothing is stored then.
    """
    mode_of({**environ, MODE_VARIABLE: "accept"})
    for name in names:
        if name not in PINNED:
            near = difflib.get_close_matches(name, PINNED, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"story {name!r} is not pinned{hint}", expected=f"one of {', '.join(PINNED)}")
    played = [_play(name) for name in names or PINNED]
    expected = Expected(folder, "accept")
    for story in played:
        story.check(expected)
    return tuple(expected.changed), tuple(orphans(folder, expected_names()))


def _play(name: str) -> Played:
    with tempfile.TemporaryDirectory(prefix="accept-") as place:
        spool, folder = Path(place) / "spool", Path(place) / "story"
        spool.mkdir()
        folder.mkdir()
        observation = Observation(f"lanes accept {name}", spool=spool, secret=secrets.token_hex(16))
        channels = Channels(LANES["snapshot"], observation, folder)
        played = play_pinned(find_scenario(name), folder, channels.scripted_child)
        if played.problems:
            raise ExpectedError(
                "\n".join(played.problems), where=name, fix="mend the program first; nothing was stored"
            )
        channels.close()
        return played
