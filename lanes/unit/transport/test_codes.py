"""Who knows error codes: the peer alone, and never those for a line that is no frame."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
RESERVED = range(-32768, -31999)  # JSON-RPC 2.0, section 5.1


def codes() -> Iterator[tuple[str, int]]:
    """Each reserved code that the harness spells, with its room."""
    for path in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))) if -number in RESERVED:
                    yield path.relative_to(ROOT).as_posix(), -number


def test_TR01_only_the_peer_spells_error_codes_and_none_for_a_line_that_is_no_frame() -> None:
    assert set(codes()) == {("harness/transport/rpc.py", code) for code in (-32601, -32602, -32603)}
