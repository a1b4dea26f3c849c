"""Read, write and edit one file of the workspace.

Room: shipped comes in for the tools; a new file tool belongs here if it is about one file, in search if about many.
"""

from __future__ import annotations

import re

from harness.loop.redaction import STAND_IN
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.tools.answers import Arguments, in_thread, number_argument, text_answer, text_argument
from harness.tools.plain_text import is_binary, printable
from harness.tools.workspace import Place, ToolError, Workspace

MAX_FILE_BYTES = 16 << 20  # a file is held in memory twice while it is edited
MAX_SHOWN_LINES = 2000  # what other agents show of a file at once; most source files fit
MAX_SHOWN_CHARACTERS = 60_000  # about 15,000 tokens: one result must not fill a small model's context
_LINES = re.compile(r"[^\n]*\n|[^\n]+")  # str.splitlines also splits at characters no editor counts as a line end


def build_file_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The tools read_file, write_file and edit_file."""
    return _read_file(workspace), _write_file(workspace), _edit_file(workspace)


def _read_file(workspace: Workspace) -> Tool:
    def body(arguments: Arguments, context: ToolContext) -> ToolOutput:
        place = workspace.place(text_argument(arguments, "path"))
        offset = int(number_argument(arguments, "offset", 1))
        limit = int(number_argument(arguments, "limit", MAX_SHOWN_LINES))
        data = workspace.read(place, limit_bytes=MAX_FILE_BYTES)
        if is_binary(data):
            return text_answer(f"{place.shown} is a binary file of {len(data)} bytes; its content is not shown")
        if not data:
            return text_answer(f"[{place.shown} is empty]")
        text = data.decode("utf-8")
        if offset == 1 and len(text) <= MAX_SHOWN_CHARACTERS and data.count(b"\n") < limit:
            return text_answer(_marked(text))
        return text_answer(_shown_part(_LINES.findall(text), offset, limit))

    return Tool(
        schema=ToolSchema(
            name="read_file",
            description=(
                "Read a text file of the workspace. Gives the exact text; long files are given in parts, "
                "then a last line in square brackets says how to read on."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "path relative to the workspace"},
                    "offset": {"type": "integer", "minimum": 1, "description": "first line to read, from 1"},
                    "limit": {"type": "integer", "minimum": 1, "description": "how many lines to read"},
                },
                "required": ["path"],
                "additionalProperties": False,
            },
        ),
        run=in_thread(body),
        is_read_only=lambda arguments: True,
    )


def _shown_part(lines: list[str], offset: int, limit: int) -> str:
    if offset > len(lines):
        raise ToolError(f"line {offset} is past the end", expected=f"1 to {len(lines)}", code="INVALID_ARGS")
    shown: list[str] = []
    size = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        if size + len(line) > MAX_SHOWN_CHARACTERS:
            break
        shown.append(line)
        size += len(line)
    if not shown:
        piece = lines[offset - 1][:MAX_SHOWN_CHARACTERS]
        whole = len(lines[offset - 1])
        return f"{printable(piece)}\n[line {offset} has {whole} characters, the first {len(piece)} are shown]"
    last = offset - 1 + len(shown)
    text = _marked("".join(shown))
    if offset == 1 and last == len(lines):
        return text
    end = "" if text.endswith("\n") else "\n"
    onward = f"; read on with offset {last + 1}" if last < len(lines) else ""
    return f"{text}{end}[lines {offset} to {last} of {len(lines)}{onward}]"


def _marked(text: str) -> str:
    shown = printable(text)
    if shown == text:
        return text
    end = "" if shown.endswith("\n") else "\n"
    return f"{shown}{end}[control characters are shown as \\xNN]"


def _write_file(workspace: Workspace) -> Tool:
    def body(arguments: Arguments, context: ToolContext) -> ToolOutput:
        place = workspace.place(text_argument(arguments, "path"), writing=True)
        text = text_argument(arguments, "content")
        content = _encoded(text, "content")
        if STAND_IN in text:
            _check_stand_in(_as_it_stands(workspace, place), place.shown)
        is_new = workspace.write(place, content)
        return text_answer(f"{'created' if is_new else 'replaced'} {place.shown}, {len(content)} bytes")

    return Tool(
        schema=ToolSchema(
            name="write_file",
            description="Create a file of the workspace or replace its whole content. Missing folders are created.",
            parameters={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "path relative to the workspace"},
                    "content": {"type": "string", "description": "the whole new content"},
                },
                "required": ["path", "content"],
                "additionalProperties": False,
            },
        ),
        run=in_thread(body),
    )


def _as_it_stands(workspace: Workspace, place: Place) -> bytes | None:
    """What a file holds now; None where there is none that could be read whole."""
    try:
        return workspace.read(place, limit_bytes=MAX_FILE_BYTES)
    except (OSError, ToolError):
        return None


def _check_stand_in(data: bytes | None, shown: str) -> None:
    """Refuse to put what stands for a secret into a file that does not have it: the secret itself would be gone."""
    if data is None or STAND_IN.encode() in data:
        return
    raise ToolError(
        f"{STAND_IN} stands for a secret that is not shown; written into the file it would take the secret's place",
        where=shown,
        expected="an edit that leaves the secret where it is",
        fix="nothing was written; edit the lines around it",
        code="EDIT_SECRET",
    )


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name} holds half a character (a lone surrogate) at character {error.start}",
            expected="text that UTF-8 can hold",
            fix="nothing was written; write the whole character",
            code="INVALID_ARGS",
        ) from None


def _edit_file(workspace: Workspace) -> Tool:
    def body(arguments: Arguments, context: ToolContext) -> ToolOutput:
        place = workspace.place(text_argument(arguments, "path"), writing=True)
        old, new = text_argument(arguments, "old"), text_argument(arguments, "new")
        data, identity = workspace.read_with_identity(place, limit_bytes=MAX_FILE_BYTES)
        if is_binary(data):
            raise ToolError(
                f"a binary file of {len(data)} bytes cannot be edited as text", where=place.shown, code="EDIT_BINARY"
            )
        text = data.decode("utf-8")
        at = _only_occurrence(text, old, new, place.shown)
        if STAND_IN in new:
            _check_stand_in(data, place.shown)
        content = _encoded(text[:at] + new + text[at + len(old) :], "new")
        workspace.write(place, content, expected=identity)
        return text_answer(f"edited {place.shown} at line {_line_of(text, at)}")

    return Tool(
        schema=ToolSchema(
            name="edit_file",
            description=(
                "Replace one piece of text in a file of the workspace. `old` must occur exactly once, "
                "white space included; add lines around it until it does."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "path relative to the workspace"},
                    "old": {"type": "string", "description": "the exact text to replace"},
                    "new": {"type": "string", "description": "the text to put in its place"},
                },
                "required": ["path", "old", "new"],
                "additionalProperties": False,
            },
        ),
        run=in_thread(body),
    )


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _only_occurrence(text: str, old: str, new: str, shown: str) -> int:
    """Where old stands in text; a ToolError when it stands nowhere or more than once."""
    if old == "":
        raise ToolError(
            "old is empty", where=shown, fix="give the text to replace, or use write_file", code="INVALID_ARGS"
        )
    if old == new:
        raise ToolError("old and new are the same text, nothing to change", where=shown, code="INVALID_ARGS")
    found = []
    at = text.find(old)
    while at != -1:
        found.append(at)
        at = text.find(old, at + 1)
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(str(_line_of(text, at)) for at in found[:10])
        raise ToolError(
            f"old occurs {len(found)} times, at lines {lines}{' and more' if len(found) > 10 else ''}",
            where=shown,
            expected="exactly one occurrence",
            fix="add the lines around it to old until it is unique; nothing was changed",
            code="EDIT_AMBIGUOUS",
        )
    raise ToolError(
        "old does not occur in the file",
        where=shown,
        expected=_near_miss(text, old) or "text that stands in the file, white space included",
        fix="read the file again; nothing was changed",
        code="EDIT_NOT_FOUND",
    )


def _near_miss(text: str, old: str) -> str:
    """What the person most likely meant: the same words with other white space or line ends."""
    if "\r\n" in text and old.replace("\r\n", "\n").replace("\n", "\r\n") in text:
        return "line ends \\r\\n, as the file has them"
    wanted = [" ".join(line.split()) for line in old.strip().splitlines()]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for number in range(len(lines) - len(wanted) + 1):
        if wanted and lines[number : number + len(wanted)] == wanted:
            return f"the white space of line {number + 1}, which otherwise fits"
    return ""
