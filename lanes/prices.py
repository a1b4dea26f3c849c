"""Prices: what tokens cost, and how many of each kind an answer says that it took.

Room: pure. The provider table, the budget and the witness of the wire come in. What is not known is None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from lanes.record import Json, JsonObject

PER = 1_000_000  # providers name their prices for a million tokens


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs.

    Units: USD for a million tokens: sent and new, sent and found in the provider's cache, written by the model.
    """

    fresh: Decimal
    cached: Decimal
    out: Decimal


@dataclass(frozen=True, slots=True)
class Tokens:
    """How many tokens of each kind; reasoning is part of out and told beside it."""

    fresh: int = 0
    cached: int = 0
    out: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Sent and written together."""
        return self.fresh + self.cached + self.out


def read_tokens(usage: Json) -> Tokens | None:
    """Read what an answer says of its usage, in the words of either dialect; None when it does not say.

    Source: OpenAI API reference, "Chat completions", usage: the cached tokens are part of the prompt's; DeepSeek names
    them prompt_cache_hit_tokens. Anthropic API reference, "Messages", usage: input_tokens leaves out what was read from
    the cache and what was written to it; the dearest of the two rates for writing is that of two tokens.
    """
    if not isinstance(usage, Mapping):
        return None
    sent, out = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if sent is not None and out is not None:
        cached = _count(usage, "prompt_cache_hit_tokens") or _detail(usage, "prompt_tokens_details", "cached_tokens")
        reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
        return Tokens(max(sent - cached, 0), min(cached, sent), out, reasoning)
    sent, out = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    if sent is None or out is None:
        return None
    written = _count(usage, "cache_creation_input_tokens") or 0
    return Tokens(sent + 2 * written, _count(usage, "cache_read_input_tokens") or 0, out)


def cost_of(tokens: Tokens | None, price: Price | None) -> Decimal | None:
    """What some tokens cost.

    Units: USD. None when the tokens or their price are not known.
    """
    if tokens is None or price is None:
        return None
    return (tokens.fresh * price.fresh + tokens.cached * price.cached + tokens.out * price.out) / PER


def worst_cost(sent_bytes: int, out_tokens: int, price: Price | None) -> Decimal | None:
    """The most that a request can cost: no token is shorter than a byte, and nothing is found in a cache.

    Units: USD. None when the price is not known.
    """
    return cost_of(Tokens(fresh=sent_bytes, out=out_tokens), price)


def cost_facts(usages: Iterable[Json], price: Price | None, table: str) -> JsonObject:
    """The cost group of a record: the tokens of all its answers, and the estimate of their price.

    Shape: usd is a text, or None when a price or the usage of one answer is not known; nothing was asked costs nothing.
    """
    told = [read_tokens(usage) for usage in usages]
    known = [each for each in told if each is not None]
    whole = Tokens(
        sum(each.fresh for each in known),
        sum(each.cached for each in known),
        sum(each.out for each in known),
        sum(each.reasoning for each in known),
    )
    usd = cost_of(whole, price) if len(known) == len(told) else None
    return {
        "in": whole.fresh + whole.cached,
        "cached": whole.cached,
        "out": whole.out,
        "reasoning": whole.reasoning,
        "usd": None if usd is None else usd_text(usd),
        "usd_is_estimate": True,
        "price_table": table,
    }


def usd_text(usd: Decimal) -> str:
    """An amount as it is written: to a millionth of a dollar, rounded up, so that nothing reads as free that is not."""
    return f"{usd.quantize(Decimal('0.000001'), rounding='ROUND_CEILING'):f}"


def _count(usage: JsonObject, name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _detail(usage: JsonObject, group: str, name: str) -> int:
    found = usage.get(group)
    return (_count(found, name) or 0) if isinstance(found, Mapping) else 0
