"""Accepting: what the program now prints, sends and logs becomes what is expected of it.

Room: `lanes accept` comes in. A person asks for it and reads the difference; no lane and no test gets here.
"""

from __future__ import annotations

import difflib
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lanes import transcripts
from lanes.channels import Channels
from lanes.errors import ExpectedError, UsageError
from lanes.expected import MODE_VARIABLE, Expected, mode_of, orphans
from lanes.normalize import Json
from lanes.observation import Observation
from lanes.pinned import PINNED, Played, expected_names, play_pinned
from lanes.pinned_headers import EXPECTED_FOLDER
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

    Raises: ExpectedError in CI, when a story does not end as it tells, and when the producers of one transcript do not
    agree or one of them cannot be played; nothing is stored then.
    """
    mode_of({**environ, MODE_VARIABLE: "accept"})
    known = (*PINNED, *transcripts.STORIES)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"story {name!r} is not pinned{hint}", expected=f"one of {', '.join(known)}")
    wanted = names or known
    played = [_play(name) for name in wanted if name in PINNED]
    told = [_play_transcript(name) for name in wanted if name not in PINNED]
    expected = Expected(folder, "accept")
    for story in played:
        story.check(expected)
    for transcript, by_producer in told:
        transcripts.check_all(transcript, by_producer, expected)
    return tuple(expected.changed), tuple(orphans(folder, expected_names()))


def _play(name: str) -> Played:
    with _channels(name) as (channels, folder):
        played = play_pinned(find_scenario(name), folder, channels.scripted_child)
        if played.problems:
            raise ExpectedError(
                "\n".join(played.problems), where=name, fix="mend the program first; nothing was stored"
            )
        return played


def _play_transcript(name: str) -> tuple[transcripts.Story, dict[str, list[Json]]]:
    """A transcript as each of its producers gives it, and those that agree checked against each other."""
    story = transcripts.load_story(name)
    found: dict[str, list[Json]] = {}
    for producer in story.producers:
        if transcripts.missing_program(producer) is None:
            with _channels(name) as (channels, folder):
                found[producer] = transcripts.play(story, producer, folder, channels.scripted_child)
    transcripts.check_producers(story, found)
    return story, found


@contextmanager
def _channels(name: str) -> Iterator[tuple[Channels, Path]]:
    """The channels of one story, and an empty folder for it; at the end its script has to be used up."""
    with tempfile.TemporaryDirectory(prefix="accept-") as place:
        spool, folder = Path(place) / "spool", Path(place) / "story"
        spool.mkdir()
        folder.mkdir()
        observation = Observation(f"lanes accept {name}", spool=spool, secret=secrets.token_hex(16))
        channels = Channels(LANES["snapshot"], observation, folder)
        yield channels, folder
        channels.close()
