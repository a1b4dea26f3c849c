"""The arithmetic of a budget: what was reserved and spent, and whether one more request fits.

Room: pure. The ledger on disk and the report of a run come in. What is not known counts as too much, never as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

RUN = "run"  # the scope that every request of a run belongs to


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one scope may take; None is no limit of that kind.

    Units: wall_s is in seconds since the run began.
    """

    usd: Decimal | None = None
    tokens: int | None = None
    requests: int | None = None
    wall_s: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """What one request may cost at most, before it is made. usd is None when nobody knows the price."""

    scopes: tuple[str, ...]
    usd: Decimal | None
    tokens: int
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One reservation, and what became of it.

    Shape: until it is settled usd and tokens are the worst case; whoever dies leaves it so, and it stays spent.
    is_known is False when an answer came and nobody can tell what it cost.
    """

    id: str
    scopes: tuple[str, ...]
    usd: Decimal
    tokens: int
    is_settled: bool = False
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Total:
    """What one scope has taken: settled, and reserved beside it."""

    usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)
    tokens: int = 0
    requests: int = 0
    is_known: bool = True


def total_of(entries: Iterable[Entry], scope: str) -> Total:
    """What the entries of a scope come to."""
    found = [each for each in entries if scope in each.scopes]
    return Total(
        usd=sum((each.usd for each in found if each.is_settled), Decimal(0)),
        reserved_usd=sum((each.usd for each in found if not each.is_settled), Decimal(0)),
        tokens=sum(each.tokens for each in found),
        requests=len(found),
        is_known=all(each.is_known for each in found),
    )


def why_refused(limits: Mapping[str, Limits], entries: Sequence[Entry], ask: Ask) -> str:
    """Why a request may not be made; empty when it fits into every scope that it belongs to."""
    for scope in ask.scopes:
        limit = limits.get(scope)
        if limit is not None and (reason := _exceeded(limit, total_of(entries, scope), ask)):
            return f"{scope}: {reason}"
    return ""


def settle(entry: Entry, usd: Decimal | None, tokens: int | None) -> Entry:
    """The entry with what its answer did cost; without a price or a usage the worst case stays, and is not known."""
    if usd is None or tokens is None:
        return replace(entry, is_settled=True, is_known=False)
    return replace(entry, usd=usd, tokens=tokens, is_settled=True)


def _exceeded(limit: Limits, total: Total, ask: Ask) -> str:
    if limit.usd is not None:
        if ask.usd is None:
            return "the price of this model is not known, so it would exceed any limit"
        if not total.is_known:
            return "an answer did not say what it used, which counts as all that was left"
        spent = total.usd + total.reserved_usd
        if spent + ask.usd > limit.usd:
            return f"${spent + ask.usd:.6f} with this request, the limit is ${limit.usd}"
    if limit.tokens is not None and (total.tokens + ask.tokens > limit.tokens or not total.is_known):
        return f"{total.tokens + ask.tokens} tokens with this request, the limit is {limit.tokens}"
    if limit.requests is not None and total.requests + 1 > limit.requests:
        return f"{total.requests + 1} requests with this one, the limit is {limit.requests}"
    if limit.wall_s is not None and ask.wall_s > limit.wall_s:
        return f"{ask.wall_s:.0f} s since the run began, the limit is {limit.wall_s} s"
    return ""
