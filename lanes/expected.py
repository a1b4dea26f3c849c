"""Our own store of expected output: compare, find orphans, accept.

Room: the snapshot suite and `lanes accept` may come in. Comparing only reads; accepting writes, is asked for by an
explicit word, and is refused in CI and in a worker of a parallel run.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lanes.errors import ExpectedError
from lanes.normalize import Json
from lanes.whole_file import write_whole

Mode = Literal["compare", "accept"]

MODE_VARIABLE = "LANES_EXPECTED"
MODES: tuple[Mode, ...] = ("compare", "accept")
SHOWN_DIFFERENCES = 6
SHOWN_CHARS = 160


class MismatchError(AssertionError):
    """The output is not the expected one; the message names the event and the field."""


def mode_of(environ: Mapping[str, str]) -> Mode:
    """Whether expected output is compared or accepted.

    Raises: ExpectedError for an unknown word, and for `accept` in CI or in a worker process.
    """
    word = environ.get(MODE_VARIABLE, "") or "compare"
    if word not in MODES:
        close = difflib.get_close_matches(word, MODES, n=1)
        raise ExpectedError(
            f"{MODE_VARIABLE} is {word!r}",
            where="expected output",
            expected="compare or accept",
            fix=f"did you mean {close[0]!r}?" if close else "leave it unset to compare",
        )
    if word == "accept" and environ.get("CI"):
        raise ExpectedError(
            "expected output is not accepted in CI",
            where="expected output",
            expected="a person who reads the difference",
            fix="run `tox -e accept` on your machine and commit the result",
        )
    if word == "accept" and environ.get("PYTEST_XDIST_WORKER"):
        raise ExpectedError(
            "expected output is not accepted by parallel workers",
            where="expected output",
            expected="one process",
            fix="run without -n",
        )
    return word


@dataclass(slots=True)
class Expected:
    """The expected files below one folder.

    Shape: names are relative, `story/session.jsonl`; changed lists what accepting wrote.
    """

    root: Path
    mode: Mode = "compare"
    changed: list[str] = field(default_factory=list)

    def check_events(self, name: str, events: Sequence[Json]) -> None:
        """Compare a list of JSON values with the stored one, event by event.

        Raises: MismatchError naming the event, the path inside it and its neighbours.
        """
        if self.mode == "accept":
            self._accept(name, encode_events(events))
            return
        stored = decode_events(self._stored(name), where=name)
        differences = diff_events(stored, events)
        if differences:
            raise MismatchError(_report(name, differences))

    def check_text(self, name: str, text: str) -> None:
        """Compare a text with the stored one, byte for byte.

        Raises: MismatchError with a line difference.
        """
        if self.mode == "accept":
            self._accept(name, text)
            return
        stored = self._stored(name)
        if stored != text:
            lines = difflib.unified_diff(stored.split("\n"), text.split("\n"), "expected", "actual", n=1, lineterm="")
            raise MismatchError(_report(name, list(lines)))

    def check_value(self, name: str, stored: Json, value: Json, story: str) -> None:
        """Compare a value that several stories have in common with the stored one; it is never accepted here.

        Raises: MismatchError naming the story and the paths.
        """
        differences = diff_json(stored, value)
        if differences:
            raise MismatchError(_report(name, [f"in story {story}:", *differences[:SHOWN_DIFFERENCES]]))

    def _stored(self, name: str) -> str:
        path = self.root / name
        try:
            return path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise MismatchError(_report(name, ["no expected output is stored"])) from None

    def _accept(self, name: str, text: str) -> None:
        path = self.root / name
        data = text.encode("utf-8")
        if path.is_file() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
        self.changed.append(name)


def orphans(root: Path, named: Iterable[str]) -> list[str]:
    """What stands in the folder and belongs to no story, or is named and missing or named twice; one line each."""
    names = list(named)
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    twice = sorted({name for name in names if names.count(name) > 1})
    return [
        *(f"{name}: no story names this file" for name in sorted(found - set(names))),
        *(f"{name}: named and not there" for name in sorted(set(names) - found)),
        *(f"{name}: named by more than one story" for name in twice),
    ]


def encode_events(events: Sequence[Json]) -> str:
    """One compact JSON value a line, keys sorted, ASCII only."""
    lines = [json.dumps(event, sort_keys=True, separators=(",", ":"), allow_nan=False) for event in events]
    return "".join(f"{line}\n" for line in lines)


def decode_events(text: str, *, where: str) -> list[Json]:
    """The values of a stored file.

    Raises: ExpectedError naming the line that is not JSON.
    """
    events: list[Json] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        try:
            events.append(json.loads(line))
        except ValueError as error:
            raise ExpectedError(
                f"not valid JSON: {error}",
                where=f"{where}, line {number}",
                expected="one JSON value a line",
                fix="restore the file, or accept it again: tox -e accept",
            ) from None
    return events


def diff_events(expected: Sequence[Json], actual: Sequence[Json]) -> list[str]:
    """How two lists of events differ: event number, path, both values, and the event before; empty when equal."""
    lines: list[str] = []
    for index, (old, new) in enumerate(zip(expected, actual, strict=False)):
        found = diff_json(old, new)
        if not found:
            continue
        before = f" after {_name(expected[index - 1])}" if index else ""
        lines.append(f"event {index} ({_name(old)}){before}:")
        lines.extend(f"  {line}" for line in found[:SHOWN_DIFFERENCES])
        if len(found) > SHOWN_DIFFERENCES:
            lines.append(f"  and {len(found) - SHOWN_DIFFERENCES} more")
        break
    shorter = min(len(expected), len(actual))
    if len(expected) != len(actual):
        extra, word = (expected, "missing") if len(expected) > len(actual) else (actual, "extra")
        names = ", ".join(_name(event) for event in extra[shorter : shorter + SHOWN_DIFFERENCES])
        lines.append(f"{len(expected)} events expected, {len(actual)} came; {word}: {names}")
    return lines


def diff_json(expected: Json, actual: Json, path: str = "") -> list[str]:
    """Every place where two JSON values differ, types included: 1, 1.0 and true are three values."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        lines: list[str] = []
        for key in sorted({*expected, *actual}):
            place = f"{path}.{key}" if path else key
            if key not in actual:
                lines.append(f"{place}  expected {_shown(expected[key])}  is absent")
            elif key not in expected:
                lines.append(f"{place}  not expected  is {_shown(actual[key])}")
            else:
                lines.extend(diff_json(expected[key], actual[key], place))
        return lines
    if isinstance(expected, list) and isinstance(actual, list):
        lines = []
        for index in range(max(len(expected), len(actual))):
            place = f"{path}[{index}]"
            if index >= len(actual):
                lines.append(f"{place}  expected {_shown(expected[index])}  is absent")
            elif index >= len(expected):
                lines.append(f"{place}  not expected  is {_shown(actual[index])}")
            else:
                lines.extend(diff_json(expected[index], actual[index], place))
        return lines
    if type(expected) is type(actual) and expected == actual:
        return []
    return [f"{path or 'value'}  expected {_shown(expected)}  is {_shown(actual)}"]


def accept_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the snapshot suite accepts; checked first.

    Raises: ExpectedError when accepting is refused here.
    """
    wanted = {**environ, MODE_VARIABLE: "accept"}
    mode_of(wanted)
    return wanted


def from_environment(root: Path) -> Expected:
    """The store as the environment asks for it."""
    return Expected(root, mode_of(os.environ))


def _report(name: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return (
        f"{name}: output differs from the expected one [EXPECTED_MISMATCH]\n{body}\n"
        "  fix: undo the change, or accept the new output after reading it: tox -e accept"
    )


def _name(event: Json) -> str:
    if isinstance(event, dict):
        kind = event.get("type") or event.get("method")
        if isinstance(kind, str):
            return kind
    return type(event).__name__


def _shown(value: Json) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
