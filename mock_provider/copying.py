"""Copying from the request into the reply: `{{request.PATH}}` and `{{match.GROUP}}`.

Room: pure; the script rooms check with it, the engine fills with it.
`{{{{` stands for two literal braces, and the `}}}}` that follows such an opening for two closing ones;
everything else, closing braces of JSON included, is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mock_provider.json_values import Json, JsonObject, JsonPath, canonical_json, find_value, parse_path
from mock_provider.values import value


@value
class FromRequest:
    """The value at a path of the request body."""

    path: JsonPath


@value
class FromMatch:
    """The text of a named group of a regular expression of this step."""

    group: str


Piece: TypeAlias = "str | FromRequest | FromMatch"


class TemplateError(ValueError):
    """A placeholder that cannot be read; the text says why."""


class CopyError(ValueError):
    """A placeholder for which this request has no value; the text names it."""


def split_template(text: str) -> tuple[Piece, ...]:
    """Cut a text into literals and placeholders. Raises: TemplateError."""
    if "{{" not in text:
        return (text,)
    pieces: list[Piece] = []
    literal: list[str] = []
    at = 0
    escaped = 0
    while at < len(text):
        if text.startswith("{{{{", at):
            literal.append("{{")
            escaped += 1
            at += 4
        elif escaped and text.startswith("}}}}", at):
            literal.append("}}")
            escaped -= 1
            at += 4
        elif text.startswith("{{", at):
            end = text.find("}}", at)
            if end < 0:
                raise TemplateError("'{{' is not closed; write '{{{{' for two literal braces")
            if literal:
                pieces.append("".join(literal))
                literal = []
            pieces.append(_placeholder(text[at + 2 : end].strip()))
            at = end + 2
        else:
            literal.append(text[at])
            at += 1
    if literal:
        pieces.append("".join(literal))
    return tuple(pieces)


def _placeholder(name: str) -> Piece:
    source, _, rest = name.partition(".")
    if source == "match" and rest.isidentifier():
        return FromMatch(rest)
    if source == "request":
        path = parse_path(rest)
        if path is not None:
            return FromRequest(path)
    raise TemplateError(f"cannot copy '{name}'; write request.<path> or match.<group>, or '{{{{{{{{' for two braces")


@value
class Source:
    """What placeholders are filled from."""

    body: JsonObject
    groups: Mapping[str, str]

    def value(self, piece: FromRequest | FromMatch) -> Json:
        """Find one value. Raises: CopyError."""
        if isinstance(piece, FromMatch):
            if piece.group not in self.groups:
                raise CopyError(f"copies {{{{match.{piece.group}}}}}, which no condition of the step captured")
            return self.groups[piece.group]
        found = find_value(self.body, piece.path)
        if found is None:
            raise CopyError(f"copies {{{{request.{piece.path.text}}}}}, which the request does not have")
        return found.value

    def text(self, template: str) -> str:
        """Fill a text; values that are not texts are written as JSON. Raises: CopyError."""
        filled: list[str] = []
        for piece in split_template(template):
            if isinstance(piece, str):
                filled.append(piece)
            else:
                value = self.value(piece)
                filled.append(value if isinstance(value, str) else canonical_json(value))
        return "".join(filled)

    def json(self, template: Json) -> Json:
        """Fill every text inside a value; a text that is one placeholder keeps the value's type. Raises: CopyError."""
        if isinstance(template, str):
            pieces = split_template(template)
            if len(pieces) == 1 and not isinstance(pieces[0], str):
                return self.value(pieces[0])
            return self.text(template)
        if isinstance(template, list):
            return [self.json(item) for item in template]
        if isinstance(template, dict):
            return {key: self.json(item) for key, item in template.items()}
        return template
