"""The fence of admission, read from its source: no suspension point between the last look and the hand-over."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from harness.surfaces.acp import admission

pytestmark = pytest.mark.claim("acp.admission")


SOURCE = inspect.getsource(admission)


def test_AC12_nothing_suspends_between_the_last_look_at_the_cancel_and_the_followup() -> None:
    (function,) = [
        node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.AsyncFunctionDef) and node.name == "admit"
    ]
    awaits = [node.lineno for node in ast.walk(function) if isinstance(node, ast.Await)]
    looks = [
        node.lineno for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr == "was_cancelled"
    ]
    (followup,) = [
        node.lineno for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr == "followup"
    ]
    assert not [line for line in awaits if max(looks) < line <= followup]


def test_the_two_sentences_of_the_fence_stand_at_their_places() -> None:
    words = " ".join(Path(admission.__file__).read_text(encoding="utf-8").replace("#", " ").split())
    assert "nothing may suspend: a cancel that could come between this last look and the hand-over" in words
    assert "What it left unreachable stays in the store until it is swept, and no message is queued." in words
    assert "`harness attachments sweep` pays that debt later" in words
