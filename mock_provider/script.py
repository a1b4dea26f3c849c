"""A script from a file, a text or Python: loaded, checked whole, or refused with every problem.

Room: reads files; anyone may come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from mock_provider.errors import Problem, ScriptError
from mock_provider.json_values import Json
from mock_provider.limits import Limits
from mock_provider.named_files import TooLargeError, UnreadableError, read_named
from mock_provider.script_check import check_script
from mock_provider.script_json import parse_json
from mock_provider.script_source import Node, from_plain
from mock_provider.steps import Script

USUAL = Limits()
_SPLIT = "split the script, or raise the limit: --limit script=SIZE"
ScriptLike: TypeAlias = "Script | Path | str | Mapping[str, Json]"


def load_script(path: Path | str, limits: Limits = USUAL, dialects: tuple[str, ...] = ()) -> Script:
    """Load a YAML or JSON file. Shape: dialects are those it has to fit, beside those it names.

    Limits: those for scripts and their pieces.
    Raises: ScriptError, also for a file that cannot be read.
    """
    name = str(path)
    try:
        text = read_named(Path(path), limits.script_bytes)
    except TooLargeError as error:
        raise ScriptError([Problem(name, 0, 0, "", str(error), "SCRIPT_SIZE", fix=_SPLIT)]) from None
    except UnreadableError as error:
        code = "SCRIPT_SYNTAX" if error.line else "SCRIPT_UNREADABLE"
        raise ScriptError(
            [Problem(name, error.line, error.column, "", error.what, code, error.expected, error.fix)]
        ) from None
    return parse_script(text, name, limits, dialects)


def parse_script(text: str, name: str = "script", limits: Limits = USUAL, dialects: tuple[str, ...] = ()) -> Script:
    """Read a script from its text; a text that begins with `{` or a name ending in .json is JSON, else YAML.

    Shape: dialects as for load_script.
    Raises: ScriptError with every problem found.
    """
    if len(text) > limits.script_bytes:
        what = f"{len(text)} characters are more than {limits.script_bytes}"
        raise ScriptError([Problem(name, 0, 0, "", what, "SCRIPT_SIZE", fix=_SPLIT)])
    is_yaml = name.endswith((".yaml", ".yml")) or not (name.endswith(".json") or text.lstrip().startswith("{"))
    root = _parse_yaml(text, name) if is_yaml else parse_json(text, name)
    return check_script(root, name, limits, dialects)


def _parse_yaml(text: str, name: str) -> Node:
    from mock_provider.script_yaml import parse_yaml  # a script in JSON, or built in Python, does without its library

    return parse_yaml(text, name)


def build_script(content: Mapping[str, Json], name: str = "script") -> Script:
    """Check a script built in Python, with the same rules. Raises: ScriptError naming the fields."""
    return check_script(from_plain(content, name), name, USUAL)


def as_script(source: ScriptLike, name: str = "script") -> Script:
    """Take a script in any of its forms: checked already, a path, or built in Python."""
    if isinstance(source, Script):
        return source
    if isinstance(source, Mapping):
        return build_script(source, name)
    return load_script(source)
