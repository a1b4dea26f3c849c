"""The matrix of published clients and journeys that a run prints at its end.

Room: the conftest of the folder above takes the hook; with workers, pytest asks nobody further down for it.
"""

from __future__ import annotations

import re

import pytest

_FILE = r"protocol/test_\w+_(?:clients|programs)\.py"
_ITEM = re.compile(_FILE + r"::test_\w+\[(?P<client>(?:sdk|acp) .+?)-(?P<journey>[^\]]+)\]$")
_WORDS = {"passed": "passed", "failed": "FAILED", "error": "FAILED", "skipped": "not run"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say of each client and each journey how it went; nothing where none was tried."""
    cells: dict[tuple[str, str], str] = {}
    for outcome, word in _WORDS.items():
        for report in terminalreporter.stats.get(outcome, ()):
            found = _ITEM.search(getattr(report, "nodeid", ""))
            if found is not None and cells.get((found["client"], found["journey"])) != "FAILED":
                cells[found["client"], found["journey"]] = word
    for wire in ("sdk", "acp"):
        lines = matrix({cell: word for cell, word in cells.items() if cell[0].startswith(wire)})
        if lines:
            terminalreporter.write_sep("=", f"published clients of the {wire.upper()} wire")
            terminalreporter.write_line("\n".join(lines))


def matrix(cells: dict[tuple[str, str], str]) -> list[str]:
    """A table: a line a journey, a column a client."""
    if not cells:
        return []
    clients, journeys = (list(dict.fromkeys(name[at] for name in sorted(cells, key=str))) for at in (0, 1))
    rows = [["journey", *clients], *([one, *(cells.get((who, one), "-") for who in clients)] for one in journeys)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
