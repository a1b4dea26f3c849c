"""Reading one mapping of a script: known keys, right types, near misses, nothing raised until all is read.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_provider.errors import Problem
from mock_provider.json_values import quote
from mock_provider.script_source import NO_MARK, Entries, Entry, Items, Mark, Node, Scalar


def near_miss(word: str, known: Sequence[str]) -> str:
    """Say which known word was probably meant, or nothing."""
    import difflib  # nothing was misspelt, most of the time

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def describe(node: Node) -> str:
    """Name what stands there, in words."""
    if isinstance(node, Items):
        return f"a list of {len(node.items)}"
    if isinstance(node, Entries):
        return "a mapping"
    if node.value is None:
        return "nothing (null)"
    if isinstance(node.value, bool):
        return f"the truth value {str(node.value).lower()}"
    if isinstance(node.value, str):
        return f"the text {quote(node.value, 40)}"
    return f"the number {node.value}"


def is_header_value(text: str) -> bool:
    """Whether a text can stand in a header, and only there: a line end would begin another one."""
    return text.isascii() and text.isprintable()


class Findings:
    """All problems of one script, collected while reading goes on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []

    def add(self, mark: Mark, field: str, what: str, code: str, *, expected: str = "", fix: str = "") -> None:
        """Note one problem; reading goes on with a stand-in value."""
        self.problems.append(Problem(self.name, mark.line, mark.column, field, what, code, expected, fix))

    def wrong_type(self, node: Node, field: str, expected: str) -> None:
        """Note that a value of another type stands there."""
        fix = ""
        if isinstance(node, Scalar) and expected.startswith("text") and node.value is not None:
            fix = "put the value in quotes"
        self.add(node.mark, field, f"found {describe(node)}", "SCRIPT_TYPE", expected=expected, fix=fix)


class Fields:
    """One mapping under reading.

    Shape: each reader returns the value, or None when the key is absent or its value was wrong (and noted).
    """

    def __init__(self, node: Node, field: str, findings: Findings, known: Sequence[str]) -> None:
        self.findings = findings
        self.field = field
        self.mark = node.mark
        self.known = known
        self._entries: dict[str, Entry] = {}
        if not isinstance(node, Entries):
            findings.wrong_type(node, field, f"a mapping with keys among {', '.join(known)}")
            return
        for entry in node.entries:
            if entry.key not in known:
                what = f"unknown key '{entry.key}'{near_miss(entry.key, known)}"
                findings.add(entry.mark, field, what, "SCRIPT_KEY", expected=f"one of {', '.join(known)}")
            elif entry.key in self._entries:
                first = self._entries[entry.key].mark
                at = f", first in line {first.line}" if first.line else ""
                findings.add(entry.mark, field, f"key '{entry.key}' is given twice{at}", "SCRIPT_DUPLICATE")
            else:
                self._entries[entry.key] = entry

    def path(self, key: str) -> str:
        """Spell where a key of this mapping stands."""
        return f"{self.field}.{key}" if self.field else key

    def has(self, key: str) -> bool:
        """Whether the key is there, whatever its value."""
        return key in self._entries

    def given(self) -> tuple[str, ...]:
        """The known keys that are there, in the order of the text."""
        return tuple(self._entries)

    def node(self, key: str) -> Node | None:
        """The value's node, for readers of their own."""
        entry = self._entries.get(key)
        return entry.value if entry else None

    def key_mark(self, key: str) -> Mark:
        """Where the key itself stands."""
        entry = self._entries.get(key)
        return entry.mark if entry else NO_MARK

    def add(self, key: str, what: str, code: str, *, expected: str = "", fix: str = "") -> None:
        """Note a problem with the value of a key."""
        node = self.node(key)
        mark = node.mark if node else self.mark
        self.findings.add(mark, self.path(key), what, code, expected=expected, fix=fix)

    def require(self, key: str, expected: str) -> bool:
        """Note when a key is absent."""
        if key in self._entries:
            return True
        what = f"'{key}' is missing"
        self.findings.add(self.mark, self.field, what, "SCRIPT_MISSING", expected=f"{key}: {expected}")
        return False

    def text(self, key: str) -> str | None:
        """A text."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
        self.findings.wrong_type(node, self.path(key), "text")
        return None

    def named(self, key: str) -> str | None:
        """A text that names something, so that it cannot be empty."""
        text = self.text(key)
        if text == "":
            self.add(key, "an empty text", "SCRIPT_VALUE", expected="a name")
            return None
        return text

    def header(self, key: str) -> str | None:
        """A text that becomes the value of a header."""
        text = self.text(key)
        if text is not None and not is_header_value(text):
            self.add(key, "a header value is printable ASCII", "SCRIPT_VALUE")
            return None
        return text

    def integer(self, key: str, least: int, most: int) -> int | None:
        """A whole number within limits."""
        node = self.node(key)
        if node is None:
            return None
        expected = f"a whole number from {least} to {most}"
        if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
            if least <= node.value <= most:
                return node.value
            self.add(key, f"{node.value} is out of range", "SCRIPT_VALUE", expected=expected)
            return None
        self.findings.wrong_type(node, self.path(key), expected)
        return None

    def number(self, key: str, least: float, most: float) -> float | None:
        """A number within limits."""
        node = self.node(key)
        if node is None:
            return None
        expected = f"a number from {least} to {most}"
        if isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            if least <= node.value <= most:
                return node.value
            self.add(key, f"{node.value} is out of range", "SCRIPT_VALUE", expected=expected)
            return None
        self.findings.wrong_type(node, self.path(key), expected)
        return None

    def boolean(self, key: str) -> bool | None:
        """true or false."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.findings.wrong_type(node, self.path(key), "true or false")
        return None

    def choice(self, key: str, options: Sequence[str]) -> str | None:
        """One of a few words."""
        word = self.text(key)
        if word is None or word in options:
            return word
        what = f"'{word}' is unknown{near_miss(word, options)}"
        self.add(key, what, "SCRIPT_VALUE", expected=f"one of {', '.join(options)}")
        return None

    def items(self, key: str) -> tuple[Node, ...] | None:
        """A list."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, Items):
            return node.items
        self.findings.wrong_type(node, self.path(key), "a list")
        return None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts."""
        items = self.items(key)
        if items is None:
            return None
        words: list[str] = []
        for at, item in enumerate(items):
            if isinstance(item, Scalar) and isinstance(item.value, str):
                words.append(item.value)
            else:
                self.findings.wrong_type(item, f"{self.path(key)}[{at}]", "text")
        return tuple(words)

    def entries(self, key: str) -> tuple[Entry, ...] | None:
        """A mapping whose keys are free; duplicates are noted and dropped."""
        node = self.node(key)
        if node is None:
            return None
        if not isinstance(node, Entries):
            self.findings.wrong_type(node, self.path(key), "a mapping")
            return None
        kept: dict[str, Entry] = {}
        for entry in node.entries:
            if entry.key in kept:
                self.findings.add(entry.mark, self.path(key), f"'{entry.key}' is given twice", "SCRIPT_DUPLICATE")
            else:
                kept[entry.key] = entry
        return tuple(kept.values())
