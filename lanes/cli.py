"""The command `lanes`: run one lane, read them all, and the acts that change what is committed.

Room: the console command and `python -m lanes` come in. In the lanes it alone writes to the standard streams.
"""

from __future__ import annotations

import difflib
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lanes.environment import MARK_VARIABLE, TOX_VARIABLE
from lanes.errors import LanesError, UsageError, compose_message
from lanes.options import (
    MAX_NUMBER,
    MAX_WORKERS,
    build_parser,
    build_run_parser,
    parse_live_wish,
    parse_number,
    parse_out,
    parse_root,
    parse_run_id,
    parse_shard,
    parse_workers,
)
from lanes.policy import LANES, check_marker, lane_policy
from lanes.proof_declaration import load_proofs, select_proofs
from lanes.proof_record import Result
from lanes.record import Subject
from lanes.runner import (
    EXIT_FAILED,
    EXIT_NOTHING_RUN,
    EXIT_PASSED,
    EXIT_USAGE,
    EXIT_VOID,
    LaneRequest,
    leave_word_on_real,
    run_lane,
)
from lanes.standard_streams import prepare_streams
from lanes.subject import current_subject
from reports.board import Board
from reports.merge import is_merged
from reports.output import build_reports, claims_of, show_board
from reports.proof_words import proofs_exit_code, result_lines, total_line
from reports.verdict import EVERYTHING, Asked

if TYPE_CHECKING:  # the board's commands are loaded when one of them is asked for
    from lanes.board_commands import Answer

INSTALL = "pip install 'five-lanes[lanes]'"
EXIT_STOPPED = 130  # as a shell says of a program that an interrupt ended
# Which of two exit codes says more: one that stops belief comes before one that reports a failure.
_GRAVEST_FIRST = (EXIT_VOID, EXIT_USAGE, EXIT_FAILED, EXIT_NOTHING_RUN)

OVERVIEW = """\
usage: lanes COMMAND [options]

commands:
  init [DIR]     give a project its lanes: tox.ini, claims, a first test per lane, workflows for two forges
  run LANE       run one lane: unit, snapshot, replay, offline or real
  import JUNIT   take results of another runner as evidence of a lane
  report         fold the evidence of every lane into one board
  merge          lay the bundles of shards and machines into one folder
  verify         work everything out anew from the bundles, and say what does not hold
  diff           say which cells changed from one board to another
  explain CLAIM  say why the cells of a claim say what they say
  nightly        write what a night saw of hosted models down, and say what follows from all of them
  drift          hold answers of providers against recordings and the mock provider's catalogue
  demo           show one journey as it happens, then the board
  accept         take what the program now prints as expected output, and show the difference
  record STORY   record a story from a provider anew
  script LOG     write a script of the mock provider that says again what a session log says
  proofs         break each guard on a copy and see its tests turn red
  crash          kill sessions at work some hundred times, and see that they kept what they promised
  ids            list the edges of the specifications that no test names

example: lanes run offline -n 2 -k journeys

Each command explains itself: lanes COMMAND --help
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments, os.environ)
    except LanesError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except BrokenPipeError:  # whoever read our output has gone; what was to be kept is in files already
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except ModuleNotFoundError as error:  # what only some commands need comes with an extra
        package = (error.name or "").partition(".")[0].strip("_")
        if package in {"", "harness", "lanes", "mock_provider", "reports"}:
            raise
        message = compose_message(f"the package {package} is not installed here", "USAGE", fix=INSTALL)
        sys.stderr.write(f"{message}\n")
        return EXIT_USAGE
    except OSError as error:  # a place that was named, or the machine itself, does not do what is asked of it
        where = str(error.filename) if error.filename is not None else "this machine"
        what, fix = error.strerror or str(error), "give a place that can be read and written: --out DIR, --root DIR"
        sys.stderr.write(f"{compose_message(what, 'MACHINE', where=where, fix=fix)}\n")
        return EXIT_USAGE


def _dispatch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    commands: Mapping[str, Callable[[Sequence[str], Mapping[str, str]], int]] = {
        "init": _answer("init_project", "lanes.init_command"),
        "run": _run,
        "import": _answer("import_results", "lanes.import_command"),
        "report": _report,
        "merge": _answer("merge"),
        "verify": _answer("verify"),
        "diff": _answer("diff"),
        "explain": _answer("explain"),
        "nightly": _answer("nightly"),
        "drift": _answer("drift"),
        "demo": _demo,
        "accept": _accept,
        "record": _record,
        "script": _script,
        "proofs": _proofs,
        "crash": _crash,
        "ids": _ids,
    }
    match arguments:
        case ["-h" | "--help" | "help", *_]:
            sys.stdout.write(OVERVIEW)
            return EXIT_PASSED
        case []:
            sys.stderr.write(OVERVIEW)
            return EXIT_USAGE
        case [word, *rest] if word in commands:
            return commands[word](rest, environ)
    word = arguments[0]
    near = difflib.get_close_matches(word, [*commands, *LANES], n=1)
    hint = f"; did you mean {'run ' if near[0] in LANES else ''}{near[0]}?" if near else ""
    raise UsageError(f"{word[:60]!r} is no command{hint}", expected=f"one of {', '.join(commands)}")


def _run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    options, rest = build_run_parser(environ).parse_known_args(_without_separator(arguments))
    if options.no_board and (options.strict or options.require_live):
        message = "--no-board leaves nothing that --strict or --require-live could judge"
        raise UsageError(message, where="lanes run", fix="leave one of them out; `lanes report` takes both later")
    policy, marker = check_marker(options.lane, environ.get(MARK_VARIABLE), environ.get(TOX_VARIABLE))
    index, total = parse_shard(options.shard)
    root = parse_root(options.root, needs_lanes=False)  # the run itself says which folder it wants
    request = LaneRequest(
        policy=policy,
        marker=marker,
        root=root,
        out=parse_out(root, options.out),
        shard_index=index,
        shard_total=total,
        workers=parse_workers(options.workers),
        require_live=options.require_live,
        require_depth=options.require_depth,
        pytest_arguments=tuple(rest),
        environment=options.lane,
        run_id=parse_run_id(options.run_id),
        live=parse_live_wish(policy, options.target, options.model, options.attempts, options.budget_usd),
    )
    outcome = run_lane(request, environ, _show_progress)
    asked = Asked(lanes=(policy.name,), require_live=options.require_live, strict=options.strict)
    judged = EXIT_PASSED if options.no_board else _show(request.out, root, environ, asked, subject=outcome.subject)
    for note in outcome.notes:
        sys.stdout.write(f"{note}\n")
    sys.stdout.flush()
    for breach in outcome.breaches:
        sys.stderr.write(f"{breach}\n")
    if total > 1:  # one shard cannot be judged without the others; `lanes report` does it once they are together
        return outcome.exit_code
    return _graver(outcome.exit_code, judged)


def _report(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    parser = build_parser(
        "report", "Fold the evidence of every lane into one board.", "lanes report --require unit,offline"
    )
    parser.add_argument("--require", default="", metavar="LANES", help="fail when one of these lanes left no evidence")
    parser.add_argument("--require-live", action="store_true", help="exit 4 when a claim has no live proof")
    parser.add_argument("--strict", action="store_true", help="flaky, stale and unclassified skips fail too")
    options = parser.parse_args(list(arguments))
    required = [lane_policy(name).name for name in filter(None, options.require.split(","))]
    root = parse_root(options.root)
    asked = Asked(require_live=options.require_live, strict=options.strict)
    return _show(parse_out(root, options.out), root, environ, asked, required=required)


def _answer(name: str, room: str = "lanes.board_commands") -> Callable[[Sequence[str], Mapping[str, str]], int]:
    """A command of another room that answers in words."""

    def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        answer: Answer = getattr(importlib.import_module(room), name)(arguments, environ)
        _write_now(answer.text)
        sys.stderr.write(answer.complaint)
        return answer.exit_code

    return run


def _demo(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    options = build_parser("demo", "Show one journey as it happens, then the board.", "lanes demo").parse_args(
        list(arguments)
    )
    from lanes.demo import show_journey

    root = parse_root(options.root, needs_lanes=False)
    out = parse_out(root, options.out)
    code = show_journey(_write_now)
    _show(out, root, environ, EVERYTHING)  # what a person sees here is the journey, not a judgement
    return code


def _accept(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    parser = build_parser("accept", "Take what the program now prints as expected output.", "lanes accept fix-test")
    parser.add_argument("stories", nargs="*", metavar="STORY", help="pinned stories, all of them unless named")
    options = parser.parse_args(list(arguments))
    from lanes.acceptance import accept_expected, check_place

    root = parse_root(options.root)
    check_place(root)
    changed, strays = accept_expected(options.stories, environ)
    for name in changed:
        sys.stdout.write(f"accepted: {name}\n")
    for stray in strays:
        sys.stderr.write(f"{stray}\n")
    sys.stdout.write("" if changed else "nothing changed\n")
    sys.stdout.flush()
    git = shutil.which("git")
    if git is not None and changed:
        subprocess.run([git, "--no-pager", "diff", "--", "lanes/snapshot"], cwd=root, check=False)
    return EXIT_FAILED if strays else EXIT_PASSED


def _record(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    try:
        from lanes.recorder import record
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the package {error.name} is not installed here",
            where="lanes record",
            fix="tox -e record -- STORY --target TARGET, or pip install 'five-lanes[lanes]'",
        ) from error

    sys.stdout.write(f"{record(arguments, environ, Path.cwd(), _show_progress)}\n")
    return EXIT_PASSED


def _script(arguments: Sequence[str], _environ: Mapping[str, str]) -> int:
    from lanes.log_script import run_script

    _write_now(run_script(arguments))
    return EXIT_PASSED


def _proofs(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    from lanes.breakits import DEFAULT_WORKERS, run_proofs

    parser = build_parser("proofs", "Break each guard on a copy and see its tests turn red.", "lanes proofs --sample")
    parser.add_argument("ids", nargs="*", metavar="ID", help="a proof of lanes/proofs or how its id begins; else all")
    parser.add_argument("--environment", default="", metavar="NAME", help="those that need this tox environment")
    parser.add_argument("--sample", action="store_true", help="only the few that every change runs")
    parser.add_argument("--workers", default=str(DEFAULT_WORKERS), metavar="N", help="proofs that run side by side")
    options = parser.parse_args(list(arguments))
    workers = parse_number("lanes proofs", "--workers", options.workers, least=1, most=MAX_WORKERS)
    root = parse_root(options.root)
    out = parse_out(root, options.out)
    declared = load_proofs(root, claims_of(root))
    proofs = select_proofs(declared, options.ids, sample=options.sample, environment=options.environment)
    if not proofs:
        sys.stdout.write(f"guards: not run: no {'sample' if options.sample else 'proof'} is declared in lanes/proofs\n")
        return EXIT_NOTHING_RUN
    started = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where we were started deaf to interrupts
        signal.signal(number, signal.default_int_handler)
    try:
        outcome = run_proofs(root, out, proofs, environ, workers=workers, tell=_tell_result)
    except KeyboardInterrupt:
        sys.stderr.write("stopped: what was running is ended, the working tree was not touched\n")
        return EXIT_STOPPED
    build_reports(out, root, datetime.now(UTC), subject=outcome.subject)
    _write_now(f"{total_line(outcome.results)} in {time.monotonic() - started:.0f} s\n")
    for name in outcome.changed:
        sys.stderr.write(f"{name} changed in the working tree while the proofs ran\n")
    _write_now(f"working tree {'changed' if outcome.changed else 'unchanged'}: {outcome.digest}\n")
    return proofs_exit_code(outcome.results, has_changed=bool(outcome.changed))


def _ids(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    from lanes.id_coverage import id_coverage

    parser = build_parser("ids", "List the edges of the specifications that no test names.", "lanes ids loop headless")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="a group of lanes/spec_ids.toml, all by default")
    options = parser.parse_args(list(arguments))
    groups = id_coverage(parse_root(options.root), options.groups)
    for group in groups:
        sys.stdout.write(f"{group.name}: {len(group.ids)} ids, {len(group.missing)} without a test\n")
        sys.stdout.write("".join(f"  {each}\n" for each in group.missing))
    return EXIT_FAILED if any(group.missing for group in groups) else EXIT_PASSED


def _crash(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    from lanes.crash import DEFAULT_KILLS, report_lines, run_crashes

    parser = build_parser("crash", "Kill sessions at work, and see that they kept what they promised.", "lanes crash")
    parser.add_argument("--kills", default=str(DEFAULT_KILLS), metavar="N", help="how many processes to kill")
    parser.add_argument("--seed", default="1", metavar="N", help="draws the moments of the kills at random times")
    options = parser.parse_args(list(arguments))
    kills = parse_number("lanes crash", "--kills", options.kills, least=1, most=MAX_NUMBER)
    seed = parse_number("lanes crash", "--seed", options.seed, least=0, most=MAX_NUMBER)
    started = time.monotonic()
    totals = run_crashes(kills, seed, lambda line: _write_now(f"{line}\n"))
    _write_now(report_lines(totals))
    _write_now(f"seed {seed}, {time.monotonic() - started:.0f} s\n")
    return EXIT_PASSED if totals.is_good and totals.kills.total() >= kills else EXIT_FAILED


def _tell_result(result: Result) -> None:
    _write_now(result_lines(result))


def _show(
    out: Path,
    root: Path,
    environ: Mapping[str, str],
    asked: Asked,
    *,
    subject: Subject | None = None,
    required: Sequence[str] = (),
) -> int:
    """Fold what lies under the output folder, write the board's files, print the board, and give its exit code."""
    about = current_subject(root) if subject is None else subject
    if not is_merged(out):  # a merge is what its machines left, and each has left its own word
        leave_word_on_real(root, out, environ, about)
    board, code = build_reports(out, root, datetime.now(UTC), asked=asked, subject=about)
    _write_board(board, environ)
    if not asked.lanes and all(column.not_run is not None for column in board.columns):
        code = _graver(code, EXIT_NOTHING_RUN)  # our own word on `real` is no evidence that anything ran
    missing = [lane for lane in required if not board.column(lane).bundles or board.column(lane).is_partial]
    for lane in missing:
        what = "only evidence of a part of it" if board.column(lane).bundles else "no evidence"
        sys.stderr.write(f"lane {lane!r} left {what} about this subject\n")
    return _graver(code, EXIT_FAILED) if missing else code


def _write_board(board: Board, environ: Mapping[str, str]) -> None:
    size = shutil.get_terminal_size((120, 24))
    is_terminal = sys.stdout.isatty()
    _write_now(show_board(board, environ, is_terminal=is_terminal, columns=size.columns))


def _write_now(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _show_progress(text: str) -> None:
    """Show what a person waits for; a file would only be filled with it."""
    if sys.stderr.isatty():
        sys.stderr.write(text)
        sys.stderr.flush()


def _without_separator(arguments: Sequence[str]) -> list[str]:
    return [argument for argument in arguments if argument != "--"]


def _graver(one: int, other: int) -> int:
    for code in _GRAVEST_FIRST:
        if code in {one, other}:
            return code
    return max(one, other)
