from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        pytest.param("reason='later'", "an expected failure names its issue and its last day", id="no-issue"),
        pytest.param("", "an expected failure names its issue and its last day", id="no-reason"),
        pytest.param(
            "reason='https://example.com/1 until 2999-13-01'",
            "an expected failure names its issue and its last day",
            id="no-such-day",
        ),
        pytest.param(
            "reason='https://example.com/1 until 2999-01-01', strict=False", "an expected failure is strict", id="loose"
        ),
    ],
)
def test_status_36_an_expected_failure_is_strict_and_has_an_issue_and_a_last_day(
    project, mark: str, message: str
) -> None:
    project.write(
        "lanes/unit/test_a.py", f"import pytest\n@pytest.mark.xfail({mark})\ndef test_a():\n    assert False\n"
    )

    ended = project.run("run", "unit")

    assert (ended.exit_code, message in ended.stdout) == (2, True)
    assert project.records("unit") == {}
