"""Which children of a process the guard cannot look into, told from the events with which they are started.

Room: `lanes.guard` comes in, at the first child of a process. It imports almost nothing, as the guard itself.
"""

from __future__ import annotations

import os
import sys

from lanes.guard import GUARD_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STARTUP_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")  # noqa: PTH100, PTH118, PTH120 - pathlib is not loaded at interpreter start

WITHOUT_ENVIRONMENT = "a child without the guard's environment"
ISOLATED = "a Python child in isolated mode"
NO_PYTHON = "a child that is not Python"

_IGNORES_ENVIRONMENT = frozenset("IES")  # -S leaves out `site`, which is what loads the guard
_ENDS_OPTIONS = frozenset("cm")  # what follows belongs to the program
_TAKES_VALUE = frozenset("WX")
_FIRST_LINE_BYTES = 256


def why_unseen(arguments: tuple[object, ...]) -> str:
    """Say why the guard will not stand in a child, from the arguments of its audit event; empty when it will.

    Source: CPython, audit events subprocess.Popen (executable, args, cwd, env), os.exec and os.posix_spawn (path, args,
    env), os.system (command).
    """
    if len(arguments) == 1:
        return NO_PYTHON  # a shell
    environment = _environment(arguments[-1])
    startup = environment.get("PYTHONPATH", "").split(os.pathsep)
    if not environment.get(GUARD_VARIABLE) or STARTUP_FOLDER not in map(os.path.abspath, startup):
        return WITHOUT_ENVIRONMENT
    words = _words(arguments[1])
    program = _text(arguments[0]) or (words[0] if words else "")
    interpreter = [program, *words[1:]] if _is_interpreter(program) else _first_line(program, environment)
    if not interpreter:
        return NO_PYTHON
    return ISOLATED if _is_isolated(interpreter[1:]) else ""


def _environment(given: object) -> Mapping[str, str]:
    if given is None or not hasattr(given, "items"):
        return os.environ
    return {_text(name): _text(value) for name, value in given.items()}


def _words(given: object) -> Sequence[str]:
    return [_text(word) for word in given] if isinstance(given, (list, tuple)) else [_text(given)]


def _is_interpreter(program: str) -> bool:
    return program == sys.executable or os.path.basename(program).startswith("python")  # noqa: PTH119 - as above


def _first_line(program: str, environment: Mapping[str, str]) -> list[str]:
    """The interpreter and its options that a script names in its first line; none for a script of another kind."""
    found = program
    if os.sep not in program:
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        places = [os.path.join(folder, program) for folder in folders]  # noqa: PTH118 - as above
        found = next((place for place in places if os.path.isfile(place)), "")  # noqa: PTH113 - as above
    try:
        with open(found, "rb") as file:  # noqa: PTH123 - as above
            line = file.read(_FIRST_LINE_BYTES).partition(b"\n")[0]
    except OSError:
        return []
    words = line.decode("utf-8", "replace").removeprefix("#!").split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":  # noqa: PTH119 - as above
        words = [word for word in words[1:] if word != "-S"]
    return words if words and _is_interpreter(words[0]) else []


def _is_isolated(options: Sequence[str]) -> bool:
    rest = iter(options)
    for option in rest:
        if not option.startswith("-") or option in {"-", "--"}:
            return False
        if option.startswith("--"):
            continue
        letters = option[1:]
        for place, letter in enumerate(letters, start=1):
            if letter in _IGNORES_ENVIRONMENT:
                return True
            if letter in _ENDS_OPTIONS:
                return False
            if letter in _TAKES_VALUE:
                if place == len(letters):
                    next(rest, None)  # its value is the next word
                break
    return False


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return os.fsdecode(value)
    return value if isinstance(value, str) else os.fspath(value) if hasattr(value, "__fspath__") else ""
