"""Tables for a terminal: column widths, and cells on more lines where a row is too long for one.

Room: pure. The text renderer comes in; who gets None stacks the columns instead, and drops none.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from reports.render.characters import width_of

GAPS = (3, 2)  # blanks between columns; the second where the first does not fit
NARROWEST = 11  # a column of cells narrower than this is read more slowly than the same cells stacked


def lay_out(
    head: Sequence[Sequence[str]],
    body: Sequence[Sequence[str]],
    width: int,
    *,
    whole: Sequence[int],
    paint: Callable[[str, str], str],
) -> list[str] | None:
    """The lines of a table, or None when it does not fit into width.

    Shape: columns whose numbers are in whole keep each cell on one line; the others may break cells between words.
    paint gets the whole cell and the padded first line of it.
    """
    for gap in GAPS:
        widths = _widths((*head, *body), width - gap * (len(head[0]) - 1), whole)
        if widths is not None:
            rows = [_row(line, widths, gap, lambda _cell, padded: padded) for line in head]
            rows += [_row(line, widths, gap, paint) for line in body]
            return [line for row in rows for line in row]
    return None


def pad(text: str, width: int) -> str:
    """The text with blanks behind it up to a width in terminal columns."""
    return text + " " * (width - width_of(text))


def _widths(rows: Sequence[Sequence[str]], room: int, whole: Sequence[int]) -> list[int] | None:
    numbers = range(len(rows[0]))
    widths = [max(width_of(row[number]) for row in rows) for number in numbers]
    least = [widths[n] if n in whole else min(widths[n], _least([row[n] for row in rows])) for n in numbers]
    while sum(widths) > room:
        loose = [number for number in numbers if widths[number] > least[number]]
        if not loose:
            return None
        widths[max(loose, key=lambda number: widths[number])] -= 1
    return widths


def _least(cells: Sequence[str]) -> int:
    return max(NARROWEST, *(width_of(word) for cell in cells for word in cell.split() or [""]))


def _row(cells: Sequence[str], widths: Sequence[int], gap: int, paint: Callable[[str, str], str]) -> list[str]:
    broken = [_break(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines: list[str] = []
    for number in range(max(len(parts) for parts in broken)):
        padded: list[str] = []
        for cell, parts, width in zip(cells, broken, widths, strict=True):
            text = pad(parts[number] if number < len(parts) else "", width)
            padded.append(text if number else paint(cell, text))
        lines.append((" " * gap).join(padded).rstrip())
    return lines


def _break(cell: str, width: int) -> list[str]:
    if width_of(cell) <= width:
        return [cell]
    status, colon, reason = cell.partition(": ")
    if colon and max(width_of(status) + 1, width_of(reason)) <= width:
        return [f"{status}:", reason]
    return textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
