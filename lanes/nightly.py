"""The nightly command: from the evidence of a run to a line of history, the trend, the findings and the issues.

Room: `lanes.cli` comes in through `lanes.board_commands`. It asks no model; the lane has run before it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lanes.bundle import find_bundles
from lanes.bundle_reading import read_bundle
from lanes.drift_report import breaking_findings
from lanes.errors import UsageError
from lanes.options import build_parser, parse_out, parse_root
from lanes.record import Json, JsonObject, Record
from lanes.runner import EXIT_FAILED, EXIT_PASSED, EXIT_VOID
from reports.admit import answer_digests, provider_ids
from reports.history import HISTORY, append_history, read_history
from reports.issues import LABEL, Act, night_acts
from reports.nights import Night, chain, chain_problems, hosted_targets, last_digest, night_lines
from reports.output import claims_of, load_board
from reports.trend import cost_notes, missed_nights, missed_now, promotion_problems, trend_lines, trends
from reports.tries import attempt_records

FORGE_TIMEOUT_S = 60
MAX_ISSUES = 500
PAGE = "nightly.md"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Forge = Callable[[Sequence[str]], str]


def nightly(arguments: Sequence[str], *, forge: Forge | None = None) -> tuple[str, int, str]:
    """Write a night down and say what follows from all of them: text, exit code, complaint.

    Shape: exit 3 for a broken chain, 1 for a missed night or a claim that is required live too early, else 0.
    Raises: UsageError for a night that is no date or is there already, and where the forge's program is missing.
    """
    parser = build_parser(
        "nightly", "Write what a night saw into the history, and say what follows from it.", "lanes nightly --append"
    )
    add = parser.add_argument
    add("--history", default=str(HISTORY), metavar="FILE", help=f"the history, {HISTORY} by default")
    add("--night", default="", metavar="DATE", help="the night's date, today by default")
    add("--append", action="store_true", help="write the evidence that lies under --out down as this night")
    add("--issues", action="store_true", help="open, update and close issues by the program gh")
    add("--where", default="", metavar="TEXT", help="what issues name as the place of the run")
    options = parser.parse_args(list(arguments))
    root = parse_root(options.root)
    out = parse_out(root, options.out)
    now = datetime.now(UTC)
    path = root / options.history
    history = read_history(path)
    before = [line for line in history if line is not None]
    missed = missed_now(before, now) if before or not options.append else ""  # the first night comes after none
    tonight: tuple[JsonObject, ...] = ()
    if options.append:
        night = Night(_night(options.night, now, history), now.strftime("%Y-%m-%dT%H:%M:%SZ"), breaking_findings(root))
        tonight = _lines(root, out, now, night, history)
        append_history(path, tonight)
        history = read_history(path)
    known = [line for line in history if line is not None]
    broken = chain_problems(history)
    found = trends(known, now)
    early = promotion_problems(claims_of(root), found)
    text = "\n".join(["## Nights", "", *trend_lines(found), ""]) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    gaps = missed_nights(known, now)
    dear = cost_notes(claims_of(root), known)
    (out / PAGE).write_text(text + "".join(f"- {each}\n" for each in (*broken, *gaps, *early, *dear)), "utf-8")
    text += "".join(f"{each}\n" for each in dear)
    if options.issues:
        ask = _gh if forge is None else forge
        acts = night_acts(tonight, _open_issues(ask), "" if options.append else missed, options.where)
        if any(act.deed == "open" for act in acts):
            ask(("label", "create", LABEL, "--force"))  # an issue cannot have a label that the project has not
        for act in acts:
            ask(act_arguments(act))
        text += "".join(f"issue {act.deed}: {act.title}\n" for act in acts)
    complaint = "".join(f"{each}\n" for each in (*broken, *filter(None, [missed]), *early))
    code = EXIT_VOID if broken else EXIT_FAILED if missed or early else EXIT_PASSED
    return text, code, complaint


def act_arguments(act: Act) -> tuple[str, ...]:
    """The arguments of the forge's program that do an act; no shell reads them, no value can be taken for a flag."""
    if act.deed == "open":
        return ("issue", "create", f"--label={LABEL}", f"--title={act.title}", f"--body={act.body}")
    flag = "--comment" if act.deed == "close" else "--body"
    return ("issue", act.deed, str(act.number), f"{flag}={act.body}")


def _lines(
    root: Path, out: Path, now: datetime, night: Night, history: Sequence[JsonObject | None]
) -> tuple[JsonObject, ...]:
    bundles = [bundle for folder in find_bundles(out) if (bundle := read_bundle(folder)).header.lane == "real"]
    records = [record for bundle in bundles for record in bundle.records]
    ids = {record.record_id: _of_attempts(record, provider_ids) for record in records}
    answers = {record.record_id: _of_attempts(record, answer_digests) for record in records}
    board = load_board(out, root, now)
    lines = night_lines(board, hosted_targets(bundles), night, ids, answers)
    return chain(lines, last_digest([line if line is not None else {} for line in history]))


def _of_attempts(record: Record, told: Callable[[Record], tuple[str, ...]]) -> tuple[str, ...]:
    """What a record and each of its attempts tell."""
    return tuple(found for each in (record, *attempt_records(record)) for found in told(each))


def _night(text: str, now: datetime, history: Sequence[JsonObject | None]) -> str:
    date = text or now.date().isoformat()
    where = "lanes nightly"
    if not _DATE.fullmatch(date):
        raise UsageError(f"--night is {text[:80]!r}", where=where, expected="a date, as 2031-03-04")
    if any(line is not None and line.get("night") == date for line in history):
        message = f"the night of {date} is in the history already"
        raise UsageError(message, where=where, fix="a night is written down once; leave --append out to read the trend")
    return date


def _open_issues(ask: Forge) -> dict[str, int]:
    told = ask(
        ("issue", "list", "--label", LABEL, "--state", "open", "--limit", str(MAX_ISSUES), "--json", "number,title")
    )
    try:
        rows: Json = json.loads(told)
    except ValueError as error:
        raise UsageError(f"the forge's program did not answer with JSON: {error}", where="gh issue list") from None
    found: dict[str, int] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and isinstance(row.get("number"), int):
            found[str(row.get("title"))] = int(str(row["number"]))
    return found


def _gh(arguments: Sequence[str]) -> str:
    program = shutil.which("gh")
    if program is None:
        raise UsageError("the program gh is not here", where="lanes nightly --issues", fix="leave --issues out")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=FORGE_TIMEOUT_S, check=False)
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()
        raise UsageError(
            f"{' '.join(arguments[:2])} ended with {done.returncode}: {why[-1] if why else 'it said nothing'}",
            where="gh",
            fix="give it a token that may write issues, or leave --issues out",
        )
    return done.stdout
