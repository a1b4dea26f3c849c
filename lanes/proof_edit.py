"""Edits of a proof applied to text, and the lines that show whether an edit was executed.

Room: pure. Text in, text and line numbers out; the files belong to `lanes.breakits_copy`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence

from lanes.proof_declaration import Edit

DIFF_CONTEXT_LINES = 2


class EditProblem(ValueError):  # noqa: N818 - an answer about one edit, turned into a verdict and never shown as an error
    """Why an edit does not fit its text."""


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with every edit applied, one after the other.

    Raises: EditProblem when an anchor is missing or ambiguous, or the text is what it was.
    """
    edited = text
    for edit in edits:
        count = edited.count(edit.anchor)
        if count != 1:
            raise EditProblem(f"the anchor occurs {count} times: {edit.anchor.strip().splitlines()[0]:.80}")
        edited = edited.replace(edit.anchor, edit.replace)
    if edited == text:
        raise EditProblem("the edit changes nothing")
    return edited


def diff_of(file: str, before: str, after: str) -> str:
    """The change as a small unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{file}", f"b/{file}", lineterm="", n=DIFF_CONTEXT_LINES
    )
    return "\n".join(lines)


def watched_lines(before: str, after: str) -> frozenset[int]:
    """The lines of the edited text whose execution shows that the edit was reached.

    Shape: every line of each statement that holds a changed line, for a statement with a body its head alone; where
    lines were only taken out, the statements before and after the gap. Statements outside functions do not count:
    they run when the module is loaded, whatever a test does.
    Raises: SyntaxError when the edited text is no Python.
    """
    changed = _changed_lines(before, after)
    spans = list(_spans(ast.parse(after), in_function=False))
    found: set[int] = set()
    for line in changed:
        holding = [(last - first, first, head, inside) for first, last, head, inside in spans if first <= line <= last]
        if holding:
            _size, first, head, inside = min(holding)
            if inside:
                found.update(range(first, head + 1))
    return frozenset(found)


def _changed_lines(before: str, after: str) -> frozenset[int]:
    old, new = before.splitlines(), after.splitlines()
    found: set[int] = set()
    for tag, _i1, _i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in {"replace", "insert"}:
            found.update(range(j1 + 1, j2 + 1))
        elif tag == "delete":
            found.update({j1, j1 + 1})
    return frozenset(found)


def _spans(node: ast.AST, *, in_function: bool) -> Iterator[tuple[int, int, int, bool]]:
    """First line, last line, last line of the head, and whether a function holds it, for every statement below."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            last = child.end_lineno or child.lineno
            body = getattr(child, "body", None)
            head = max(child.lineno, body[0].lineno - 1) if body else last
            yield child.lineno, last, head, in_function
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _spans(child, in_function=inside)
