"""What an MCP server answered to a call, as the output of a tool.

Room: pure; the connection comes in with the answer as plain JSON. It knows nothing of the `mcp` package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from harness.loop.tools import ToolOutput
from harness.model.messages import TextBlock

HEAD_CHARACTERS = 20_000  # what is shown of a long answer: the measures of the shell tool's output,
TAIL_CHARACTERS = 10_000  # in characters, because an answer is text already
MAX_FIELD_CHARACTERS = 200  # of a name or an address in a note

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def output_of(answer: Mapping[str, object]) -> ToolOutput:
    """The output for one answer to `tools/call`.

    Shape: texts stay texts, and structured content follows as JSON unless a text says the same. Pictures, sound and
    bytes are not passed on; a note says what was left out. An answer that says it is an error becomes one.
    Limits: HEAD_CHARACTERS and TAIL_CHARACTERS of all texts together.
    """
    pieces, notes = _pieces(answer.get("content"))
    structured = answer.get("structuredContent")
    if structured is not None and not any(_says(piece, structured) for piece in pieces):
        pieces.append(json.dumps(structured, ensure_ascii=False, sort_keys=True))
    text, was_cut = _capped(printable("\n".join(pieces)))
    if was_cut:
        notes.append(was_cut)
    text = "\n".join(filter(None, (text, *(f"[{printable(note)}]" for note in notes)))) or "[no output]"
    if answer.get("isError") is True:
        text = text if text.startswith("Error:") else f"Error: {text}"
        return ToolOutput((TextBlock(text),), is_error=True)
    return ToolOutput((TextBlock(text),))


def printable(text: str) -> str:
    r"""The text with control characters and lone surrogates spelled as \xNN or \uNNNN; tab and line ends stay."""

    def spelled(match: re.Match[str]) -> str:
        code = ord(match.group())
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNPRINTABLE.sub(spelled, text)


def _pieces(content: object) -> tuple[list[str], list[str]]:
    pieces: list[str] = []
    notes: list[str] = []
    for block in content if isinstance(content, Sequence) else ():
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text":
            pieces.append(str(block.get("text", "")))
        elif kind in {"image", "audio"}:
            notes.append(_left_out(f"{block.get('mimeType', kind)} content", block.get("data")))
        elif kind == "resource_link":
            pieces.append(f"{block.get('name', 'resource')}: {block.get('uri', '')}")
        elif kind == "resource" and isinstance(resource := block.get("resource"), Mapping):
            if isinstance(resource.get("text"), str):
                pieces.append(str(resource["text"]))
            else:
                kind = resource.get("mimeType") or "binary content"
                notes.append(_left_out(f"{kind} of {_short(resource.get('uri'))}", resource.get("blob")))
        else:
            notes.append(f"content of the unknown kind {_short(kind)} was left out")
    return pieces, notes


def _left_out(what: str, data: object) -> str:
    size_bytes = len(data) * 3 // 4 if isinstance(data, str) else 0  # base64 carries three bytes in four characters
    return f"{_short(what)} was left out, about {size_bytes} bytes"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_FIELD_CHARACTERS else f"{text[:MAX_FIELD_CHARACTERS]}..."


def _says(text: str, structured: object) -> bool:
    """Whether a text holds all that the structured content does; servers often send both."""
    if structured == {"result": text}:  # how the official server package wraps a plain value
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(value == structured or structured == {"result": value})


def _capped(text: str) -> tuple[str, str]:
    cut = len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS
    if cut <= 0:
        return text, ""
    middle = f"\n[... {cut} characters left out ...]\n"
    note = f"answer of {len(text)} characters, cut; ask for less to see the rest"
    return text[:HEAD_CHARACTERS] + middle + text[-TAIL_CHARACTERS:], note
