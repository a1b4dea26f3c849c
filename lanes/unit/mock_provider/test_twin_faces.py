"""The faces for httpx and httpx2 are one text: the libraries share no types, so it stands twice and may not drift."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "mock_provider"


def code_of(name: str) -> str:
    """The room's code in one spelling: library names alike, the docstring of the room left out."""
    text = (PACKAGE / name).read_text("utf-8").replace("httpx2", "httpx").replace("Mock2", "Mock")
    tree = ast.parse(text)
    return ast.unparse(ast.Module(tree.body[1:], []))


def test_the_two_faces_differ_in_the_name_of_the_library_and_in_nothing_else() -> None:
    assert code_of("httpx2_face.py") == code_of("httpx_face.py")
