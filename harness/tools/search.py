"""Look through the files of the workspace: list them, find a text in them.

Room: shipped comes in for the tools. Links are shown and never followed, so no walk leaves the workspace.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.tools.answers import Arguments, in_thread, text_answer, text_argument
from harness.tools.plain_text import is_binary, printable, printable_name
from harness.tools.workspace import SPILL_PREFIX, Place, ToolError, Workspace

MAX_LISTED = 1000  # entries; a larger answer helps no model and hides the question
MAX_MATCHES = 200  # lines found
MAX_MATCH_CHARACTERS = 300  # of one line shown: minified files hold lines of megabytes
MAX_DEPTH = 100  # folders within folders; each level holds one descriptor open
MAX_SEARCHED_BYTES = 16 << 20  # of one file; larger ones are named instead
NOT_ENTERED = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".tox"})


@dataclass(frozen=True, slots=True)
class _Entry:
    shown: str
    kind: str  # "file", "folder", "closed" (a folder not entered), "link", "other" or "unreadable"
    folder: int = -1
    name: str = ""


def build_search_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The tools list_files and search_files."""
    return _list_files(workspace), _search_files(workspace)


def _walk(workspace: Workspace, place: Place) -> Iterator[_Entry]:
    """Everything below a place in a fixed order; folder descriptors are valid until the next step."""
    if place.real == place.base:
        prefix = "" if place.base == workspace.root else f"{SPILL_PREFIX}/"
        yield from _walk_folder(place.real.as_posix(), prefix, None)
        return
    with workspace.folder(place) as parent:
        name = place.real.name
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            yield from _walk_folder(name, f"{place.shown}/", parent)
        else:
            yield _Entry(place.shown, "file" if stat.S_ISREG(facts.st_mode) else "other", parent, name)


def _walk_folder(top: str, prefix: str, parent: int | None) -> Iterator[_Entry]:
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        with os.scandir(folder) as scan:
            entries = sorted(((item.name, item) for item in scan), key=lambda pair: os.fsencode(pair[0]))
        for name, item in entries:
            shown = printable_name(f"{prefix}{name}")
            if item.is_symlink():
                yield _Entry(shown, "link")
            elif item.is_dir(follow_symlinks=False):
                if name in NOT_ENTERED or shown.count("/") >= MAX_DEPTH:
                    yield _Entry(f"{shown}/", "closed")
                    continue
                yield _Entry(f"{shown}/", "folder")
                try:
                    yield from _walk_folder(name, f"{prefix}{name}/", folder)
                except PermissionError:
                    yield _Entry(f"{shown}/", "unreadable")
            else:
                yield _Entry(shown, "file" if item.is_file(follow_symlinks=False) else "other", folder, name)
    finally:
        os.close(folder)


_MARKS = {"closed": "  (not entered)", "link": "  (link)", "other": "  (not a file)", "unreadable": "  (not readable)"}


def _list_files(workspace: Workspace) -> Tool:
    def body(arguments: Arguments, context: ToolContext) -> ToolOutput:
        place = workspace.place(text_argument(arguments, "path", "."))
        lines: list[str] = []
        try:
            for entry in _walk(workspace, place):
                if len(lines) == MAX_LISTED:
                    lines.append(f"[the first {MAX_LISTED} entries; give a path below to see more]")
                    break
                lines.append(f"{entry.shown}{_MARKS.get(entry.kind, '')}")
        except OSError as error:
            raise workspace.failure(place.shown, error) from None
        return text_answer("\n".join(lines) if lines else "[the folder is empty]")

    return Tool(
        schema=ToolSchema(
            name="list_files",
            description="List the files and folders of the workspace, or of one folder in it, with all below them.",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string", "description": "folder relative to the workspace"}},
                "additionalProperties": False,
            },
        ),
        run=in_thread(body),
        is_read_only=lambda arguments: True,
    )


def _search_files(workspace: Workspace) -> Tool:
    def body(arguments: Arguments, context: ToolContext) -> ToolOutput:
        pattern = text_argument(arguments, "pattern")
        if pattern == "" or "\n" in pattern:
            raise ToolError("pattern must be a text within one line", where="pattern", code="INVALID_ARGS")
        place = workspace.place(text_argument(arguments, "path", "."))
        lines: list[str] = []
        try:
            for entry in _walk(workspace, place):
                if context.cancel.cancelled:
                    raise ToolError("the search was cancelled", code="ABORTED")
                if entry.kind == "file":
                    lines += _matches(entry, pattern)
                if len(lines) > MAX_MATCHES:
                    del lines[MAX_MATCHES:]
                    lines.append(f"[the first {MAX_MATCHES} matches; give a path or a longer pattern to see others]")
                    break
        except OSError as error:
            raise workspace.failure(place.shown, error) from None
        return text_answer("\n".join(lines) if lines else "[no match]")

    return Tool(
        schema=ToolSchema(
            name="search_files",
            description=(
                "Find the lines that hold a text, in all files of the workspace or below one path. "
                "The pattern is plain text, not a regular expression. Gives path:line: text."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "the exact text to find"},
                    "path": {"type": "string", "description": "file or folder relative to the workspace"},
                },
                "required": ["pattern"],
                "additionalProperties": False,
            },
        ),
        run=in_thread(body),
        is_read_only=lambda arguments: True,
    )


def _matches(entry: _Entry, pattern: str) -> list[str]:
    try:
        descriptor = os.open(
            entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=entry.folder
        )
    except OSError as error:
        return [f"{entry.shown}: not searched, {(error.strerror or 'failed').lower()}"]
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > MAX_SEARCHED_BYTES:
            return [f"{entry.shown}: not searched, the file has {size} bytes"]
        data = file.read(MAX_SEARCHED_BYTES)
    if pattern.encode("utf-8", "surrogatepass") not in data:
        return []
    if is_binary(data):
        return [f"{entry.shown}: holds the text; a binary file of {len(data)} bytes, not shown"]
    return [
        f"{entry.shown}:{number}: {_clipped(line)}"
        for number, line in enumerate(data.decode("utf-8").split("\n"), start=1)
        if pattern in line
    ]


def _clipped(line: str) -> str:
    line = printable(line.removesuffix("\r"))
    if len(line) <= MAX_MATCH_CHARACTERS:
        return line
    return f"{line[:MAX_MATCH_CHARACTERS]}… [{len(line)} characters]"
