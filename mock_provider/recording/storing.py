"""From what was seen to the files: cleaned, written beside, looked through, played back, and only then put in place.

Room: files; the command comes in.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mock_provider.dialects.table import BASES
from mock_provider.errors import RecordingError, UsageError
from mock_provider.recording.cassette import Facts, compose_cassettes
from mock_provider.recording.cleaning import Cleaner
from mock_provider.recording.decoding import read_turn
from mock_provider.recording.exchanges import Clean, Seen
from mock_provider.recording.playing_back import differences
from mock_provider.recording.scripting import compose_script, find_chains

SCRIPT_NAME = "script.yaml"
CASSETTE_NAME = "cassette.yaml"
_VARIABLES = tuple(variable for base in BASES for variable in base.variables)
_OWN_NAMES = re.compile(r"script\.yaml|cassette(-c\d+)?(-\d+)?\.yaml")  # what an earlier recording may have left


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording ready to be stored.

    Shape: files by name; lines say what it holds and what was left out; problems say why there is no script.
    """

    files: dict[str, str]
    lines: tuple[str, ...]
    problems: tuple[str, ...]


def check_folder(folder: Path, *, may_replace: bool) -> None:
    """See at once whether the files could be put there, by putting an empty folder beside. Raises: UsageError."""
    try:
        place = folder.resolve()
        is_there = place.exists()
        if is_there and not place.is_dir():
            raise UsageError("this is no folder", where=str(folder), fix="choose another name")
        held = sorted(path.name for path in place.iterdir()) if is_there else []
        if held and not may_replace:
            raise UsageError("the folder is not empty", where=str(folder), fix="choose another one, or add --replace")
        strange = [name for name in held if not _OWN_NAMES.fullmatch(name)]
        if strange:
            what = f"the folder holds something else than a recording: {', '.join(strange[:3])}"
            raise UsageError(what, where=str(folder), expected="nothing that would be lost", fix="choose another one")
        if not place.name:
            raise UsageError("this is the root of all folders", where=str(folder), fix="choose another one")
        standing = next(parent for parent in place.parents if parent.exists())
        _beside(place if standing == place.parent else standing / place.name).rmdir()
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads back to itself
        raise _unwritable(folder, error) from None


def _beside(place: Path) -> Path:
    """A new, empty folder where the files are put together."""
    beside = place.with_name(f".{place.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    return beside


def _unwritable(folder: Path, error: Exception) -> UsageError:
    what = f"the folder cannot be written: {getattr(error, 'strerror', None) or error}"
    return UsageError(what, where=str(folder), fix="check the path")


def compose_recording(
    seen: Sequence[Seen], facts: Facts, upstream: str, *, names: Sequence[str] = (), keeps_transient: bool = False
) -> Recording:
    """Make the files of a recording.

    Raises: RecordingError when there is nothing to keep, or a secret is left.
    """
    whole = [one for one in seen if one.is_whole and one.status]
    kept = [one for one in whole if keeps_transient or not one.is_transient]
    cleaner = Cleaner(names)
    for one in seen:  # also of those that are not kept: their secrets may stand in others
        cleaner.learn(one)
    cleaned = [(one, cleaner.clean(one, upstream)) for one in kept]
    texts = [clean for _, clean in cleaned if clean is not None]
    left_out = {
        "did not come to an end": len(seen) - len(whole),
        "may pass at another time (--keep-transient keeps it)": len(whole) - len(kept),
        "is no text": len(kept) - len(texts),
    }
    lines = [f"{_answers(len(texts))} recorded", *_left_out(left_out)]
    if not texts:
        raise _nothing(seen, left_out)
    files, problems, more = _compose(texts, facts)
    searched = [(name, cleaner.findings(text)) for name, text in files.items()]
    searched += [(f"answer {one.number}, in fragments", cleaner.findings_in(one)) for one in texts]
    for name, found in searched:
        if found:
            what = f"a secret is still in {name}: {'; '.join(found)}"
            fix = "name the header or field: --secret NAME; nothing was written"
            raise RecordingError(what, expected="no secret in any form", fix=fix, code="RECORDING_SECRET")
    return Recording(files, (*lines, *more), tuple(problems))


def _nothing(seen: Sequence[Seen], left_out: Mapping[str, int]) -> RecordingError:
    """Why there is nothing to keep, and what brings something."""
    if not seen:
        return RecordingError(
            "nothing was recorded: no request came in",
            expected="one request at least, to the address of this recording",
            fix="let the program take its base URL from the variable that the recording sets "
            f"({', '.join(_VARIABLES)}), or give it the address that the recording prints",
        )
    failures = dict.fromkeys(one.failure for one in seen if one.failure and not one.status)
    if all(not one.status for one in seen):
        requests = "1 request" if len(seen) == 1 else f"{len(seen)} requests"
        why = f" ({', '.join(failures)})" if failures else ""
        return RecordingError(
            f"nothing was recorded: {requests} came in, and none was answered by the provider{why}",
            expected="a provider that answers at the address behind --upstream",
            fix="check --upstream, and wait for the answer before the program ends",
        )
    cures = (
        "wait for the whole answer before the program ends",
        "add --keep-transient",
        "record again, answers that are text",
    )
    return RecordingError(
        f"nothing was recorded: {'; '.join(_left_out(left_out))}",
        expected="an answer, as text or sound frames, that came to its end",
        fix=", or ".join(cure for cure, count in zip(cures, left_out.values(), strict=True) if count),
    )


def _answers(count: int) -> str:
    return "1 answer" if count == 1 else f"{count} answers"


def _left_out(counts: Mapping[str, int]) -> list[str]:
    return [f"{_answers(count)} left out: {why}" for why, count in counts.items() if count]


def _compose(texts: Sequence[Clean], facts: Facts) -> tuple[dict[str, str], list[str], list[str]]:
    turns = [read_turn(one) for one in texts]
    chains = find_chains(turns)
    groups: list[tuple[str, list[Clean]]] = [(CASSETTE_NAME, list(texts))]
    if len(chains) > 1:  # a cassette is one conversation: those that went on side by side would mix their order
        belongs = {id(turn.exchange): number for number, chain in enumerate(chains, start=1) for turn in chain.turns}
        groups = [
            (f"cassette-c{number}.yaml", [one for one in texts if belongs.get(id(one), 1) == number])
            for number in range(1, len(chains) + 1)
        ]
    files: dict[str, str] = {}
    for name, group in groups:
        for part, text in enumerate(compose_cassettes(group, facts), start=1):
            files[name if part == 1 else name.replace(".yaml", f"-{part}.yaml")] = text
    asides = sum(not turn.needs_step for turn in turns)
    more = [f"{_answers(asides)} needs no step of the script"] if asides else []
    if asides == len(turns):
        return files, [], [*more, "there is no script"]
    problems: list[str] = []
    for as_they_came, verbatim in ((False, False), (True, False), (True, True)):
        script = compose_script(turns, name="recording", as_they_came=as_they_came, verbatim=verbatim)
        problems = differences(script, turns)
        if not problems:
            return {**files, SCRIPT_NAME: script}, [], more
    return files, problems, more


def store(recording: Recording, folder: Path, *, may_replace: bool = False) -> None:
    """Put all files in place at once: whoever looks sees all of them or none.

    Raises: UsageError when the folder cannot be written.
    """
    check_folder(folder, may_replace=may_replace)
    place = folder.resolve()
    beside, old = place.with_name(f".{place.name}.new"), place.with_name(f".{place.name}.old")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _beside(place)
        for name, text in recording.files.items():
            (beside / name).write_bytes(text.encode("utf-8"))
        shutil.rmtree(old, ignore_errors=True)
        if place.exists():
            place.replace(old)
        beside.replace(place)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
