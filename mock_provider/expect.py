"""Conditions on a request, and the field-by-field difference when one does not hold.

Room: pure; match and playback come in, the script rooms build the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mock_provider.asked import Asked, AskedMessage, AskedResult
from mock_provider.json_values import Json, JsonPath, canonical_json, find_value, is_same_json, quote
from mock_provider.text_pattern import TextPattern
from mock_provider.values import value


@value
class TextRule:
    """A condition on one text. Shape: pattern is there for kind "regex", else None."""

    kind: Literal["equals", "contains", "regex", "absent"]
    value: str = ""
    pattern: TextPattern | None = None

    def find(self, text: str) -> Mapping[str, str] | None:
        """The groups that can be copied from a text that fits, None for one that does not. Raises: PatternTooSlow."""
        if self.kind == "equals":
            return {} if text == self.value else None
        if self.kind == "contains":
            return {} if self.value in text else None
        return None if self.pattern is None else self.pattern.search(text)

    def describe(self) -> str:
        """Say the condition in words."""
        if self.kind == "absent":
            return "nothing"
        words = {"equals": "the text", "contains": "a text containing", "regex": "a text matching"}
        return f"{words[self.kind]} {quote(self.value)}"


@value
class ValueRule:
    """A condition on a JSON value: a text rule, or equality."""

    equals: Json = None
    text: TextRule | None = None

    def describe(self) -> str:
        """Say the condition in words."""
        return self.text.describe() if self.text else quote(canonical_json(self.equals))


@value
class CountRule:
    """A condition on a number of things."""

    least: int
    most: int | None

    def describe(self) -> str:
        """Say the condition in words."""
        if self.most == self.least:
            return str(self.least)
        return f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"


@value
class ToolsRule:
    """A condition on the tools a request offers."""

    kind: Literal["includes", "exactly", "absent"]
    names: tuple[str, ...]


@value
class ResultRule:
    """A condition on a tool result.

    Shape: without call, name and anywhere it speaks of the results after the last assistant message.
    """

    text: TextRule | None = None
    call: str | None = None
    name: str | None = None
    is_error: bool | None = None
    anywhere: bool = False


@value
class Expect:
    """All conditions of one step or of one `when`; every one given must hold."""

    system: TextRule | None = None
    last_user: TextRule | None = None
    user: TextRule | None = None
    any_message: TextRule | None = None
    model: TextRule | None = None
    tools: ToolsRule | None = None
    messages: CountRule | None = None
    results: tuple[ResultRule, ...] = ()
    options: tuple[tuple[str, Json], ...] = ()
    headers: tuple[tuple[str, TextRule], ...] = ()
    values: tuple[tuple[JsonPath, ValueRule], ...] = ()
    absent: tuple[JsonPath, ...] = ()
    is_stream: bool | None = None

    @property
    def is_quick(self) -> bool:
        """Whether no regular expression has to be searched for, which may take its time."""
        return all(rule is None or rule.pattern is None for rule in self._rules())

    def group_names(self) -> frozenset[str]:
        """Names of the groups that `{{match.NAME}}` may copy."""
        return frozenset(name for rule in self._rules() if rule and rule.pattern for name in rule.pattern.group_names())

    def _rules(self) -> list[TextRule | None]:
        rules = [self.system, self.last_user, self.user, self.any_message, self.model]
        rules += [result.text for result in self.results]
        rules += [rule for _, rule in self.headers]
        rules += [rule.text for _, rule in self.values]
        return rules


@value
class Difference:
    """One condition that does not hold."""

    field: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.field}: expected {self.expected}, found {self.found}"


@dataclass(slots=True)
class Outcome:
    """What comparing gave: nothing in differences means that the request fits.

    Shape: is_brief says that nobody reads the differences, which then need not tell what they are.
    """

    differences: list[Difference] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    is_brief: bool = False


_NOTHING_WANTED = Outcome()
_ANY = Difference("", "", "")


def try_fit(expect: Expect | None, asked: Asked) -> Mapping[str, str] | None:
    """The groups that can be copied from a request that fits, None for one that does not. Raises: PatternTooSlow."""
    if expect is None:
        return _NOTHING_WANTED.groups
    outcome = Outcome([], {}, is_brief=True)
    _texts(expect, asked, outcome)
    if not outcome.differences:
        _compare_rest(expect, asked, outcome)
    return None if outcome.differences else outcome.groups


def compare(expect: Expect | None, asked: Asked) -> Outcome:
    """Hold a request against conditions, and say where it differs. Raises: PatternTooSlow."""
    if expect is None:
        return _NOTHING_WANTED
    outcome = Outcome()
    _texts(expect, asked, outcome)
    _compare_rest(expect, asked, outcome)
    return outcome


def _compare_rest(expect: Expect, asked: Asked, outcome: Outcome) -> None:
    _offers(expect, asked, outcome)
    for rule in expect.results:
        _result(rule, asked, outcome)
    _document(expect, asked, outcome)


def _check(outcome: Outcome, field_name: str, rule: TextRule, texts: Iterable[str]) -> None:
    found = list(texts)
    if rule.kind == "absent":
        if any(found):
            outcome.differences.append(Difference(field_name, "nothing", quote(found[-1])))
        return
    for text in found:
        groups = rule.find(text)
        if groups is not None:
            outcome.groups.update(groups)
            return
    if outcome.is_brief:
        outcome.differences.append(_ANY)
        return
    if not found:
        shown = "none"
    elif len(found) == 1:
        shown = quote(found[0])
    else:
        shown = f"{len(found)} texts, the last {quote(found[-1])}"
    outcome.differences.append(Difference(field_name, rule.describe(), shown))


def _said(messages: Iterable[AskedMessage], rule: TextRule) -> list[str]:
    """Each message as one text, and its single parts where a whole-text rule could mean one of them."""
    texts: list[str] = []
    for message in messages:
        texts.append(message.text)
        if rule.kind != "contains" and len(message.texts) > 1:
            texts.extend(message.texts)
    return texts


def _texts(expect: Expect, asked: Asked, outcome: Outcome) -> None:
    if expect.system:
        system = [message for message in asked.messages if message.role == "system"]
        _check(outcome, "system", expect.system, _said(system, expect.system))
    if expect.last_user:
        last = asked.last_user
        _check(outcome, "last_user", expect.last_user, _said([last] if last else [], expect.last_user))
    if expect.user:
        users = [message for message in asked.messages if message.role == "user"]
        _check(outcome, "user_contains", expect.user, _said(users, expect.user))
    if expect.any_message:
        texts = _said(asked.messages, expect.any_message)
        texts += [result.text for message in asked.messages for result in message.results]
        _check(outcome, "any_message", expect.any_message, texts)
    if expect.model:
        _check(outcome, "model", expect.model, [asked.model])
    for name, rule in expect.headers:
        value = asked.headers.get(name)
        _check(outcome, f"headers.{name}", rule, [] if value is None else [value])


def _offers(expect: Expect, asked: Asked, outcome: Outcome) -> None:
    if expect.tools:
        offered, wanted = set(asked.tools), set(expect.tools.names)
        shown = f"[{', '.join(asked.tools)}]"
        listed = f"[{', '.join(expect.tools.names)}]"
        if expect.tools.kind == "includes" and not wanted <= offered:
            missing = ", ".join(name for name in expect.tools.names if name not in offered)
            outcome.differences.append(Difference("tools", f"{listed} among them", f"{shown}, without {missing}"))
        elif expect.tools.kind == "exactly" and wanted != offered:
            outcome.differences.append(Difference("tools", f"exactly {listed}", shown))
        elif expect.tools.kind == "absent" and wanted & offered:
            outcome.differences.append(Difference("tools", f"none of {listed}", shown))
    if expect.messages:
        count = len(asked.messages)
        rule = expect.messages
        if count < rule.least or (rule.most is not None and count > rule.most):
            outcome.differences.append(Difference("messages", rule.describe(), str(count)))
    if expect.is_stream is not None and expect.is_stream is not asked.is_stream:
        found = str(asked.is_stream).lower()
        outcome.differences.append(Difference("stream", str(expect.is_stream).lower(), found))


def _result(rule: ResultRule, asked: Asked, outcome: Outcome) -> None:
    messages = asked.messages
    if not (rule.anywhere or rule.call or rule.name):
        last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
        messages = messages[last + 1 :]
    results: list[AskedResult] = [result for message in messages for result in message.results]
    label = "tool_result"
    for key, wanted in (("call", rule.call), ("name", rule.name)):
        if wanted is not None:
            label += f"[{key} {wanted}]"
            results = [item for item in results if (item.call_id if key == "call" else item.name) == wanted]
    if rule.is_error is not None:
        results = [item for item in results if item.is_error is rule.is_error]
    if rule.text:
        _check(outcome, label, rule.text, [item.text for item in results])
    elif not results:
        outcome.differences.append(Difference(label, "a tool result", "none"))


def _document(expect: Expect, asked: Asked, outcome: Outcome) -> None:
    for name, wanted in expect.options:
        if name not in asked.body:
            outcome.differences.append(Difference(f"options.{name}", quote(canonical_json(wanted)), "none"))
        elif not is_same_json(asked.body[name], wanted):
            shown = quote(canonical_json(asked.body[name]))
            outcome.differences.append(Difference(f"options.{name}", quote(canonical_json(wanted)), shown))
    for path, rule in expect.values:
        here = find_value(asked.body, path)
        if rule.text:
            value = here.value if here else None
            spelled = value if isinstance(value, str) else canonical_json(value)
            _check(outcome, path.text, rule.text, [spelled] if here else [])
        elif here is None or not is_same_json(here.value, rule.equals):
            shown = quote(canonical_json(here.value)) if here else "none"
            outcome.differences.append(Difference(path.text, rule.describe(), shown))
    for path in expect.absent:
        here = find_value(asked.body, path)
        if here is not None:
            outcome.differences.append(Difference(path.text, "nothing", quote(canonical_json(here.value))))
