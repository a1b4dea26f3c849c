"""System text and tool order."""

from __future__ import annotations

import pytest

from harness.loop.prompt import (
    PromptError,
    Section,
    fill,
    render_system,
    snapshot_message,
    sort_sections,
    sort_tools,
)
from harness.model.call import ToolSchema
from harness.model.messages import Message, MessageId, PluginSource, TextBlock


def schema(name: str) -> ToolSchema:
    return ToolSchema(name, "", {"type": "object"})


def test_sections_stand_by_order_and_empty_ones_are_left_out() -> None:
    sections = sort_sections([Section("c", 2, " \n"), Section("b", 3, "last\n"), Section("a", 1, "first")])
    assert [section.name for section in sections] == ["a", "c", "b"]
    assert render_system([(section.name, str(section.text)) for section in sections], {}) == "first\n\nlast"


def test_no_text_at_all_is_absent() -> None:
    assert render_system([("a", ""), ("b", "  ")], {}) is None


def test_references_are_filled_in_once_and_values_are_not_looked_into() -> None:
    assert fill("a", "{{x}} and {{x}} {not} }}", {"x": "{{y}}"}) == "{{y}} and {{y}} {not} }}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{{nme}}", "section 'who': variable 'nme' is unknown; did you mean 'name'?"),
        ("{{ name }}", "section 'who': malformed reference '{{ name }}'"),
        ("{{}}", "section 'who': malformed reference '{{}}'"),
        ("{{name", "section 'who': malformed reference '{{name'"),
        ("{{empty}}", "section 'who': variable 'empty' has no value"),
    ],
)
def test_T05_a_reference_that_cannot_be_filled_in_names_section_and_variable(text: str, what: str) -> None:
    with pytest.raises(PromptError) as refused:
        fill("who", text, {"name": "x", "empty": ""})
    assert str(refused.value).startswith(what)
    assert refused.value.error_code == "PROMPT"


def test_two_sections_of_one_name_are_refused() -> None:
    with pytest.raises(PromptError, match="section 'a': the name stands twice"):
        sort_sections([Section("a", 1, ""), Section("a", 2, "")])


def test_R03_tools_stand_in_code_unit_order_and_a_given_order_comes_first() -> None:
    """U+FF5E is above U+1F600 in UTF-16 code units and below it in code points."""
    tools = [schema(name) for name in ("\uff5e", "\U0001f600", "b", "a")]
    assert [tool.name for tool in sort_tools(tools)] == ["a", "b", "\U0001f600", "\uff5e"]
    assert [tool.name for tool in sort_tools(tools, ("b", "\uff5e"))] == ["b", "\uff5e", "a", "\U0001f600"]


@pytest.mark.parametrize("order", [("x",), ("a", "a")])
def test_a_tool_order_that_names_an_unknown_tool_or_one_twice_is_refused(order: tuple[str, ...]) -> None:
    with pytest.raises(PromptError, match="tool order"):
        sort_tools([schema("a")], order)


def snapshot(text: str, plugin: str = "context") -> Message:
    return Message(MessageId("s"), "user", (TextBlock(text),), PluginSource(plugin, "snapshot"))


@pytest.mark.parametrize(
    ("seen", "text", "expected"),
    [
        ([], None, None),
        ([], "noon", "noon"),
        ([snapshot("noon")], "noon", None),
        ([snapshot("noon")], "night", "night"),
        ([snapshot("noon")], None, "(none)"),
        ([snapshot("noon"), snapshot("(none)")], "", None),
        ([snapshot("noon"), snapshot("(none)")], "noon", "noon"),
        ([snapshot("noon", "other")], "noon", "noon"),
    ],
)
def test_a_snapshot_is_written_when_the_model_does_not_know_it_yet(
    seen: list[Message], text: str | None, expected: str | None
) -> None:
    made = snapshot_message(seen, text, "context", lambda: MessageId("s"))
    assert made == (None if expected is None else snapshot(expected))
