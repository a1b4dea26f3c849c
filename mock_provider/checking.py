"""`mock-provider check`: scripts read and summed up, or everything that is wrong with them.

Room: reads files and writes to the standard streams; the command comes in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mock_provider.errors import ScriptError, UsageError
from mock_provider.json_values import Json, JsonObject
from mock_provider.limits import Limits
from mock_provider.random_faults import say_seeds
from mock_provider.script import load_script
from mock_provider.script_fields import near_miss
from mock_provider.script_fit import FITS
from mock_provider.standard_streams import say, tell
from mock_provider.steps import Script


def check_scripts(paths: Sequence[Path], limits: Limits, *, as_json: bool, dialects: Sequence[str] = ()) -> int:
    """Check scripts and say what they hold, or everything that is wrong.

    Shape: exit code 0 or 2; dialects are those that each script has to fit. Raises: UsageError for an unknown one.
    """
    for dialect in dialects:
        if dialect not in FITS:
            what = f"dialect '{dialect}' is unknown{near_miss(dialect, tuple(FITS))}"
            raise UsageError(what, where="--dialect", expected=f"one of {', '.join(FITS)}")
    results: list[Json] = []
    exit_code = 0
    for path in paths:
        try:
            script = load_script(path, limits, tuple(dialects))
        except ScriptError as error:
            exit_code = error.exit_code
            results.append({"file": str(path), "ok": False, "problems": _problems(error)})
            if not as_json:
                tell(f"{error}\n")
            continue
        results.append({"file": str(path), "ok": True, **_summary(script), "problems": []})
        if not as_json:
            say(_summary_text(str(path), script))
    if as_json:
        say(json.dumps({"ok": exit_code == 0, "scripts": results}, indent=2) + "\n")
    return exit_code


def _problems(error: ScriptError) -> list[Json]:
    return [
        {
            "line": problem.line,
            "column": problem.column,
            "field": problem.field,
            "code": problem.code,
            "what": problem.what,
            "expected": problem.expected,
            "fix": problem.fix,
        }
        for problem in error.problems
    ]


def _summary(script: Script) -> JsonObject:
    conversations: list[Json] = [
        {"name": conversation.name, "steps": len(conversation.steps()), "background": conversation.is_background}
        for conversation in script.conversations
    ]
    gates: list[Json] = list(script.gate_names())
    dialects: list[Json] = list(script.dialects)
    return {
        "digest": script.digest,
        "model": script.model,
        "flavour": script.flavour,
        "dialects": dialects,
        "conversations": conversations,
        "gates": gates,
    }


def _summary_text(path: str, script: Script) -> str:
    steps = sum(len(conversation.steps()) for conversation in script.conversations)
    lines = [f"{path}: ok: {_count(len(script.conversations), 'conversation')}, {_count(steps, 'step')}"]
    for conversation in script.conversations:
        found = "by its 'when'" if conversation.when else "takes any request"
        name = f'"{conversation.name}"' if conversation.name else "(single)"
        lines.append(f"  {name}: {_count(len(conversation.steps()), 'step')}, {found}")
    if script.dialects:
        lines.append(f"  dialects: {', '.join(script.dialects)}")
    if script.gate_names():
        lines.append(f"  gates: {', '.join(script.gate_names())}")
    if say_seeds(script):
        lines.append(f"  {say_seeds(script)}")
    return "\n".join(lines) + "\n"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
