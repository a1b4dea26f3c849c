"""Spec ids in test names: written without the hyphen there, selected with it.

Room: pure. The item hooks and the suites' conftest come in.
"""

from __future__ import annotations

import re

_ID = re.compile(r"([A-Z]{1,3})([0-9]{1,3}[a-z]?)")


def spec_ids(name: str) -> tuple[str, ...]:
    """Return the ids that a test's name begins with, as the specs spell them: `test_AC12_AC13_x` gives AC-12 and AC-13.

    Shape: ids stand right after `test_`; a field case (`test_case_B10_…`) has none, so that the two never collide.
    """
    found = []
    for word in name.removeprefix("test_").split("_"):
        match = _ID.fullmatch(word)
        if match is None:
            break
        found.append(f"{match.group(1)}-{match.group(2)}")
    return tuple(found)
