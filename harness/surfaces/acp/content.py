"""What a prompt holds, read before anything is stored or queued, and what becomes of it.

Room: pure; admission comes in. The union is closed: a block this room does not know is refused, whatever a library
would make of it, and no refusal repeats what it refuses.
Source: Agent Client Protocol, version 1, content blocks; RFC 4648 section 4 for base64.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from harness.errors import UsageError
from harness.log.attachments_rules import Upload
from harness.model.messages import AttachmentRef, ContentBlock, ImageBlock, Json, TextBlock

PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")  # groups of four would be remembered one by one, far beyond the text


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that is only named."""

    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture by value."""

    media_type: str
    data: bytes = field(repr=False)


Part: TypeAlias = Words | Link | Picture


def read_prompt(blocks: Json, *, may_hold_pictures: bool) -> tuple[Part, ...]:
    """Pass one: every block of a prompt, or the first thing that is wrong with one of them.

    Shape: blocks is the raw list of the wire; may_hold_pictures is what this connection was told.
    Raises: UsageError naming the position and the field, never the payload.
    """
    if not isinstance(blocks, list | tuple):
        _refuse("prompt", "expected a list of content blocks")
    return tuple(_read(block, f"prompt[{at}]", may_hold_pictures) for at, block in enumerate(blocks))


def uploads_of(parts: Sequence[Part]) -> tuple[Upload, ...]:
    """The pictures of a prompt, in wire order."""
    return tuple(Upload(part.data, part.media_type) for part in parts if isinstance(part, Picture))


def compose(parts: Sequence[Part], references: Sequence[AttachmentRef]) -> tuple[ContentBlock, ...]:
    """Pass two: the content of the message.

    Shape: adjacent text is one block, joined by nothing; a link is text; pictures are their references, in the order
    of the wire; no text block is empty.
    Raises: UsageError for a prompt of blank text without a picture.
    """
    content: list[ContentBlock] = []
    text = ""
    stored = iter(references)
    for part in parts:
        match part:
            case Words():
                text += part.text
            case Link():
                text += f"\n[resource_link name={json.dumps(part.name)} uri={json.dumps(part.uri)}]\n"
            case Picture():
                content += [TextBlock(text)] if text else []
                content.append(ImageBlock(next(stored)))
                text = ""
    content += [TextBlock(text)] if text else []
    has_picture = any(isinstance(block, ImageBlock) for block in content)
    if not has_picture and not "".join(block.text for block in content if isinstance(block, TextBlock)).strip():
        raise UsageError("empty prompt", where="")
    return tuple(content)


def decode_base64(text: str) -> bytes | None:
    """The bytes of canonical base64; None for anything a strict reader does not take.

    Decoders accept stray bits behind the last byte, so the bytes are encoded again and compared.
    """
    if len(text) % 4 or _BASE64.fullmatch(text) is None:
        return None
    data = base64.b64decode(text)
    return data if base64.b64encode(data) == text.encode("ascii") else None


def _read(block: Json, where: str, may_hold_pictures: bool) -> Part:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(block, Mapping) or not isinstance(kind, str):
        _refuse(where, "expected a content block with a type")
    if kind == "text":
        return Words(_text(block, "text", where))
    if kind == "resource_link":
        return Link(_text(block, "name", where), _text(block, "uri", where))
    if kind == "image":
        return _read_picture(block, where, may_hold_pictures)
    is_known = kind in ("audio", "resource")
    return _refuse(where, f"{kind} blocks are not taken" if is_known else "the type of the block is unknown")


def _read_picture(block: Mapping[str, Json], where: str, may_hold_pictures: bool) -> Picture:
    if not may_hold_pictures:
        _refuse(where, "pictures were not advertised on this connection")
    media_type = _text(block, "mimeType", where)
    if media_type not in PICTURE_TYPES:
        _refuse(f"{where}.mimeType", f"expected one of {', '.join(PICTURE_TYPES)}")
    data = decode_base64(_text(block, "data", where))
    if data is None:
        _refuse(f"{where}.data", "expected canonical base64")
    return Picture(media_type, data)


def _text(block: Mapping[str, Json], name: str, where: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        _refuse(f"{where}.{name}", "expected a text")
    return value


def _refuse(where: str, what: str) -> NoReturn:
    raise UsageError(what, where=where)
