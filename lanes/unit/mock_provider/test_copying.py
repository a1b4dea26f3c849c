"""Placeholders copy from the request, strictly."""

from __future__ import annotations

import pytest

from mock_provider.copying import CopyError, Source, TemplateError, split_template
from mock_provider.json_values import Json

SOURCE = Source(
    {"messages": [{"content": "first"}, {"content": "last", "n": 3}], "options": {"a b": [1]}}, {"word": "w"}
)


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        pytest.param("{{request.messages[-1].content}}!", "last!", id="path"),
        pytest.param("{{ request.messages[1].n }}", "3", id="number-as-text"),
        pytest.param('{{request.options["a b"]}}', "[1]", id="quoted-key-and-json"),
        pytest.param("<{{match.word}}>", "<w>", id="group"),
        pytest.param("{{{{x}}}}", "{{x}}", id="escaped"),
        pytest.param('{"a":{"b":{"c":{}}}}', '{"a":{"b":{"c":{}}}}', id="closing-braces-of-json"),
        pytest.param("a { b } c", "a { b } c", id="single-braces"),
    ],
)
def test_a_template_is_filled(template: str, filled: str) -> None:
    assert SOURCE.text(template) == filled


@pytest.mark.parametrize(
    ("template", "value"),
    [
        pytest.param("{{request.messages[1].n}}", 3, id="whole-text-keeps-the-type"),
        pytest.param(["{{match.word}}", {"k": "x{{request.messages[1].n}}"}, 1], ["w", {"k": "x3"}, 1], id="deep"),
    ],
)
def test_values_inside_arguments_are_filled(template: Json, value: Json) -> None:
    assert SOURCE.json(template) == value


@pytest.mark.parametrize("template", ["{{request.messages[7].content}}", "{{request.nothing}}", "{{match.other}}"])
def test_a_value_that_is_not_there_is_an_error(template: str) -> None:
    with pytest.raises(CopyError):
        SOURCE.text(template)


@pytest.mark.parametrize("template", ["{{", "{{request.a", "{{reqest.a}}", "{{request.}}", "{{match.a b}}", "{{}}"])
def test_a_placeholder_that_cannot_be_read_is_an_error(template: str) -> None:
    with pytest.raises(TemplateError):
        split_template(template)
