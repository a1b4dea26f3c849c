from __future__ import annotations

import pytest

from lanes.spec_ids import spec_ids


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("test_AC12_cancels", ("AC-12",), id="one"),
        pytest.param("test_L01_L02_reads", ("L-01", "L-02"), id="several"),
        pytest.param("test_S4a_streams[B13]", ("S-4a",), id="with-parameter"),
        pytest.param("test_case_B13_torn", (), id="field-case"),
        pytest.param("test_reads_UTF8", (), id="not-at-the-start"),
        pytest.param("test_ABCD1_reads", (), id="too-many-letters"),
        pytest.param("helper", (), id="no-test"),
    ],
)
def test_ids_stand_right_after_the_prefix_and_get_their_hyphen(name: str, expected: tuple[str, ...]) -> None:
    assert spec_ids(name) == expected
