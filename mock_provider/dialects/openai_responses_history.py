"""The input items of a Responses request, read and found sound in one go, from where the last request ended.

Room: pure; the Responses dialect comes in. What is wrong with items that are not sound is said by the rules.
Source: as openai_responses_rules, for how items hang together as openai_history_rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mock_provider.asked import AskedCall, AskedMessage, AskedResult
from mock_provider.dialects.openai_input_rules import refuse_item
from mock_provider.dialects.openai_responses_input import CALLS, OUTPUTS, ROLES, kind_of_item, read_content
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import Growing, fold
from mock_provider.pieces import size_bytes
from mock_provider.values import value

_Key: TypeAlias = "tuple[str, str]"  # of a call: its kind and its id


@value
class Heard:
    """Items in which no rule is broken, as far as they were read.

    Shape: messages are those that are complete, size_bytes is that of all they say; texts and calls are of the model's
    message that is not. names are those of calls by their ids; waiting are calls without an output, answered the
    others; ids are those of all items, named the items that have one; is_reasoning says that the last item needs
    another behind it.
    """

    messages: Growing[AskedMessage]
    size_bytes: int
    texts: tuple[str, ...]
    calls: tuple[AskedCall, ...]
    names: Mapping[str, str]
    waiting: tuple[_Key, ...]
    answered: frozenset[_Key]
    ids: frozenset[str]
    named: Growing[JsonObject]
    is_reasoning: bool

    def all(self) -> tuple[tuple[AskedMessage, ...], int]:
        """All messages, and the size of all that is said."""
        if not (self.texts or self.calls):
            return self.messages.all(), self.size_bytes
        last = AskedMessage("assistant", self.texts, self.calls)
        return (*self.messages.all(), last), self.size_bytes + size_bytes(last.said())


_NOTHING = Heard(Growing(), 0, (), (), {}, (), frozenset(), frozenset(), Growing(), is_reasoning=False)


def read_sound(items: Json, *, is_open: bool) -> Heard | None:
    """Read items that came with this request. Shape: None where a rule may be broken, or a kept item be meant.

    is_open is for servers that give reasoning unsealed.
    """
    if not isinstance(items, list) or not items:
        return None
    start: Heard | None = _NOTHING
    heard = fold(_hear_open if is_open else _hear_sealed, start, items)
    return None if heard is None or heard.waiting or heard.is_reasoning else heard


def _hear_open(heard: Heard | None, items: Sequence[Json]) -> Heard | None:
    return _hear(heard, items, is_open=True)


def _hear_sealed(heard: Heard | None, items: Sequence[Json]) -> Heard | None:
    return _hear(heard, items, is_open=False)


def _hear(heard: Heard | None, items: Sequence[Json], *, is_open: bool) -> Heard | None:
    """Items after those before them."""
    if heard is None:
        return None
    new: list[AskedMessage] = []
    texts, calls, names = [*heard.texts], [*heard.calls], dict(heard.names)
    waiting, answered = dict.fromkeys(heard.waiting), set(heard.answered)
    ids, named, is_reasoning = set(heard.ids), [], heard.is_reasoning

    def close() -> None:
        if texts or calls:
            new.append(AskedMessage("assistant", tuple(texts), tuple(calls)))
            texts.clear()
            calls.clear()

    for item in items:
        if not isinstance(item, dict) or refuse_item(item, "", is_open=is_open):
            return None
        kind, name = kind_of_item(item), item.get("id")
        if is_reasoning and (kind in OUTPUTS or (kind == "message" and item.get("role") != "assistant")):
            return None
        is_reasoning = kind == "reasoning"
        if kind == "item_reference" or (is_reasoning and not item.get("encrypted_content") and not is_open):
            return None
        if isinstance(name, str):
            if name in ids:
                return None
            ids.add(name)
            named.append(item)
        if kind == "message":
            role = ROLES[str(item["role"])]
            said, pictures = read_content(item.get("content"))
            if role == "assistant":
                texts += said
            else:
                close()
                new.append(AskedMessage(role, said, (), (), pictures))
        elif kind in CALLS:
            call = AskedCall(str(item.get("call_id", "")), str(item["name"]), str(item[CALLS[kind]]))
            key = (kind, call.id)
            if key in waiting or key in answered:
                return None
            waiting[key] = None
            names[call.id] = call.name
            calls.append(call)
        elif kind in OUTPUTS:
            call_id = str(item.get("call_id", ""))
            key = (OUTPUTS[kind], call_id)
            if key not in waiting:
                return None
            del waiting[key]
            answered.add(key)
            close()
            said, pictures = read_content(item.get("output"))
            result = AskedResult(call_id, names.get(call_id, ""), "\n".join(said))
            new.append(AskedMessage("tool", (), (), (result,), pictures))
    size = heard.size_bytes
    for message in new:
        size += size_bytes(message.said())
    return Heard(
        heard.messages.plus(new),
        size,
        tuple(texts),
        tuple(calls),
        names,
        tuple(waiting),
        frozenset(answered),
        frozenset(ids),
        heard.named.plus(named),
        is_reasoning,
    )
