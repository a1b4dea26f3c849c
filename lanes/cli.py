"""The command line of the lanes: run one, read them all, accept and record.

Room: nobody imports it but `lanes.__main__` and the console command; it alone writes to the standard streams.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lanes.environment import MARK_VARIABLE, TOX_VARIABLE
from lanes.errors import LanesError, UsageError
from lanes.policy import LANES, check_marker
from lanes.runner import LaneOutcome, LaneRequest, run_lane

EXAMPLE = "example: lanes run offline -n 2 -k journeys"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except LanesError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _dispatch(arguments: Sequence[str]) -> int:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if command == "run":
        return _run(rest)
    raise UsageError(f"command {command!r} is unknown", expected="run")


def _run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lanes run", epilog=EXAMPLE, allow_abbrev=False)
    parser.add_argument("lane", help=f"one of {', '.join(LANES)}")
    parser.add_argument("--out", type=Path, default=Path("reports") / "out", help="where evidence goes")
    parser.add_argument("--root", type=Path, default=Path(), help="the project's root")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="run part I of N")
    parser.add_argument("-n", dest="workers", default=os.environ.get("LANE_WORKERS") or "0", help="worker processes")
    parser.add_argument("--require-live", action="store_true", help="exit 4 without a live proof")
    parser.add_argument("--strict", action="store_true", help="flaky and stale fail too")
    options, rest = parser.parse_known_args([each for each in arguments if each != "--"])
    policy, marker = check_marker(options.lane, os.environ.get(MARK_VARIABLE), os.environ.get(TOX_VARIABLE))
    index, total = _shard(options.shard)
    root = options.root.resolve()
    request = LaneRequest(
        policy=policy,
        marker=marker,
        root=root,
        out=(root / options.out).resolve(),
        shard_index=index,
        shard_total=total,
        workers=options.workers,
        require_live=options.require_live,
        pytest_arguments=tuple(rest),
    )
    outcome = run_lane(request, os.environ)
    _tell(outcome)
    return outcome.exit_code


def _tell(outcome: LaneOutcome) -> None:
    for note in outcome.notes:
        sys.stdout.write(f"{note}\n")
    for breach in outcome.breaches:
        sys.stderr.write(f"{breach}\n")


def _shard(text: str) -> tuple[int, int]:
    index, mark, total = text.partition("/")
    if mark and index.isdecimal() and total.isdecimal() and 1 <= int(index) <= int(total):
        return int(index), int(total)
    raise UsageError(f"--shard is {text!r}", expected="I/N with 1 <= I <= N")
