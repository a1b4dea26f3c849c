"""The recordings that are kept in the tree: when they were committed, and which of them a whole run never played.

Room: the runner comes in, before the tests and after them. A run of a part of the lane knows nothing of what is unused
and says so; only one that ran everything may call a recording an orphan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.bundle import Bundle
from lanes.bundle_reading import read_bundle
from lanes.policy import LanePolicy
from lanes.record import JsonObject
from lanes.subject import commit_times

FOLDER = "cassettes"
SESSION_LOGS = "session-logs"


def has_recordings(policy: LanePolicy) -> bool:
    """Whether a lane plays recordings at all."""
    return "cassette" in policy.channels


def times_of_commits(root: Path, policy: LanePolicy) -> Mapping[str, str]:
    """When the recordings were committed as they stand, for a lane that plays them."""
    return commit_times(root, FOLDER) if has_recordings(policy) else {}


def kept_names(root: Path) -> tuple[str, ...]:
    """Every recording of the tree, by the name that evidence has for it."""
    files = [path for path in (root / FOLDER).glob("*/*.yaml") if path.parent.name != SESSION_LOGS]
    folders = [path for path in (root / FOLDER / SESSION_LOGS).glob("[!.]*") if path.is_dir()]
    return tuple(sorted(path.relative_to(root).as_posix() for path in (*files, *folders)))


def recording_notes(root: Path, folder: Path, policy: LanePolicy) -> tuple[tuple[str, ...], bool]:
    """What is to be said of the recordings of the run whose bundle lies there, and whether it fails.

    Shape: those that no longer count as recorded, with the exchange and why; stale ones with the command that records
    them anew; then those that nobody played, which alone fail.
    """
    names = kept_names(root)
    if not has_recordings(policy) or not names:
        return (), False
    bundle = read_bundle(folder)
    doubted = dict.fromkeys(note for record in bundle.records for note in _doubts(record.cassette))
    stale = dict.fromkeys(note for record in bundle.records if (note := _stale_note(record.cassette)))
    unused, is_unused = _unused_notes(names, bundle)
    return (*doubted, *stale, *unused), is_unused


def _doubts(facts: JsonObject | None) -> list[str]:
    """Which exchanges of a recording are none of a model any more, though they say so of themselves."""
    told = facts or {}
    doubts = told.get("doubts")
    return [f"{told.get('id')} counts as scripted: {each}" for each in doubts] if isinstance(doubts, list) else []


def _stale_note(facts: JsonObject | None) -> str:
    """That a recording is stale, why, and how it is made anew; nothing does it by itself."""
    told = facts or {}
    name, reasons = str(told.get("id")), told.get("stale_reasons")
    why = [str(each) for each in reasons] if isinstance(reasons, list) else []
    why += [f"{told.get('age_days')} days old"] if told.get("level") == "stale" else []
    story = name.rpartition("/")[2].partition(".")[0]
    target = "--scripted" if SESSION_LOGS in name else "--target TARGET"
    return f"{name} is stale: {', '.join(why)}; record it anew: tox -e record -- {story} {target}" if why else ""


def _unused_notes(names: Sequence[str], bundle: Bundle) -> tuple[tuple[str, ...], bool]:
    if why := _why_partial(bundle):
        return (f"recordings, unused: not judged: {why}",), False
    used = {str((record.cassette or {}).get("id")) for record in bundle.records}
    unused = [name for name in names if name not in used]
    return tuple(f"{name}: no test of a whole run plays it [CASSETTE_UNUSED]" for name in unused), bool(unused)


def _why_partial(bundle: Bundle) -> str:
    header = bundle.header
    if header.shard_total > 1:
        return "one shard of several"
    if header.deselected or header.extra.get("filtered") is True:
        return "only a part of the lane ran"
    return "" if bundle.trailer is not None else "the run did not come to its end"
