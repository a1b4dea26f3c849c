"""Tables on a terminal."""

from __future__ import annotations

import pytest

from reports.render.table import lay_out, pad

HEAD = [["claim", "Unit", "Real API"], ["", "stand-ins", "live"]]
BODY = [["log.truth", "not run: lane not run", "not run: no key"], ["loop.turns", "passed 1", "not required"]]


def lines(width: int, *, whole: tuple[int, ...] = (0, 2)) -> list[str] | None:
    return lay_out(HEAD, BODY, width, whole=whole, paint=lambda _cell, padded: padded)


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    assert lines(80) == [
        "claim        Unit                    Real API",
        "             stand-ins               live",
        "log.truth    not run: lane not run   not run: no key",
        "loop.turns   passed 1                not required",
    ]


def test_a_cell_breaks_between_words_before_the_table_gives_up() -> None:
    assert lines(45) == [
        "claim        Unit             Real API",
        "             stand-ins        live",
        "log.truth    not run:         not run: no key",
        "             lane not run",
        "loop.turns   passed 1         not required",
    ]


def test_columns_that_must_stay_whole_never_break() -> None:
    found = [lines(width) for width in range(20, 80)]

    told = [table for table in found if table is not None]
    assert (all(any("not run: no key" in line for line in table) for table in told), found[0]) == (True, None)


@pytest.mark.parametrize("width", range(30, 60))
def test_no_line_is_wider_than_the_room(width: int) -> None:
    found = lines(width)

    assert found is None or max(len(line) for line in found) <= width


def test_paint_gets_the_cell_and_its_first_line_only() -> None:
    seen: list[tuple[str, str]] = []

    def paint(cell: str, padded: str) -> str:
        seen.append((cell, padded))
        return padded

    lay_out(HEAD[:1], [["a", "not run: lane not run", "b"]], 32, whole=(0, 2), paint=paint)

    assert seen == [("a", "a    "), ("not run: lane not run", "not run:     "), ("b", "b       ")]


def test_padding_counts_wide_characters_twice() -> None:
    assert pad("日本", 6) == "日本  "
