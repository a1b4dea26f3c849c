"""How long history may grow and how deep children may stand, as the environment and the command line say it."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.settings import Flags, Settings, from_environment


def settings(environ: dict[str, str], **flags: int) -> Settings:
    return from_environment({"HOME": "/home/someone", **environ}, Flags(**flags))  # type: ignore[arg-type] # numbers only


CHOICES = {
    "nothing": ({}, {}, (None, None, 0)),
    "window": ({"HARNESS_CONTEXT_WINDOW": "1000"}, {}, (1000, 800, 0)),
    "window_and_limit": ({"HARNESS_CONTEXT_WINDOW": "1000", "HARNESS_COMPACT_AT": " 500 "}, {}, (1000, 500, 0)),
    "limit": ({"HARNESS_COMPACT_AT": "500"}, {}, (None, 500, 0)),
    "flag_wins": ({"HARNESS_COMPACT_AT": "500"}, {"compact_at": 7}, (None, 7, 0)),
    "tiny_window": ({"HARNESS_CONTEXT_WINDOW": "1"}, {}, (1, 1, 0)),
    "blank": ({"HARNESS_COMPACT_AT": " ", "HARNESS_DELEGATION_DEPTH": ""}, {}, (None, None, 0)),
    "depth": ({"HARNESS_DELEGATION_DEPTH": "2"}, {}, (None, None, 2)),
    "depth_flag_of_none": ({"HARNESS_DELEGATION_DEPTH": "2"}, {"delegation_depth": 0}, (None, None, 0)),
}


@pytest.mark.parametrize(("environ", "flags", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_the_command_line_wins_then_the_environment(
    environ: dict[str, str], flags: dict[str, int], expected: tuple[int | None, int | None, int]
) -> None:
    found = settings(environ, **flags)
    assert (found.context_window, found.compact_at, found.max_delegation_depth) == expected


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HARNESS_CONTEXT_WINDOW", "0"),
        ("HARNESS_COMPACT_AT", "-1"),
        ("HARNESS_COMPACT_AT", "8k"),
        ("HARNESS_DELEGATION_DEPTH", "1.5"),
        ("HARNESS_DELEGATION_DEPTH", "9" * 10),
    ],
)
def test_what_is_no_such_number_is_named_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(UsageError) as raised:
        settings({variable: value})
    assert (raised.value.where, raised.value.what) == (variable, f"{value!r} is not such a number")
