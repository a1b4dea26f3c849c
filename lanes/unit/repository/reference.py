"""The reference pages, written from the code: `python -m lanes.unit.repository.reference`.

Room: a person starts it after a change of commands, claims or codes; a test holds the pages against what it writes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.surfaces import headless
from lanes import runner
from lanes.claims import Claim, load_claims
from lanes.policy import GUARDS, LANES
from lanes.record import BLOCKING_REASONS, REASONS
from lanes.unit.repository.documents import PROGRAMS, ROOT, help_of, subcommands
from reports.cells import STATUSES

FOLDER = ROOT / "docs" / "reference"
WIDTH = "100"  # of the help texts; argparse breaks lines where the terminal ends
_NOTE = "Written by `python -m lanes.unit.repository.reference`; do not edit.\n"
_NESTED = {("harness", "attachments"): ("sweep",)}
_LANE_EXITS = {
    "EXIT_PASSED": "every selected required claim passed (keyless), or nothing failed (real)",
    "EXIT_FAILED": "failed; also flaky or stale under `--strict`",
    "EXIT_USAGE": "usage or configuration",
    "EXIT_VOID": "void evidence, conflict, guard or canary failure",
    "EXIT_NOT_LIVE": "`--require-live` and a required claim has no live proof",
    "EXIT_NOTHING_RUN": "nothing collected, or everything skipped",
}
_STATUSES = {
    "passed": "every required test has an admissible observation that passed at its first attempt",
    "not run": "nothing was attempted, for a named reason",
    "stale": "passed, but the recording is past its age, or its model or form no longer matches",
    "blocked": "could not be judged for reasons outside the subject",
    "flaky": "passed only after a failed attempt, or two admissible observations disagree",
    "failed": "an admissible final attempt failed, or a law of the lane broke",
}
_MOCK_EXITS = {
    "0": "served and stopped, or what the wrapped command gave",
    "2": "a script with mistakes, or a wrong argument",
    "3": "the play went wrong: a step left over, a request that was not scripted, one a provider would refuse",
}


def render() -> dict[str, str]:
    """Every page by its name."""
    return {
        "commands.md": _commands(),
        "claims.md": _claims(),
        "exit-codes.md": _exit_codes(),
        "statuses.md": _statuses(),
        "lanes.md": _lanes(),
    }


def _commands() -> str:
    lines = ["# Commands", "", _NOTE]
    for program in PROGRAMS:
        lines += [f"## {program}", "", "```", help_of(program).strip(), "```", ""]
        for command in subcommands(program):
            for words in [(command, more) for more in _NESTED.get((program, command), ())] or [(command,)]:
                lines += [f"### {program} {' '.join(words)}", "", "```", help_of(program, *words).strip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _claims() -> str:
    lines = ["# Claims", "", _NOTE, "Guarded: a break-it proof has to show that its tests can fail.", ""]
    lines += ["| claim | sentence | required in | optional in | guarded |", "|---|---|---|---|---|"]
    lines += [_row(claim) for claim in load_claims()]
    return "\n".join(lines) + "\n"


def _row(claim: Claim) -> str:
    cells = (
        f"`{claim.id}`",
        re.sub(r"\s+", " ", claim.sentence).replace("|", "\\|"),
        ", ".join(claim.required),
        ", ".join(claim.optional),
        "yes" if claim.guarded else "",
    )
    return f"| {' | '.join(cells)} |"


def _exit_codes() -> str:
    lines = ["# Exit codes", "", _NOTE, "## lanes", "", *_table("exit", "meaning", _lane_exits())]
    lines += ["", "## harness", "", *_table("exit", "meaning", _harness_exits())]
    lines += ["", "## mock-provider", "", *_table("exit", "meaning", _MOCK_EXITS.items())]
    return "\n".join(lines) + "\n"


def _lane_exits() -> Iterator[tuple[str, str]]:
    for name, value in sorted(vars(runner).items(), key=lambda item: str(item[1])):
        if name.startswith("EXIT_"):
            yield str(value), _LANE_EXITS[name]


def _harness_exits() -> Iterator[tuple[str, str]]:
    told = " ".join(help_of("harness", "run").partition("exit codes: ")[2].partition("\nexample")[0].split())
    for entry in told.split(", "):
        code, _, meaning = entry.partition(" ")
        yield code, meaning
    known = {
        str(value) for name, value in vars(headless).items() if name.startswith("EXIT_") and isinstance(value, int)
    }
    missing = known - {entry.partition(" ")[0] for entry in told.split(", ")}
    if missing:
        raise ValueError(f"the help of `harness run` does not name {sorted(missing)}")


def _statuses() -> str:
    lines = [
        "# Statuses and reason codes",
        "",
        _NOTE,
        "A cell is the worst of its parts; the list goes from best to worst.",
        "",
    ]
    lines += _table("status", "when", [(each, _STATUSES[each]) for each in STATUSES])
    lines += [
        "",
        "## Reason codes",
        "",
        "A blocking reason says that nobody could judge; any other that nobody tried, or why it failed.",
        "",
    ]
    lines += ["| code | in words | blocking |", "|---|---|---|"]
    lines += [
        f"| `{code}` | {REASONS[code]} | {'yes' if code in BLOCKING_REASONS else ''} |" for code in sorted(REASONS)
    ]
    return "\n".join(lines) + "\n"


def _lanes() -> str:
    lines = ["# Lanes", "", _NOTE, "These texts stand beside the columns in every output.", ""]
    lines += [
        "| lane | answers | network | keys | channels | supports | does not prove |",
        "|---|---|---|---|---|---|---|",
    ]
    for lane in LANES.values():
        channels = ", ".join(sorted(lane.channels))
        text = f"{lane.supports} | {lane.does_not_prove}"
        lines.append(f"| `{lane.name}` | {lane.sub_heading} | {lane.network} | {lane.keys} | {channels} | {text} |")
    lines.append(f"| {GUARDS.heading} | {GUARDS.sub_heading} | | | | {GUARDS.supports} | {GUARDS.does_not_prove} |")
    return "\n".join(lines) + "\n"


def _table(left: str, right: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| {left} | {right} |", "|---|---|", *(f"| {one} | {other} |" for one, other in rows)]


def main(folder: Path = FOLDER) -> int:
    """Write every page."""
    os.environ["COLUMNS"] = WIDTH
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render().items():
        (folder / name).write_text(text, "utf-8")
        sys.stdout.write(f"wrote docs/reference/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
