"""Characters: which ones an output cannot carry, and what stands in for them.

Room: pure. Every renderer comes in; a forbidden character is always shown, never dropped.
"""

from __future__ import annotations

import re
import unicodedata

# Controls, halves of surrogate pairs, non-characters, and the marks that reorder or hide text on a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NO_TEXT = re.compile(r"[\ud800-\udfff\ufffe\uffff]")
_TRICKS = re.compile(r"[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
# XML 1.0, section 2.2: everything but these may stand in a document.
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def stand_in(character: str) -> str:
    """What is shown for a character that may not be there: its number in plain letters."""
    return f"<U+{ord(character):04X}>"


def as_text(value: str) -> str:
    """Text for a person: controls, tricks and what is no character are shown by number; line ends stay."""
    if value.isascii() and value.isprintable():
        return value  # nearly every text there is
    shown = _CONTROL.sub(_replace, value.replace("\r\n", "\n"))
    return _NO_TEXT.sub(_replace, _TRICKS.sub(_replace, shown))


def as_line(value: str) -> str:
    """Text for one line: as_text, and line ends and tabs are shown as one blank."""
    return " ".join(as_text(value).split())


def as_xml(value: str) -> str:
    """Text that an XML 1.0 document can carry, not yet escaped; legal characters are left as they are."""
    return value if value.isascii() and value.isprintable() else _NO_XML.sub(_replace, value)


def as_unicode(value: str) -> str:
    """Text without halves of surrogate pairs and non-characters, for formats that can carry everything else."""
    return _NO_TEXT.sub(_replace, value)


def width_of(value: str) -> int:
    """How many columns of a terminal a line takes."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in value
    )


def _replace(match: re.Match[str]) -> str:
    return stand_in(match.group())
