"""What a server answered becomes text that any log can hold, whole or with a note of what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from harness.capabilities.mcp_results import HEAD_CHARACTERS, TAIL_CHARACTERS, output_of
from lanes.unit.capabilities.mcp_bench import text_of


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"content": [text("a"), text("b")]}, "a\nb", id="texts"),
        pytest.param({"content": []}, "[no output]", id="nothing"),
        pytest.param({}, "[no output]", id="no-content"),
        pytest.param({"content": [], "structuredContent": {"b": 1, "a": "é"}}, '{"a": "é", "b": 1}', id="structured"),
        pytest.param({"content": [text('{"a": 1}')], "structuredContent": {"a": 1}}, '{"a": 1}', id="said-twice"),
        pytest.param({"content": [text("5")], "structuredContent": {"result": 5}}, "5", id="wrapped-number"),
        pytest.param({"content": [text("hi")], "structuredContent": {"result": "hi"}}, "hi", id="wrapped-text"),
        pytest.param(
            {"content": [text("one row")], "structuredContent": {"rows": 1}}, 'one row\n{"rows": 1}', id="both"
        ),
        pytest.param(
            {"content": [text("see"), {"type": "image", "mimeType": "image/png", "data": "AAAA"}]},
            "see\n[image/png content was left out, about 3 bytes]",
            id="picture",
        ),
        pytest.param(
            {"content": [{"type": "audio", "mimeType": "audio/wav", "data": ""}]},
            "[audio/wav content was left out, about 0 bytes]",
            id="sound",
        ),
        pytest.param(
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "inside"}}]}, "inside", id="resource"
        ),
        pytest.param(
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "blob": "AAAAAAAA"}}]},
            "[binary content of a://b was left out, about 6 bytes]",
            id="bytes",
        ),
        pytest.param(
            {"content": [{"type": "resource_link", "name": "log", "uri": "file:///log"}]}, "log: file:///log", id="link"
        ),
        pytest.param(
            {"content": [{"type": "hologram"}]}, "[content of the unknown kind hologram was left out]", id="unknown"
        ),
        pytest.param(
            {"content": [text("a\x00b\x1b[31m\ud800\tc\n")]}, "a\\x00b\\x1b[31m\\ud800\tc\n", id="unprintable"
        ),
    ],
)
def test_an_answer_is_shown_as_text(answer: dict[str, Any], expected: str) -> None:
    output = output_of(answer)
    assert (text_of(output), output.is_error, output.code) == (expected, False, None)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("no such file", "Error: no such file", id="plain"),
        pytest.param("Error: no such file", "Error: no such file", id="says-so-itself"),
    ],
)
def test_an_answer_that_is_an_error_begins_as_every_error_does(said: str, expected: str) -> None:
    output = output_of({"content": [text(said)], "isError": True})
    assert (text_of(output), output.is_error) == (expected, True)


def test_only_a_plain_true_makes_an_error() -> None:
    assert output_of({"content": [text("a")], "isError": "true"}).is_error is False


def test_a_long_answer_is_cut_in_the_middle_and_says_so() -> None:
    whole = "a" * HEAD_CHARACTERS + "b" * 5000 + "c" * TAIL_CHARACTERS
    shown = text_of(output_of({"content": [text(whole)]}))
    note = f"[answer of {len(whole)} characters, cut; ask for less to see the rest]"
    assert shown == f"{'a' * HEAD_CHARACTERS}\n[... 5000 characters left out ...]\n{'c' * TAIL_CHARACTERS}\n{note}"


def test_an_answer_of_exactly_the_limit_is_whole() -> None:
    whole = "a" * (HEAD_CHARACTERS + TAIL_CHARACTERS)
    assert text_of(output_of({"content": [text(whole)]})) == whole
