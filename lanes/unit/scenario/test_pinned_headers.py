"""Pinned request headers: stored once a class, tokens elsewhere, and the same in every member of the class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lanes.expected import Expected, MismatchError
from lanes.normalize import Json
from lanes.pinned_headers import (
    Header,
    check_headers,
    classes_of,
    doubled_pins,
    pin_names,
    read_classes,
    read_pins,
    take_headers,
)
from lanes.staleness import header_class

TOOLS: list[Json] = [{"type": "function", "function": {"name": "read"}}]
LOGGED: list[Json] = [{"name": "read"}]


def request(system: str = "Do it.", tools: list[Json] = TOOLS) -> dict[str, Json]:
    messages: list[Json] = [{"role": "system", "content": system}, {"role": "user", "content": "x"}]
    return {"body": {"model": "m", "messages": messages, "tools": tools}}


def logged(system: str = "Do it.") -> dict[str, Json]:
    return {"data": {"header": {"config": {"model": "m"}, "system": system, "tools": LOGGED}}}


def taken(
    story: str, *values: Json, stored: dict[tuple[str, ...], str] | None = None
) -> tuple[list[Json], list[Header]]:
    """What is left of a story's output, and the headers that were in it."""
    headers: list[Header] = []
    classes = classes_of(
        story, [value for value in values if isinstance(value, dict) and "body" in value], stored or {}
    )
    return [take_headers(value, classes, headers) for value in values], headers


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """A folder of expected output in which the class is pinned."""
    _, headers = taken("fix-test", request(), logged())
    check_headers("fix-test", headers, Expected(tmp_path, "accept"))
    return tmp_path


def test_the_pinning_story_stores_the_header_in_both_spellings_and_keeps_tokens(pinned: Path) -> None:
    kept, _ = taken("fix-test", request(), logged())
    pin = json.loads((pinned / "headers" / "shipped.json").read_text(encoding="utf-8"))

    assert pin == {"wire": {"system": "Do it.", "tools": TOOLS}, "log": {"system": "Do it.", "tools": LOGGED}}
    assert '"Do it."' not in json.dumps(kept)
    assert (kept[0], kept[1]) == (
        {
            "body": {
                "model": "m",
                "messages": [{"role": "system", "content": "<system of shipped>"}, {"role": "user", "content": "x"}],
                "tools": "<tools of shipped>",
            }
        },
        {
            "data": {
                "header": {"config": {"model": "m"}, "system": "<system of shipped>", "tools": "<tools of shipped>"}
            }
        },
    )
    assert pin_names() == ["headers/shipped.json"]


def test_taking_again_changes_nothing(pinned: Path) -> None:
    once, _ = taken("other", request(), logged(), stored=read_classes(pinned))
    again, found = taken("other", *once, stored=read_classes(pinned))

    assert (again, found) == (once, [])


@pytest.mark.parametrize("mode", ["compare", "accept"])
def test_a_member_that_differs_is_named_and_never_becomes_the_pin(mode: str, pinned: Path) -> None:
    before = (pinned / "headers" / "shipped.json").read_bytes()
    _, headers = taken("parallel-tools", request("Do it well."), stored=read_classes(pinned))

    with pytest.raises(
        MismatchError, match=r"in story parallel-tools:\n  system  expected \"Do it.\"  is \"Do it well.\""
    ):
        check_headers("parallel-tools", headers, Expected(pinned, mode))  # type: ignore[arg-type] # one of the two modes

    assert (pinned / "headers" / "shipped.json").read_bytes() == before


def test_a_changed_header_of_the_pinning_story_is_shown_as_the_pins_difference(pinned: Path) -> None:
    _, headers = taken("fix-test", request("Do it well."), logged("Do it well."), stored=read_classes(pinned))

    with pytest.raises(MismatchError, match=r"headers/shipped\.json: output differs") as caught:
        check_headers("fix-test", headers, Expected(pinned))

    assert '+  "system": "Do it well."' in str(caught.value)


def test_a_class_that_is_not_pinned_stays_in_full(pinned: Path) -> None:
    other = request(tools=[{"type": "function", "function": {"name": "write"}}])

    assert taken("other", other, stored=read_classes(pinned)) == ([other], [])


def test_recordings_know_the_pins_by_tools_and_digest(pinned: Path) -> None:
    body = request()["body"]
    names, digest = header_class(body)

    assert read_pins(pinned) == {names: digest}
    assert doubled_pins(pinned) == []
