"""Sections and tool schemas in the order a request wants them, with their variables filled in.

Room: pure; the driver resolves texts and asks. What stands in a section is its author's business.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.errors import UsageError
from harness.model.call import ToolSchema
from harness.model.messages import Message, MessageId, PluginSource, TextBlock, text_of

_REFERENCE = re.compile(r"\{\{(.*?)(\}\}|\Z)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

NO_SNAPSHOT = "(none)"

SectionText: TypeAlias = str | Callable[[], str | Awaitable[str]]


class PromptError(UsageError):
    """A section of the system text cannot be filled in; names the section and the variable."""

    code = "PROMPT"


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the system text; lower orders come first, names are unique."""

    name: str
    order: int
    text: SectionText


def sort_sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections by order, then by name.

    Raises: PromptError when two have one name.
    """
    ordered = sorted(sections, key=lambda section: (section.order, section.name))
    seen: set[str] = set()
    for section in ordered:
        if section.name in seen:
            raise PromptError(
                "the name stands twice",
                where=f"section {section.name!r}",
                expected="a name of its own for each section",
            )
        seen.add(section.name)
    return tuple(ordered)


def render_system(texts: Sequence[tuple[str, str]], variables: Mapping[str, str]) -> str | None:
    """The system text of these (section name, text) pairs: empty ones left out, the rest joined by a blank line.

    Raises: PromptError for a `{{name}}` that is malformed, unknown or has no value.
    """
    filled = (fill(name, text, variables).strip("\n") for name, text in texts)
    return "\n\n".join(text for text in filled if text.strip()) or None


def fill(section: str, text: str, variables: Mapping[str, str]) -> str:
    """The text with every `{{name}}` replaced by the variable's value; values are not looked into again."""

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if not match.group(2) or not _NAME.fullmatch(name):
            raise PromptError(
                f"malformed reference {match.group(0)[:40]!r}",
                where=f"section {section!r}",
                expected="{{name}} with letters, digits, dots, dashes and underscores, without spaces",
            )
        if name not in variables:
            near = difflib.get_close_matches(name, variables, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise PromptError(
                f"variable {name!r} is unknown{hint}",
                where=f"section {section!r}",
                expected=f"one of {', '.join(sorted(variables)) or 'no variable at all'}",
            )
        value = variables[name]
        if not value:
            raise PromptError(f"variable {name!r} has no value", where=f"section {section!r}")
        return value

    return _REFERENCE.sub(value_of, text)


def sort_tools(schemas: Iterable[ToolSchema], order: Sequence[str] = ()) -> tuple[ToolSchema, ...]:
    """The schemas in the order given, the others after them by name in UTF-16 code units, whoever registered first.

    Raises: PromptError when the order names an unknown tool or one tool twice.
    """
    by_name = {schema.name: schema for schema in schemas}
    unknown = [name for name in order if name not in by_name]
    if unknown:
        raise PromptError(f"{unknown[0]!r} is no tool", where="tool order", expected=", ".join(sorted(by_name)))
    if len(set(order)) != len(order):
        raise PromptError("a tool stands twice", where="tool order")
    rest = sorted(by_name.keys() - set(order), key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return tuple(by_name[name] for name in (*order, *rest))


def snapshot_message(
    messages: Sequence[Message], text: str | None, plugin: str, message_id: Callable[[], MessageId]
) -> Message | None:
    """The message that tells the model of volatile facts, or None when it already knows them.

    Written when the text differs from the last snapshot the model can see; facts that vanish are taken back in words.
    """
    last = next(
        (
            text_of(message)
            for message in reversed(messages)
            if isinstance(message.source, PluginSource)
            and message.source.plugin == plugin
            and message.source.form == "snapshot"
        ),
        NO_SNAPSHOT,
    )
    now = text or NO_SNAPSHOT
    if now == last:
        return None
    return Message(message_id(), "user", (TextBlock(now),), PluginSource(plugin, "snapshot"))
