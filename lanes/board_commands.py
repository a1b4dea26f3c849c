"""The commands that read boards and evidence: merge, verify, diff, explain and nightly.

Room: `lanes.cli` comes in and writes what is answered; the work itself is done in reports.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lanes.errors import UsageError
from lanes.options import OUT, Parser, build_parser, parse_out, parse_root
from lanes.policy import lane_policy
from lanes.project import load_project
from lanes.runner import EXIT_FAILED, EXIT_PASSED, EXIT_VOID
from reports.difference import WORSE, BoardRead, compare_boards, difference_text, parse_board
from reports.explain import explain_claim
from reports.merge import BUNDLES, PROOFS, Merged, merge_folders
from reports.output import JSON, load_board
from reports.render.characters import as_line
from reports.verify import Verification, verify_folder


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says on standard output, its exit code, and what it complains of on standard error."""

    text: str
    exit_code: int = EXIT_PASSED
    complaint: str = ""


def merge(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Lay the bundles of many folders into one."""
    parser = Parser(
        prog="lanes merge",
        description="Lay the bundles of shards, workers and machines into one folder, each as it was written.",
        epilog="example: lanes merge shard-1 shard-2 --out merged && lanes report --out merged",
        allow_abbrev=False,
    )
    parser.add_argument("folders", nargs="+", metavar="DIR", help="an output folder, or anything that holds bundles")
    parser.add_argument("--out", required=True, metavar="DIR", help="where they go: a new folder, or an earlier merge")
    options = parser.parse_args(list(arguments))
    merged = merge_folders([Path(folder) for folder in options.folders], parse_out(Path.cwd(), options.out))
    complaints = [*(f"{folder} holds no bundle" for folder in merged.empty), *merged.gaps, *merged.problems]
    text = f"{_merged_words(merged)} into {options.out}\nfold them: lanes report --out {options.out}\n"
    complaint = "".join(f"{as_line(each)}\n" for each in complaints)
    return Answer(text, EXIT_PASSED if merged.is_whole else EXIT_FAILED, complaint)


def verify(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Work everything out anew from the bundles of a folder."""
    parser = Parser(
        prog="lanes verify",
        description="Work out every digest, judgement and output anew from the bundles, and say what does not hold.",
        epilog="example: lanes verify merged",
        allow_abbrev=False,
    )
    parser.add_argument(
        "folder", nargs="?", default=str(OUT), metavar="DIR", help=f"an output folder, {OUT} by default"
    )
    parser.add_argument("--root", default=".", metavar="DIR", help="the project whose rules count, this folder")
    options = parser.parse_args(list(arguments))
    root = parse_root(options.root, needs_lanes=False)
    folder = Path(options.folder)
    if not folder.is_dir():
        raise UsageError(f"there is no folder {options.folder!r}", where="lanes verify", expected="an output folder")
    seen = verify_folder(folder, root)
    code = EXIT_PASSED
    if seen.findings:
        code = EXIT_FAILED if all(each.is_lacking for each in seen.findings) else EXIT_VOID
    return Answer(_verified_words(seen), code)


def nightly(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Write a night down, and say what follows from all of them."""
    from lanes.nightly import nightly as write_night

    return Answer(*write_night(arguments))


def diff(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Say what changed between two boards."""
    parser = Parser(
        prog="lanes diff",
        description="Say which cells changed from one board to another: proven, lost, stale, flaky, failed.",
        epilog="example: lanes diff main/board.json reports/out",
        allow_abbrev=False,
    )
    parser.add_argument("before", metavar="A", help=f"a {JSON}, or the folder that holds it")
    parser.add_argument("after", metavar="B", help="the board to hold against it")
    options = parser.parse_args(list(arguments))
    before, after = _read_board(options.before), _read_board(options.after)
    changes = compare_boards(before, after)
    is_worse = any(change.kind in WORSE for change in changes)
    return Answer(difference_text(before, after, changes), EXIT_FAILED if is_worse else EXIT_PASSED)


def explain(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Say why the cells of a claim say what they say."""
    parser = build_parser(
        "explain", "Say why the cells of a claim say what they say.", "lanes explain journey.fix-test --lane offline"
    )
    parser.add_argument("claim", metavar="CLAIM", help="the id of a claim, as the board shows it")
    parser.add_argument("--lane", action="append", default=[], metavar="LANE", help="only this column; may be repeated")
    parser.add_argument("--all", dest="everything", action="store_true", help="name every test that passed, too")
    options = parser.parse_args(list(arguments))
    lanes = [lane_policy(name).name for name in options.lane]
    root = parse_root(options.root)
    board = load_board(parse_out(root, options.out), root, datetime.now(UTC))
    ids = [row.claim.id for row in board.rows]
    if options.claim not in ids:
        near = difflib.get_close_matches(options.claim, ids, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"claim {options.claim[:80]!r} is unknown{hint}"
        expected = f"the id of a claim in {load_project(root).claims}"
        raise UsageError(message, where="lanes explain", expected=expected)
    return Answer(explain_claim(board, options.claim, lanes=lanes, everything=options.everything))


def _read_board(text: str) -> BoardRead:
    path = Path(text) / JSON if Path(text).is_dir() else Path(text)
    if not path.is_file():
        fix = f"name a {JSON}, or a folder in which lanes report has written one"
        raise UsageError(f"there is no board {str(path)!r}", where="lanes diff", fix=fix)
    return parse_board(path.read_bytes(), str(path))


def _merged_words(merged: Merged) -> str:
    counts = {kind: sum(1 for each in merged.inputs if each.place.startswith(f"{kind}/")) for kind in (BUNDLES, PROOFS)}
    told = f"merged {counts[BUNDLES]} bundles"
    told += f" and {counts[PROOFS]} proofs" if counts[PROOFS] else ""
    return told + (f" ({merged.repeated} of them were there more than once)" if merged.repeated else "")


def _verified_words(seen: Verification) -> str:
    lines = ["checked:", *(f"  {as_line(each)}" for each in seen.checked)]
    lines += ["", "not checked:", *(f"  {as_line(each)}" for each in seen.unchecked), ""]
    if not seen.findings:
        return "\n".join([*lines, "nothing that was checked contradicts the evidence"]) + "\n"
    lines += [f"does not hold ({len(seen.findings)}):"]
    lines += ["  " + as_line(f"{each.where}: {each.text} [{each.code}]") for each in sorted(seen.findings)]
    return "\n".join(lines) + "\n"


def drift(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Hold answers of providers against recordings and the mock provider's catalogue."""
    from lanes.drift_command import run_drift

    return Answer(*run_drift(arguments))
