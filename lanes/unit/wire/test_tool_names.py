"""A call that names its tool in a way no provider takes back does not end the session."""

from __future__ import annotations

import pytest

from harness.wire.tool_names import legal_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("read_file", "read_file", id="legal"),
        pytest.param("a b\n", "a_b_", id="blanks"),
        pytest.param("\ud800", "_", id="lone-surrogate"),
        pytest.param("x" * 100_000, "x" * 64, id="endless"),
        pytest.param("", "unnamed", id="empty"),
    ],
)
def test_a_name_is_sent_back_as_it_is_or_as_a_legal_stand_in(name: str, expected: str) -> None:
    assert legal_name(name) == expected
