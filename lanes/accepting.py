"""The act of accepting: pinned stories are played, and what they now give becomes the expected output.

Room: the command line comes in. It writes tracked files, so it is no lane, and a person reads what it shows.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lanes.channels import Channels
from lanes.errors import ExpectedError, ScenarioError
from lanes.expected import Expected, accept_environment, orphans
from lanes.observation import Observation
from lanes.pinned import EXPECTED_FOLDER, PINNED, Played, expected_names, play_pinned
from lanes.policy import LANES
from lanes.scenario import find_scenario


def accept(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    write: Callable[[str], None],
    *,
    folder: Path = EXPECTED_FOLDER,
) -> None:
    """Run `lanes accept [STORY ...]`: play the pinned stories, store what they give, show every difference.

    Raises: ExpectedError in CI; ScenarioError for a story that is not pinned or does not hold.
    """
    accept_environment(environ)
    names = tuple(arguments) or PINNED
    unknown = sorted(set(names) - set(PINNED))
    if unknown:
        raise ScenarioError(
            f"{unknown[0]!r} is not pinned",
            where="lanes accept",
            expected=f"one of {', '.join(PINNED)}",
            fix="leave the name out to accept all of them",
        )
    played = [_play(name) for name in names]
    for story in played:
        if story.problems:
            raise ExpectedError(
                "the story does not hold, nothing was accepted",
                where=story.name,
                expected="what the scenario says",
                fix="\n".join(story.problems),
            )
    before = _texts(folder)
    store = Expected(folder, "accept")
    for story in played:
        story.check(store)
    for name in store.changed:
        old, new = before.get(name, ""), (folder / name).read_text(encoding="utf-8")
        lines = difflib.unified_diff(old.split("\n"), new.split("\n"), f"old/{name}", f"new/{name}", n=1, lineterm="")
        write("".join(f"{line}\n" for line in lines))
    for line in orphans(folder, expected_names()) if folder == EXPECTED_FOLDER else ():
        write(f"{line}\n")
    write(f"{len(store.changed)} of {len(names) * 3} expected files changed\n")


def _play(name: str) -> Played:
    with tempfile.TemporaryDirectory(prefix="accept-") as place:
        spool = Path(place) / "spool"
        story = Path(place) / "story"
        spool.mkdir()
        story.mkdir()
        observation = Observation(f"accept::{name}", spool=spool, secret="accepting is no lane")  # noqa: S106
        channels = Channels(LANES["snapshot"], observation, story)
        try:
            return play_pinned(find_scenario(name), story, channels.scripted_child)
        finally:
            channels.close()


def _texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }
