"""What the Responses endpoint refuses about how input items hang together, in its own words.

Room: pure; only the Responses dialect comes in.
Source: as openai_responses_rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.openai_responses_input import CALLS, OUTPUTS, kind_of_item
from mock_provider.json_values import JsonObject

_NAMES = {"function_call": "function call", "custom_tool_call": "custom tool call"}


def refuse_history(
    items: Sequence[JsonObject], first: int, reasoning_before: Callable[[str], str | None]
) -> Refusal | None:
    """Check a whole history, references resolved.

    Shape: the items from first on came with this request, those before with the responses it continues.
    reasoning_before gives, for the id of a kept item, the id of the reasoning that led to it.
    """
    return (
        _twice(items, first)
        or _pairs(items)
        or _reasoning(items, first)
        or refuse_without_reasoning(items, first, reasoning_before)
    )


def _refuse(rule: str, text: str) -> Refusal:
    return Refusal(400, rule, text, param="input")


def _twice(items: Sequence[JsonObject], first: int) -> Refusal | None:
    seen: set[str] = {str(item["id"]) for item in items[:first] if item.get("id")}
    for item in items[first:]:
        name = item.get("id")
        if isinstance(name, str):
            if name in seen:
                text = f"Duplicate item found with id {name}. Remove duplicate items from your input and try again."
                return _refuse("duplicate_item", text)
            seen.add(name)
    return None


def _pairs(items: Sequence[JsonObject]) -> Refusal | None:
    """Every output after its call, every call with an output somewhere behind it."""
    waiting: dict[tuple[str, str], None] = {}
    answered: set[tuple[str, str]] = set()
    for item in items:
        kind = kind_of_item(item)
        if kind in CALLS:
            key = (kind, str(item.get("call_id")))
            if key in waiting or key in answered:
                return _refuse("duplicate_call_id", f"Duplicate {_NAMES[kind]} with call_id {key[1]}.")
            waiting[key] = None
        elif kind in OUTPUTS:
            key = (OUTPUTS[kind], str(item.get("call_id")))
            if key in answered:
                text = f"Duplicate tool output found for {_NAMES[key[0]]} {key[1]}."
                return _refuse("duplicate_tool_result", text)
            if key not in waiting:
                text = f"No tool call found for {_NAMES[key[0]]} output with call_id {key[1]}."
                return _refuse("orphan_tool_result", text)
            del waiting[key]
            answered.add(key)
    for kind, call_id in waiting:
        return _refuse("unanswered_tool_call", f"No tool output found for {_NAMES[kind]} {call_id}.")
    return None


def _reasoning(items: Sequence[JsonObject], first: int) -> Refusal | None:
    """Reasoning is followed by what it led to."""
    for at in range(first, len(items)):
        item = items[at]
        if kind_of_item(item) != "reasoning":
            continue
        following = items[at + 1] if at + 1 < len(items) else None
        kind = kind_of_item(following) if following is not None else ""
        if following is None or kind in OUTPUTS or (kind == "message" and following.get("role") != "assistant"):
            name = item.get("id") or f"input[{at - first}]"
            text = f"Item '{name}' of type 'reasoning' was provided without its required following item."
            return _refuse("reasoning_without_item", text)
    return None


def refuse_without_reasoning(
    items: Sequence[JsonObject], first: int, reasoning_before: Callable[[str], str | None]
) -> Refusal | None:
    """Check that what a kept reasoning led to is given back with it. Shape: as refuse_history."""
    given = {item.get("id") for item in items}
    for item in items[first:]:
        name = item.get("id")
        needed = reasoning_before(name) if isinstance(name, str) else None
        if needed is not None and needed not in given:
            text = (
                f"Item '{name}' of type '{kind_of_item(item)}' was provided without its required 'reasoning' item: "
                f"'{needed}'."
            )
            return _refuse("item_without_reasoning", text)
    return None
