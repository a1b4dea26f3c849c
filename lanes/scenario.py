"""Scenarios: one story each, written once as JSON and bound to several lanes.

Room: the suites, the recorder and the demo may come in. It loads and checks stories; `program` runs them.

A story holds the files of a small project, the words of the scripted model, the runs of the program in order, and what
must then be true of the world (files, commands run again from outside, processes) and of the session log.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from lanes.errors import ScenarioError
from lanes.normalize import Json
from lanes.world import CommandCheck, FileCheck, ProcessCheck, WorldCheck

T = TypeVar("T")

SCENARIO_FOLDER = Path(__file__).parent / "scenarios"
EXIT_CODES = range(256)


@dataclass(frozen=True, slots=True)
class Run:
    """One start of the program.

    Shape: stdout is the whole expected standard output, None when it is not compared; stderr names pieces that must
    occur; interrupt_after is a piece of text: once the program has shown it with --json, it gets an interrupt.
    forced are the tools that the steps of this turn have to call, in order, where the model of this machine plays it;
    None where the story is not for so small a model.
    """

    task: str
    resume: bool = False
    flags: tuple[str, ...] = ()
    exit: int = 0
    stdout: str | None = None
    stderr: tuple[str, ...] = ()
    interrupt_after: str | None = None
    forced: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the session log must say at the end; None is not looked at.

    Shape: turn_ends are the reasons of the turns in order; tools is the exact order of calls and results, each
    "call ID", "result ID" or "error ID CODE"; retries are the failure codes that were retried, in order, with
    the milliseconds waited where the provider had asked for a time ("RATE_LIMIT 1000"); headers are the reasons for
    which a request header was logged.
    """

    turn_ends: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    retries: tuple[str, ...] | None = None
    headers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story. script is the mock provider's script as a JSON object; its own checks run when it is used."""

    name: str
    claim: str
    story: str
    workspace: Mapping[str, str]
    script: dict[str, Json]
    runs: tuple[Run, ...]
    world: tuple[WorldCheck, ...]
    log: LogFacts = field(default_factory=LogFacts)

    @property
    def is_for_small_models(self) -> bool:
        """Whether the model of this machine can play the story: every turn says which tools its steps call."""
        return all(run.forced is not None for run in self.runs)

    @property
    def forced(self) -> tuple[tuple[str, ...], ...]:
        """The tools of the steps of each turn."""
        return tuple(run.forced or () for run in self.runs)


def load_scenario(path: Path) -> Scenario:
    """Read and check one scenario file.

    Raises: ScenarioError with file and field; nothing is guessed and no unknown field is passed over.
    """
    where = _shown(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "cannot be read"
        names = sorted(found.stem for found in path.parent.glob("*.json"))
        raise ScenarioError(
            f"scenario cannot be read: {reason}",
            where=where,
            expected=f"one of {', '.join(names)}" if names else "a readable file",
            fix=_near_miss(path.stem, names) or "check the path",
        ) from None
    try:
        document: Json = json.loads(text, object_pairs_hook=_refuse_duplicates)
    except _DuplicateKeyError as error:
        raise ScenarioError(
            f"field {error.key!r} is given twice", where=where, expected="each field once", fix="remove one of them"
        ) from None
    except ValueError as error:
        raise ScenarioError(
            f"not valid JSON: {error}", where=where, expected="one JSON object", fix="correct the place named"
        ) from None
    return parse_scenario(document, where=where)


def load_scenarios(folder: Path = SCENARIO_FOLDER) -> dict[str, Scenario]:
    """All scenarios of a folder by name.

    Raises: ScenarioError also when a file is not named after its scenario.
    """
    found: dict[str, Scenario] = {}
    for path in sorted(folder.glob("*.json")):
        scenario = load_scenario(path)
        if scenario.name != path.stem:
            raise ScenarioError(
                f"name is {scenario.name!r}, the file is {path.name}",
                where=f"{_shown(path)}, name",
                expected=f"{path.stem!r}",
                fix="name the file after the scenario",
            )
        found[scenario.name] = scenario
    return found


def find_scenario(name: str, folder: Path = SCENARIO_FOLDER) -> Scenario:
    """The scenario of that name."""
    return load_scenario(folder / f"{name}.json")


def parse_scenario(document: Json, *, where: str) -> Scenario:
    """Check a whole scenario document."""
    fields = _Fields(document, where)
    fields.only("name", "claim", "story", "workspace", "script", "runs", "world", "log")
    name = fields.text("name")
    scenario = Scenario(
        name=name,
        claim=fields.text("claim"),
        story=fields.text("story"),
        workspace=_workspace(fields),
        script=fields.required("script", _an_object, "an object, the script of the mock provider"),
        runs=tuple(_run(item) for item in fields.items("runs")),
        world=tuple(_world_check(item) for item in fields.items("world")),
        log=_log_facts(fields),
    )
    if not scenario.runs:
        raise fields.error("runs", "no run is given", "at least one run of the program", "add a run with a task")
    if scenario.runs[0].resume:
        raise fields.error(
            "runs[0].resume", "the first run cannot resume", "false or absent", "start the session with a first run"
        )
    if not scenario.world and scenario.log == LogFacts():
        raise fields.error("world", "nothing is checked", "at least one check", "say what must be true afterwards")
    return scenario


def write_workspace(scenario: Scenario, folder: Path) -> None:
    """Put the story's files into a folder, byte for byte."""
    for name, text in scenario.workspace.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))


def script_text(scenario: Scenario) -> str:
    """The story's script as the text of a script file; the same story gives the same bytes."""
    return json.dumps(scenario.script, ensure_ascii=False, indent=1) + "\n"


def _workspace(fields: _Fields) -> dict[str, str]:
    found: dict[str, str] = {}
    entries = fields.required("workspace", _an_object, "an object from file name to text")
    for name, content in entries.items():
        place = f"workspace.{name}"
        if name.startswith("/") or ".." in name.split("/") or not name:
            raise fields.error(place, "leaves the workspace", "a relative path inside the workspace", "rename the file")
        if isinstance(content, list) and all(isinstance(line, str) for line in content):
            found[name] = "".join(f"{line}\n" for line in content)
        elif isinstance(content, str):
            found[name] = content
        else:
            raise fields.error(place, f"is {_kind(content)}", "a text or a list of lines", "write the file's text")
    return found


def _run(fields: _Fields) -> Run:
    fields.only("task", "resume", "flags", "exit", "stdout", "stderr", "interrupt_after", "forced")
    code = fields.optional("exit", _an_integer, "an exit code from 0 to 255", 0)
    if code not in EXIT_CODES:
        raise fields.error("exit", f"is {code}", "an exit code from 0 to 255", "use the code the program ends with")
    run = Run(
        task=fields.text("task"),
        resume=fields.optional("resume", _a_bool, "true or false", False),
        flags=fields.texts("flags"),
        exit=code,
        stdout=fields.optional("stdout", _a_text_or_none, "a text", None),
        stderr=fields.texts("stderr"),
        interrupt_after=fields.optional("interrupt_after", _a_text_or_none, "a text", None),
        forced=fields.texts("forced") if fields.has("forced") else None,
    )
    if run.interrupt_after is not None and "--json" not in run.flags:
        raise fields.error(
            "interrupt_after", "the run has no --json", "the flag --json", "add it to flags: the moment is read there"
        )
    return run


def _world_check(fields: _Fields) -> WorldCheck:
    kinds = [kind for kind in ("file", "command", "no_process") if fields.has(kind)]
    if len(kinds) != 1:
        raise fields.error(
            "", f"names {len(kinds)} kinds of check", "exactly one of file, command, no_process", "split the check"
        )
    if kinds == ["file"]:
        return _file_check(fields)
    if kinds == ["command"]:
        fields.only("command", "exit", "stdout")
        command = fields.texts("command")
        if not command:
            raise fields.error("command", "is empty", "a command and its arguments", "name the command")
        return CommandCheck(
            command=command,
            exit=fields.optional("exit", _an_integer, "an exit code", 0),
            stdout=fields.optional("stdout", _a_text_or_none, "a text", None),
        )
    fields.only("no_process")
    return ProcessCheck(marker=fields.text("no_process"))


def _file_check(fields: _Fields) -> FileCheck:
    fields.only("file", "equals", "contains", "absent")
    claims = [claim for claim in ("equals", "contains", "absent") if fields.has(claim)]
    if len(claims) != 1:
        raise fields.error(
            "file", f"is checked {len(claims)} ways", "exactly one of equals, contains, absent", "split the check"
        )
    if claims == ["absent"] and not fields.optional("absent", _a_bool, "true", True):
        raise fields.error("absent", "is false", "true", "use contains or equals for a file that must exist")
    return FileCheck(
        file=fields.text("file"),
        equals=fields.optional("equals", _a_text_or_none, "a text", None),
        contains=fields.optional("contains", _a_text_or_none, "a text", None),
        absent=claims == ["absent"],
    )


def _log_facts(fields: _Fields) -> LogFacts:
    if not fields.has("log"):
        return LogFacts()
    inner = fields.inside("log")
    inner.only("turn_ends", "tools", "retries", "headers")
    return LogFacts(
        turn_ends=inner.texts("turn_ends") if inner.has("turn_ends") else None,
        tools=inner.texts("tools") if inner.has("tools") else None,
        retries=inner.texts("retries") if inner.has("retries") else None,
        headers=inner.texts("headers") if inner.has("headers") else None,
    )


class _DuplicateKeyError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _refuse_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(key)
        found[key] = value
    return found


class _Fields:
    """One object of the document with its place, for checks that name what they met."""

    def __init__(self, value: Json, where: str, place: str = "") -> None:
        self._where = where
        self._place = place
        if not isinstance(value, dict):
            raise self.error("", f"is {_kind(value)}", "an object", "write the fields between braces")
        self._value: dict[str, Json] = value

    def error(self, key: str, what: str, expected: str, fix: str) -> ScenarioError:
        """The error about one field of this object."""
        place = ".".join(part for part in (self._place, key) if part)
        where = f"{self._where}, {place}" if place else self._where
        return ScenarioError(what, where=where, expected=expected, fix=fix)

    def only(self, *known: str) -> None:
        """Refuse unknown fields, with the nearest known one."""
        for key in self._value:
            if key not in known:
                raise self.error(
                    key, "unknown field", f"one of {', '.join(known)}", _near_miss(key, known) or "remove the field"
                )

    def has(self, key: str) -> bool:
        """Whether the field is given."""
        return key in self._value

    def required(self, key: str, check: Callable[[Json], T | None], expected: str) -> T:
        """The field's checked value."""
        if key not in self._value:
            raise self.error(key, "is missing", expected, f"add the field {key!r}")
        value = check(self._value[key])
        if value is None:
            raise self.error(key, f"is {_kind(self._value[key])}", expected, "give a value of that kind")
        return value

    def optional(self, key: str, check: Callable[[Json], T | None], expected: str, default: T) -> T:
        """The field's checked value, or the default when it is absent."""
        return self.required(key, check, expected) if key in self._value else default

    def text(self, key: str) -> str:
        """A text that says something."""
        value = self.required(key, _a_text_or_none, "a text")
        if not value.strip():
            raise self.error(key, "is blank", "a text", "say something")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; absent is empty."""
        return self.optional(key, _texts, "a list of texts", ())

    def items(self, key: str) -> list[_Fields]:
        """A list of objects; absent is empty."""
        found: list[Json] = self.required(key, _a_list, "a list of objects") if self.has(key) else []
        place = f"{self._place}.{key}" if self._place else key
        return [_Fields(item, self._where, f"{place}[{index}]") for index, item in enumerate(found)]

    def inside(self, key: str) -> _Fields:
        """The object under a field."""
        place = f"{self._place}.{key}" if self._place else key
        return _Fields(self._value[key], self._where, place)


def _an_object(value: Json) -> dict[str, Json] | None:
    return value if isinstance(value, dict) else None


def _a_list(value: Json) -> list[Json] | None:
    return value if isinstance(value, list) else None


def _texts(value: Json) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    found = tuple(item for item in value if isinstance(item, str))
    return found if len(found) == len(value) else None


def _a_text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _an_integer(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _a_bool(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _kind(value: Json) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _near_miss(word: str, known: tuple[str, ...] | list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def _shown(path: Path) -> str:
    """The path as a reader of the repository knows it."""
    try:
        return path.resolve().relative_to(Path(__file__).resolve().parent.parent).as_posix()
    except ValueError:
        return path.as_posix()
