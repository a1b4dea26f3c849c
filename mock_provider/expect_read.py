"""Reading `expect` and `when` from a script.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

from mock_provider.expect import CountRule, Expect, ResultRule, TextRule, ToolsRule, ValueRule
from mock_provider.json_values import Json, JsonPath, parse_path
from mock_provider.script_fields import Fields, Findings
from mock_provider.script_source import Entries, Items, Node, Scalar, plain
from mock_provider.text_pattern import PatternError, TextPattern

EXPECT_KEYS = (
    "system",
    "last_user",
    "user_contains",
    "any_message",
    "model",
    "tools",
    "messages",
    "tool_result",
    "options",
    "headers",
    "json_path",
    "absent",
    "stream",
)
TEXT_KEYS = ("equals", "contains", "regex", "absent")
RESULT_KEYS = ("equals", "contains", "regex", "call", "name", "is_error", "anywhere")
TOOLS_KEYS = ("includes", "exactly", "absent")
RANGE_KEYS = ("min", "max")
MAX_MESSAGES = 1 << 31


def read_expect(node: Node, field: str, findings: Findings) -> Expect:
    """Read conditions; what is wrong is noted and left out."""
    fields = Fields(node, field, findings, EXPECT_KEYS)
    return Expect(
        system=_text(fields, "system", "contains"),
        last_user=_text(fields, "last_user", "contains"),
        user=_text(fields, "user_contains", "contains"),
        any_message=_text(fields, "any_message", "contains"),
        model=_text(fields, "model", "equals"),
        tools=_tools(fields),
        messages=_count(fields, "messages"),
        results=_results(fields),
        options=tuple((entry.key, plain(entry.value)) for entry in fields.entries("options") or ()),
        headers=_headers(fields),
        values=_values(fields),
        absent=_absent(fields),
        is_stream=fields.boolean("stream"),
    )


def _rule(kind: str, value: str, node: Node, field: str, findings: Findings) -> TextRule | None:
    if kind == "equals":
        return TextRule("equals", value)
    if kind == "contains":
        return TextRule("contains", value)
    try:
        return TextRule("regex", value, TextPattern(value))
    except PatternError as error:
        findings.add(node.mark, field, f"not a regular expression: {error}", "SCRIPT_VALUE")
        return None


def _text_rule(node: Node, field: str, findings: Findings, bare: str) -> TextRule | None:
    """Read a text condition: a bare text, or one of the words with a value."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _rule(bare, node.value, node, field, findings)
    if not isinstance(node, Entries):
        findings.wrong_type(node, field, f"text ({bare}), or a mapping with one of {', '.join(TEXT_KEYS)}")
        return None
    return _one_rule(Fields(node, field, findings, TEXT_KEYS))


def _one_rule(fields: Fields) -> TextRule | None:
    given = [key for key in fields.given() if key in TEXT_KEYS]
    if len(given) != 1:
        what = f"{len(given)} conditions on one text" if given else "no condition"
        fields.findings.add(fields.mark, fields.field, what, "SCRIPT_VALUE", expected=f"one of {', '.join(TEXT_KEYS)}")
        return None
    kind = given[0]
    if kind == "absent":
        if fields.boolean("absent") is False:
            fields.add("absent", "'absent: false' says nothing", "SCRIPT_VALUE", expected="true")
        return TextRule("absent")
    value = fields.text(kind)
    node = fields.node(kind)
    if value is None or node is None:
        return None
    return _rule(kind, value, node, fields.path(kind), fields.findings)


def _text(fields: Fields, key: str, bare: str) -> TextRule | None:
    node = fields.node(key)
    return _text_rule(node, fields.path(key), fields.findings, bare) if node else None


def _tools(fields: Fields) -> ToolsRule | None:
    node = fields.node("tools")
    if node is None:
        return None
    if isinstance(node, Items):
        return ToolsRule("includes", fields.texts("tools") or ())
    inner = Fields(node, fields.path("tools"), fields.findings, TOOLS_KEYS)
    names = {key: inner.texts(key) or () for key in inner.given()}
    if isinstance(node, Entries) and not node.entries:
        fields.add("tools", "no condition", "SCRIPT_VALUE", expected="one of includes, exactly, absent")
    if len(names) > 1:
        fields.add("tools", "several conditions at once", "SCRIPT_VALUE", expected="one of includes, exactly, absent")
    if "exactly" in names:
        return ToolsRule("exactly", names["exactly"])
    if "absent" in names:
        return ToolsRule("absent", names["absent"])
    return ToolsRule("includes", names.get("includes", ()))


def _count(fields: Fields, key: str) -> CountRule | None:
    node = fields.node(key)
    if isinstance(node, Entries):
        inner = Fields(node, fields.path(key), fields.findings, RANGE_KEYS)
        least, most = inner.integer("min", 0, MAX_MESSAGES), inner.integer("max", 0, MAX_MESSAGES)
        if least is not None and most is not None and least > most:
            fields.add(key, f"min {least} is more than max {most}", "SCRIPT_VALUE")
        return CountRule(least or 0, most)
    exact = fields.integer(key, 0, MAX_MESSAGES)
    return None if exact is None else CountRule(exact, exact)


def _results(fields: Fields) -> tuple[ResultRule, ...]:
    node = fields.node("tool_result")
    if node is None:
        return ()
    field = fields.path("tool_result")
    if isinstance(node, Items):
        rules = [_result(item, f"{field}[{at}]", fields.findings) for at, item in enumerate(node.items)]
    else:
        rules = [_result(node, field, fields.findings)]
    return tuple(rule for rule in rules if rule)


def _result(node: Node, field: str, findings: Findings) -> ResultRule | None:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return ResultRule(TextRule("contains", node.value))
    inner = Fields(node, field, findings, RESULT_KEYS)
    words = [key for key in inner.given() if key in TEXT_KEYS]
    return ResultRule(
        text=_one_rule(inner) if words else None,
        call=inner.text("call"),
        name=inner.text("name"),
        is_error=inner.boolean("is_error"),
        anywhere=inner.boolean("anywhere") or False,
    )


def _headers(fields: Fields) -> tuple[tuple[str, TextRule], ...]:
    rules: list[tuple[str, TextRule]] = []
    for entry in fields.entries("headers") or ():
        rule = _text_rule(entry.value, f"{fields.path('headers')}.{entry.key}", fields.findings, "equals")
        if rule:
            rules.append((entry.key.lower(), rule))
    return tuple(rules)


def _path(text: str, node_mark: Node, field: str, findings: Findings) -> JsonPath | None:
    path = parse_path(text)
    if path is None:
        what = f"'{text}' is not a path"
        findings.add(node_mark.mark, field, what, "SCRIPT_VALUE", expected="such as messages[-1].content")
    return path


def _values(fields: Fields) -> tuple[tuple[JsonPath, ValueRule], ...]:
    rules: list[tuple[JsonPath, ValueRule]] = []
    for entry in fields.entries("json_path") or ():
        field = f"{fields.path('json_path')}.{entry.key}"
        path = _path(entry.key, entry.value, field, fields.findings)
        rule = _value_rule(entry.value, field, fields.findings)
        if path and rule:
            rules.append((path, rule))
    return tuple(rules)


def _value_rule(node: Node, field: str, findings: Findings) -> ValueRule | None:
    if isinstance(node, Entries) and len(node.entries) == 1 and node.entries[0].key in TEXT_KEYS:
        key, inner = node.entries[0].key, node.entries[0].value
        if key == "equals":
            value: Json = plain(inner)
            return ValueRule(equals=value)
        text = _one_rule(Fields(node, field, findings, TEXT_KEYS))
        return ValueRule(text=text) if text else None
    return ValueRule(equals=plain(node))


def _absent(fields: Fields) -> tuple[JsonPath, ...]:
    paths: list[JsonPath] = []
    for at, item in enumerate(fields.items("absent") or ()):
        field = f"{fields.path('absent')}[{at}]"
        if isinstance(item, Scalar) and isinstance(item.value, str):
            path = _path(item.value, item, field, fields.findings)
            if path:
                paths.append(path)
        else:
            fields.findings.wrong_type(item, field, "text")
    return tuple(paths)
