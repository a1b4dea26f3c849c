"""YAML read with the line and column of every value.

Room: pure; a script in YAML comes in. Its library takes longer to load than a script in JSON to be read.
"""

from __future__ import annotations

import yaml

from mock_provider.errors import Problem, ScriptError
from mock_provider.json_values import MAX_DEPTH
from mock_provider.script_source import TOO_DEEP, Entries, Entry, Items, Mark, Node, Scalar

MAX_NODES = 1_000_000  # aliases can make a small text a huge tree; 16 MiB of plain text stays below this


def parse_yaml(text: str, name: str) -> Node:
    """Read YAML with its places.

    Limits: one document; MAX_NODES values after aliases are followed.
    Raises: ScriptError naming line and column.
    """
    loader_class = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader_class)
        if root is None:
            return Scalar(None, Mark(1, 1))
        tree = _YamlTree(name)
        found = tree.convert(root, ())
        if tree.problems:
            raise ScriptError(tree.problems)
        return found
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = str(error.problem or error.context or "the text is not YAML")
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise ScriptError([_syntax(name, line, column, what)]) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        raise ScriptError(
            [_syntax(name, line, column, f"character {_named(error.character)} may not stand in YAML")]
        ) from None
    except RecursionError:
        raise ScriptError([_syntax(name, 1, 1, TOO_DEEP)]) from None


_YAML = "tag:yaml.org,2002:"
# The tags that values get by themselves; times, and the sign "=", are texts to us.
_TAGS = frozenset(_YAML + kind for kind in ("null", "bool", "int", "float", "str", "timestamp", "value", "seq", "map"))


def _named(character: object) -> str:
    return f"U+{character:04X}" if isinstance(character, int) else repr(character)


def _syntax(name: str, line: int, column: int, what: str) -> Problem:
    return Problem(name, line, column, "", what, "SCRIPT_SYNTAX", fix="mend the YAML at this place")


class _YamlTree:
    """Turns composed YAML nodes into ours, following aliases and merge keys."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._scalars = yaml.constructor.SafeConstructor()
        self.problems: list[Problem] = []

    def convert(self, node: yaml.Node, above: tuple[int, ...]) -> Node:
        mark = Mark(node.start_mark.line + 1, node.start_mark.column + 1)
        self._count += 1
        if self._count > MAX_NODES:
            raise ScriptError([_syntax(self._name, mark.line, mark.column, f"more than {MAX_NODES} values")])
        if len(above) > MAX_DEPTH:
            raise ScriptError([_syntax(self._name, mark.line, mark.column, TOO_DEEP)])
        if id(node) in above:
            raise ScriptError([_syntax(self._name, mark.line, mark.column, "an alias contains itself")])
        if node.tag not in _TAGS:
            what = f"the tag {node.tag.replace(_YAML, '!!')} has no meaning in a script"
            self.problems.append(_syntax(self._name, mark.line, mark.column, what))
        below = (*above, id(node))
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.convert(item, below) for item in node.value), mark)
        if isinstance(node, yaml.MappingNode):
            return Entries(tuple(self._entries(node, below)), mark)
        return Scalar(self._scalar(node), mark)

    def _scalar(self, node: yaml.Node) -> bool | int | float | str | None:
        kind = node.tag.removeprefix(_YAML)
        if kind not in {"null", "bool", "int", "float"}:
            return str(node.value)  # dates and the like are texts to us: a script has no use for them
        try:
            value: object = self._scalars.construct_object(node)
        except ValueError:
            return str(node.value)
        return value if value is None or isinstance(value, bool | int | float) else str(node.value)

    def _entries(self, node: yaml.MappingNode, below: tuple[int, ...]) -> list[Entry]:
        own: list[Entry] = []
        merged: list[Entry] = []
        for key, value in node.value:
            mark = Mark(key.start_mark.line + 1, key.start_mark.column + 1)
            if key.tag == f"{_YAML}merge":
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for source in sources:
                    tree = self.convert(source, below)
                    if not isinstance(tree, Entries):
                        raise ScriptError([_syntax(self._name, mark.line, mark.column, "'<<' takes a mapping")])
                    merged.extend(tree.entries)
            elif isinstance(key, yaml.ScalarNode):
                own.append(Entry(str(key.value), mark, self.convert(value, below)))
            else:
                raise ScriptError([_syntax(self._name, mark.line, mark.column, "a key must be a text")])
        names = {entry.key for entry in own}
        for entry in merged:
            if entry.key not in names:
                names.add(entry.key)
                own.append(entry)
        return own
