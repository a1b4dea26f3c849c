"""Pinned request headers: system text and tools stand once for each class, and as tokens everywhere else.

Room: the pinned stories, transcripts and the reading of recordings come in. A class is known by the names of its tools;
one story pins it, and whatever else has those tools must have exactly that header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanes.expected import Expected
from lanes.normalize import Json
from lanes.record import digest_json

EXPECTED_FOLDER = Path(__file__).parent / "snapshot" / "expected"
HEADERS = "headers"  # the folder of the pins, below that of expected output
PINNING: Mapping[str, str] = {"shipped": "fix-test"}  # each class, and the story that pins it

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """One header that was met: its class, whether the wire or the log spells it, and what it says."""

    class_name: str
    form: str
    value: Json


def pin_names() -> list[str]:
    """Every file that a class owns, below the folder of expected output."""
    return [f"{HEADERS}/{name}.json" for name in PINNING]


def read_classes(folder: Path = EXPECTED_FOLDER) -> dict[Names, str]:
    """The classes that are pinned, by the names of their tools."""
    return {_names(pin["wire"]): name for name, pin in _pins(folder).items()}


def read_pins(folder: Path = EXPECTED_FOLDER) -> dict[Names, str]:
    """The digests of the pinned headers as the wire spells them, by the names of their tools."""
    return {_names(pin["wire"]): digest_json(pin["wire"]) for pin in _pins(folder).values()}


def doubled_pins(folder: Path = EXPECTED_FOLDER) -> list[str]:
    """Classes whose pins say the same, a line each: one of them is no class of its own."""
    holders: dict[str, str] = {}
    doubled: list[str] = []
    for name, pin in sorted(_pins(folder).items()):
        first = holders.setdefault(digest_json(pin), name)
        if first != name:
            doubled.append(f"{HEADERS}/{name}.json: says the same as {HEADERS}/{first}.json")
    return doubled


def classes_of(story: str, requests: Sequence[Json], stored: Mapping[Names, str]) -> dict[Names, str]:
    """The classes by which a story's output is read: the stored ones, and the one it pins itself."""
    own = {name for name, pinning in PINNING.items() if pinning == story}
    found = dict(stored)
    for name in own:
        found = {names: each for names, each in found.items() if each != name}
        body = requests[0] if requests else None
        inner = body.get("body") if isinstance(body, dict) else None
        if isinstance(inner, dict):
            found[_names(inner)] = name
    return found


def take_headers(value: Json, classes: Mapping[Names, str], taken: list[Header]) -> Json:
    """The value with tokens in place of known headers, which are added to taken; what is a token already stays."""
    if isinstance(value, list):
        return [take_headers(item, classes, taken) for item in value]
    if not isinstance(value, dict):
        return value
    name = classes.get(_names(value)) if isinstance(value.get("tools"), list) else None
    if name is not None and isinstance(value.get("messages"), list):
        return _take_from_request(value, name, classes, taken)
    if name is not None and "config" in value:
        taken.append(Header(name, "log", {"system": value.get("system"), "tools": value["tools"]}))
        tokens: dict[str, Json] = {"system": f"<system of {name}>", "tools": f"<tools of {name}>"}
        return {key: tokens.get(key, item) for key, item in value.items()}
    return {key: take_headers(item, classes, taken) for key, item in value.items()}


def check_headers(story: str, taken: Sequence[Header], expected: Expected) -> None:
    """Compare the headers that were met with their pins; the pinning story alone may have its own accepted.

    Raises: MismatchError.
    """
    readers = Expected(expected.root)  # a member of a class never changes the pin of it
    for name in sorted({header.class_name for header in taken}):
        forms = {header.form: header.value for header in taken if header.class_name == name}
        if PINNING[name] == story and set(forms) == {"wire", "log"}:
            expected.check_text(f"{HEADERS}/{name}.json", _spelled(forms))
        pin = _pins(expected.root).get(name, {})
        for header in taken:
            if header.class_name == name:
                readers.check_value(f"{HEADERS}/{name}.json", pin.get(header.form), header.value, story)


def _take_from_request(
    body: dict[str, Json], name: str, classes: Mapping[Names, str], taken: list[Header]
) -> dict[str, Json]:
    messages = body["messages"]
    rest = list(messages) if isinstance(messages, list) else []
    system: Json = None
    if rest and isinstance(rest[0], dict) and rest[0].get("role") == "system":
        system = rest[0].get("content")
        rest[0] = {**rest[0], "content": f"<system of {name}>"}
    taken.append(Header(name, "wire", {"system": system, "tools": body["tools"]}))
    kept: dict[str, Json] = {"messages": rest, "tools": f"<tools of {name}>"}
    return {key: kept.get(key, item) for key, item in body.items()}


def _pins(folder: Path) -> dict[str, dict[str, Json]]:
    found = {name: folder / HEADERS / f"{name}.json" for name in PINNING}
    return {name: json.loads(path.read_bytes()) for name, path in found.items() if path.is_file()}


def _spelled(forms: Mapping[str, Json]) -> str:
    return json.dumps(dict(forms), sort_keys=True, indent=1, ensure_ascii=True) + "\n"


def _names(header: Json) -> Names:
    """The sorted names of a header's tools, as the wire or the log spells them."""
    tools = header.get("tools") if isinstance(header, dict) else None
    names: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(inner, dict):
            names.append(str(inner.get("name")))
    return tuple(sorted(names))
