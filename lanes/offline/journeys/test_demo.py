"""First contact: the demo shows a journey on real files, and says who spoke."""

from __future__ import annotations

import pytest

from lanes.demo import show_journey


@pytest.mark.claim("mock.wrapped-command")
def test_the_demo_shows_the_journey_and_says_that_its_answers_are_scripted(capfd: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    code = show_journey(shown.append)

    text = "".join(shown)
    printed = capfd.readouterr()
    assert (code, "not as the story says" in text) == (0, False)
    assert "the answers are scripted" in text
    assert text.index("FAIL: add(2, 3) gave -1") < text.index("ok: add(2, 3) gave 5")
    assert printed.out == "Fixed: add subtracted instead of adding. The test passes now.\n"
    assert "as scripted: steps used 5" in printed.err
