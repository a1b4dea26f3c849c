"""JSON read with the line and column of every value.

Room: pure; only the script rooms come in. A YAML reader is no JSON reader: it splits escaped characters
beyond U+FFFF into halves and stumbles over tabs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from json import JSONDecodeError, decoder

from mock_provider.errors import Problem, ScriptError
from mock_provider.json_values import MAX_DEPTH
from mock_provider.script_source import Entries, Entry, Items, Mark, Node, Scalar

# The standard library's own reader of one string; typeshed does not list it.
_scan_string: Callable[[str, int, bool], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?P<fraction>\.\d+)?(?P<exponent>[eE][-+]?\d+)?")
_WORDS: tuple[tuple[str, bool | None], ...] = (("true", True), ("false", False), ("null", None))


def parse_json(text: str, name: str) -> Node:
    """Read one JSON document. Raises: ScriptError naming line and column."""
    reader = _Reader(text, name)
    node, end = reader.value(0, 0)
    end = reader.skip(end)
    if end != len(text):
        raise reader.problem(end, "text after the end of the document")
    return node


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._lines = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]

    def mark(self, at: int) -> Mark:
        line = bisect_right(self._lines, at)
        return Mark(line, at - self._lines[line - 1] + 1)

    def problem(self, at: int, what: str) -> ScriptError:
        mark = self.mark(at)
        return ScriptError(
            [Problem(self._name, mark.line, mark.column, "", what, "SCRIPT_SYNTAX", fix="mend the JSON at this place")]
        )

    def skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        at = self.skip(at)
        if depth > MAX_DEPTH:
            raise self.problem(at, f"lists and mappings are nested more than {MAX_DEPTH} levels deep")
        opening = self._text[at : at + 1]
        if opening == '"':
            text, end = self._string(at)
            return Scalar(text, self.mark(at)), end
        if opening == "{":
            return self._mapping(at, depth + 1)
        if opening == "[":
            return self._list(at, depth + 1)
        for word, meaning in _WORDS:
            if self._text.startswith(word, at):
                return Scalar(meaning, self.mark(at)), at + len(word)
        number = _NUMBER.match(self._text, at)
        if number:
            spelled = number.group()
            whole = number.group("fraction") is None and number.group("exponent") is None
            try:
                return Scalar(int(spelled) if whole else float(spelled), self.mark(at)), number.end()
            except ValueError:  # Python refuses to read whole numbers of more than some thousand digits
                raise self.problem(at, "a number with too many digits") from None
        raise self.problem(at, "expected a value" if opening else "the text ends where a value is expected")

    def _string(self, at: int) -> tuple[str, int]:
        try:
            return _scan_string(self._text, at + 1, True)
        except JSONDecodeError as error:
            raise self.problem(error.pos, error.msg.lower()) from None

    def _mapping(self, start: int, depth: int) -> tuple[Node, int]:
        entries: list[Entry] = []
        at = self.skip(start + 1)
        if self._text[at : at + 1] == "}":
            return Entries((), self.mark(start)), at + 1
        while True:
            at = self.skip(at)
            if self._text[at : at + 1] != '"':
                raise self.problem(at, "expected a key in double quotes")
            mark = self.mark(at)
            key, at = self._string(at)
            at = self.skip(at)
            if self._text[at : at + 1] != ":":
                raise self.problem(at, "expected ':' after the key")
            value, at = self.value(at + 1, depth)
            entries.append(Entry(key, mark, value))
            at = self.skip(at)
            closing = self._text[at : at + 1]
            if closing == "}":
                return Entries(tuple(entries), self.mark(start)), at + 1
            if closing != ",":
                raise self.problem(at, "expected ',' or '}'")
            at += 1

    def _list(self, start: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        at = self.skip(start + 1)
        if self._text[at : at + 1] == "]":
            return Items((), self.mark(start)), at + 1
        while True:
            item, at = self.value(at, depth)
            items.append(item)
            at = self.skip(at)
            closing = self._text[at : at + 1]
            if closing == "]":
                return Items(tuple(items), self.mark(start)), at + 1
            if closing != ",":
                raise self.problem(at, "expected ',' or ']'")
            at += 1
