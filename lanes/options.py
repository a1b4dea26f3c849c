"""Options: what the words on the command line may be, and the two places that most commands are given.

Room: `lanes.cli` comes in. A word that cannot be meant is refused here, before anything is started or written.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from lanes.bundle import MAX_SHARDS
from lanes.errors import UsageError
from lanes.live_run import DEFAULT_BUDGET_USD, MAX_ATTEMPTS, LiveWish, parse_budget
from lanes.local_table import LOCAL_NAME
from lanes.policy import LANES, LOCAL_ENVIRONMENT, LanePolicy
from lanes.project import load_project

OUT = Path("reports") / "out"
MAX_WORKERS = 64  # of one machine; more would be a slip
MAX_NUMBER = 10**9
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # it stands in file names of CI services and in one line


class Parser(argparse.ArgumentParser):
    """Reports what is wrong as a usage error instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, where=self.prog, fix=f"{self.prog} --help shows the options")


def build_parser(command: str, description: str, example: str) -> Parser:
    """Build the parser of a command, with the options that every command has."""
    parser = Parser(prog=f"lanes {command}", description=description, epilog=f"example: {example}", allow_abbrev=False)
    parser.add_argument("--out", default=str(OUT), metavar="DIR", help=f"where evidence lies, {OUT} by default")
    parser.add_argument("--root", default=".", metavar="DIR", help="the project's root, this folder")
    return parser


def build_run_parser(environ: Mapping[str, str]) -> Parser:
    """Build the parser of `lanes run`; what it does not know is pytest's."""
    parser = build_parser(
        "run", "Run one lane; options it does not know go to pytest.", "lanes run unit lanes/unit/wire -x"
    )
    add = parser.add_argument
    add("lane", metavar="LANE", help=f"one of {', '.join(LANES)}")
    add("-n", dest="workers", default=environ.get("LANE_WORKERS") or "0", metavar="N", help="worker processes, or auto")
    add("--shard", default="1/1", metavar="I/N", help="run part I of N")
    add("--run-id", default=None, metavar="ID", help="what this run is called; the same for every part of one run")
    add("--require-live", action="store_true", help="exit 4 when a claim has no live proof")
    add("--require-depth", choices=("D2", "D3"), default="D2", help="fail when the guard does not reach that deep")
    add("--strict", action="store_true", help="flaky, stale and unclassified skips fail too")
    add("--target", default=None, metavar="NAME", help="real: one provider of lanes/providers.toml; all with a key")
    add("--model", default=None, metavar="NAME", help="real: a model of the table in place of the usual one")
    add("--attempts", default=None, metavar="N", help="real: try each test N times, passed or not, and show the rate")
    add("--budget-usd", default=None, metavar="USD", help=f"real: spend no more, {DEFAULT_BUDGET_USD} by default")
    add("--no-board", action="store_true", help="leave the evidence and fold no board: for others to do so")
    return parser


def parse_root(text: str, *, needs_lanes: bool = True) -> Path:
    """Return the project's root.

    Raises: UsageError when there is no such folder, or when it has no lanes.
    """
    if not text:
        raise UsageError("--root names nothing", expected="a folder", fix="leave --root out where this folder is meant")
    root = Path(text).resolve()
    if not root.is_dir():
        raise UsageError(f"there is no folder {text!r}", where="--root", expected="the root of a project with lanes")
    if needs_lanes and not (project := load_project(root)).has_lanes:
        message = f"there is no folder {'of a lane' if project.is_declared else 'lanes'} here"
        fix = "start in the project's root, or name it: --root DIR; `lanes init` gives a project its lanes"
        raise UsageError(message, where=str(root), fix=fix)
    return root


def parse_out(root: Path, text: str) -> Path:
    """Return the folder that evidence lies in, which need not be there yet.

    Raises: UsageError when it can never be there.
    """
    if not text:
        raise UsageError("--out names nothing", expected="a folder", fix=f"leave --out out where {OUT} is meant")
    out = (root / text).resolve()
    there = next(each for each in (out, *out.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is no folder" if not there.is_dir() else "cannot be written"
        raise UsageError(f"{there} {what}", where="--out", expected="a folder, or where one can be made")
    return out


def parse_number(where: str, flag: str, text: str, *, least: int, most: int) -> int:
    """Return a whole number between two others.

    Raises: UsageError.
    """
    is_short = len(text) <= len(str(most))  # of any length, it would take its time to be worked out
    if is_short and text.isascii() and text.isdecimal() and least <= int(text) <= most:
        return int(text)
    raise UsageError(f"{flag} is {text[:80]!r}", where=where, expected=f"a number from {least} to {most}")


def parse_workers(text: str) -> str:
    """Return the number of workers, or `auto`.

    Raises: UsageError.
    """
    return text if text == "auto" else str(parse_number("lanes run", "-n", text, least=0, most=MAX_WORKERS))


def parse_run_id(text: str | None) -> str:
    """Return the name of a run, empty when it is to get one of its own.

    Raises: UsageError.
    """
    if text is None:
        return ""
    if _RUN_ID.fullmatch(text):
        return text
    message = f"--run-id is {text[:80]!r}"
    raise UsageError(message, where="lanes run", expected="1 to 64 letters, digits, '.', '_' and '-', no sign first")


def parse_live_wish(
    policy: LanePolicy, target: str | None, model: str | None, attempts: str | None, budget_usd: str | None
) -> LiveWish:
    """Return what was asked of the lane with hosted models.

    Raises: UsageError for a word that cannot be meant, and in any other lane for every one of them.
    """
    given = {"--target": target, "--model": model, "--attempts": attempts, "--budget-usd": budget_usd}
    named = [flag for flag, text in given.items() if text is not None]
    if not policy.is_live and named:
        message = f"{', '.join(named)} is for models, lane {policy.name!r} asks none"
        raise UsageError(message, where="lanes run", fix="leave it out, or start the lane real")
    if target == LOCAL_NAME:
        message = "the model on this machine has an environment of its own"
        raise UsageError(message, where="--target", fix=f"tox -e {LOCAL_ENVIRONMENT}")
    if policy.keyless and named != ["--attempts"] and named:
        message = f"{', '.join(named)} is for hosted models, {LOCAL_ENVIRONMENT} asks the one that it starts"
        raise UsageError(message, where="lanes run", fix="leave it out; --attempts N alone is for both")
    for flag, text in given.items():
        if text == "":
            raise UsageError(f"{flag} names nothing", where="lanes run", expected="a value", fix="leave it out")
    return LiveWish(
        target=target or "",
        model=model or "",
        attempts=0
        if attempts is None
        else parse_number("lanes run", "--attempts", attempts, least=1, most=MAX_ATTEMPTS),
        budget_usd=DEFAULT_BUDGET_USD if budget_usd is None else parse_budget(budget_usd),
    )


def parse_shard(text: str) -> tuple[int, int]:
    """Return index and total of a shard.

    Raises: UsageError.
    """
    found = _SHARD.fullmatch(text)
    if found is not None and 1 <= int(found[1]) <= int(found[2]) <= MAX_SHARDS:
        return int(found[1]), int(found[2])
    raise UsageError(f"--shard is {text[:80]!r}", where="lanes run", expected=f"I/N with 1 <= I <= N <= {MAX_SHARDS}")
