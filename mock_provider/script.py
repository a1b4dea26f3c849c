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
from mock_provider.script_check import check_script
from mock_provider.script_json import parse_json
from mock_provider.script_source import from_plain, parse_yaml
from mock_provider.steps import Script

USUAL = Limits()
_SPLIT = "split the script, or raise the limit: --limit script=SIZE"
ScriptLike: TypeAlias = "Script | Path | str | Mapping[str, Json]"


def load_script(path: Path | str, limits: Limits = USUAL) -> Script:
    """Load a YAML or JSON file.

    Limits: those for scripts and their pieces.
    Raises: ScriptError, also for a file that cannot be read.
    """
    file = Path(path)
    name = str(path)
    try:
        size = file.stat().st_size
        if size > limits.script_bytes:
            what = f"{size} bytes are more than {limits.script_bytes}"
            raise ScriptError([Problem(name, 0, 0, "", what, "SCRIPT_SIZE", fix=_SPLIT)])
        data = file.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise ScriptError([Problem(name, 0, 0, "", what, "SCRIPT_UNREADABLE", fix="check the path")]) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        what = f"byte {error.start} is not UTF-8"
        raise ScriptError(
            [Problem(name, line, column, "", what, "SCRIPT_SYNTAX", "UTF-8", "save the file as UTF-8")]
        ) from None
    return parse_script(text, name, limits)


def parse_script(text: str, name: str = "script", limits: Limits = USUAL) -> Script:
    """Read a script from its text; a text that begins with `{` or a name ending in .json is JSON, else YAML.

    Raises: ScriptError with every problem found.
    """
    if len(text) > limits.script_bytes:
        what = f"{len(text)} characters are more than {limits.script_bytes}"
        raise ScriptError([Problem(name, 0, 0, "", what, "SCRIPT_SIZE", fix=_SPLIT)])
    is_yaml = name.endswith((".yaml", ".yml")) or not (name.endswith(".json") or text.lstrip().startswith("{"))
    root = parse_yaml(text, name) if is_yaml else parse_json(text, name)
    return check_script(root, name, limits)


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
