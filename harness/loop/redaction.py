"""Secrets taken out of texts before they are written down: of messages, and of all that leaves a tool.

Room: assemble, the tools and the capabilities come in. It reads nothing; what it is given is all it knows.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard, cast

from harness.loop.tools import Tool, ToolContext, ToolOutput, checked_output, failed_output, invalid_output
from harness.model.messages import ImageBlock, Json, Message, TextBlock

STAND_IN = "[key removed]"
MIN_SECRET = 8  # a shorter value is no secret, and taking it out would cut holes into ordinary text


def is_secret(value: str | None) -> TypeGuard[str]:
    """Whether a value is long enough to be a secret."""
    return value is not None and len(value) >= MIN_SECRET


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values that nothing may carry; those too short to be secrets are passed over.

    Shape: each is taken out as it is, as JSON spells it, and with its white space drawn together, as a line shows it;
    of two that begin at one place the longer. What a shape, a regular expression, fits is taken out too. stand_in is
    what is put in the place of each.
    """

    values: tuple[str, ...] = field(default=(), repr=False)
    shapes: tuple[str, ...] = ()
    stand_in: str = STAND_IN
    forms: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _search: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms = {form for value in self.values if is_secret(value) for form in _forms(value)}
        longest_first = tuple(sorted(forms, key=len, reverse=True))
        object.__setattr__(self, "forms", longest_first)
        object.__setattr__(self, "_search", _any_of((*map(re.escape, longest_first), *self.shapes)))

    def __bool__(self) -> bool:
        """Whether there is anything to take out."""
        return self._search is not None

    def and_of(self, values: Iterable[str | None]) -> Secrets:
        """These and others."""
        return replace(self, values=(*self.values, *(value for value in values if is_secret(value))))

    def text(self, text: str) -> str:
        """The text without any of them."""
        return text if self._search is None else self._search.sub(lambda _: self.stand_in, text)

    def data(self, data: bytes) -> bytes:
        """The bytes without any of the values."""
        for form in self.forms:
            data = data.replace(form.encode("utf-8", "surrogateescape"), self.stand_in.encode())
        return data

    def message(self, message: Message) -> Message:
        """The message without any of them in its texts; the same one where they hold none."""
        content = tuple(
            replace(block, text=self.text(block.text)) if isinstance(block, TextBlock) else block
            for block in message.content
        )
        return message if content == message.content else replace(message, content=content)

    def value(self, value: Json) -> Json:
        """A JSON value without any of them, in keys too; what is no JSON stays as it is.

        Raises: RecursionError for a value nested deeper than the interpreter can follow.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self._key(name): self.value(each) for name, each in value.items()}
        if isinstance(value, tuple):
            return tuple(self.value(each) for each in value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return value

    def output(self, output: ToolOutput) -> ToolOutput:
        """The output without any of them, wherever a tool can put a text."""
        try:
            meta = None if output.meta is None else self.value(output.meta)
            content = tuple(self._block(block) for block in output.content)
        except RecursionError:
            return invalid_output("it is nested too deeply")
        return replace(
            output,
            content=content,
            code=self.text(output.code) if isinstance(output.code, str) else output.code,
            meta=cast("Mapping[str, Json] | None", meta),
            context=tuple(self.text(each) for each in output.context),
        )

    def tool(self, tool: Tool) -> Tool:
        """The same tool, whose outputs and failures hold none of them."""
        if not self:
            return tool

        async def run(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
            try:
                return self.output(checked_output(await tool.run(arguments, context)))
            except (asyncio.CancelledError, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - a tool may raise anything; what it says has to be cleaned first
                return self.output(failed_output(error))

        return replace(tool, run=run)

    def _key(self, name: object) -> str:
        return self.text(name) if isinstance(name, str) else cast("str", name)  # any other is the log's to refuse

    def _block(self, block: object) -> TextBlock | ImageBlock:
        """A block of a tool's answer; one that is no block goes on to the log, which refuses it by its type."""
        if isinstance(block, TextBlock):
            return replace(block, text=cast("str", self.value(block.text)))
        return block if isinstance(block, ImageBlock) else cast("TextBlock", self.value(cast("Json", block)))


def _forms(value: str) -> tuple[str, ...]:
    return value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], " ".join(value.split())


def _any_of(expressions: tuple[str, ...]) -> re.Pattern[str] | None:
    """One pattern for all of them, the first that fits; none where there are none."""
    return re.compile("|".join(expressions)) if expressions else None
