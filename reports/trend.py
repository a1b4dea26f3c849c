"""The trend of the nights: what a claim has shown with a provider over time, and what follows from it.

Room: pure; the clock is an argument. The nightly command comes in with the history.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

from lanes.claims import Claims
from lanes.record import Json, JsonObject
from reports.nights import COLUMN, JUDGED
from reports.rates import Rate

MISSED_AFTER = timedelta(hours=48)  # a night may begin late; two of them in a row do not come late
PROMOTED_AFTER_NIGHTS = 14
SHOWN_NIGHTS = 30
DEAR_NIGHTS, DEAR_FACTOR = 3, 2  # so many nights in a row beyond so many times what a claim may cost are told
GAP = "no data"
NEVER = "no night was ever written down"


@dataclass(frozen=True, slots=True)
class Trend:
    """One claim with one provider.

    Shape: strip is the words of the latest nights, oldest first, with GAP for each night that nothing was judged in;
    rate counts the nights that were judged and no other. days_since_live is None when it was never seen live.
    Units: ttfb_ms is the median of the nights' medians in milliseconds; usd is what the nights cost together, None
    when one of them cannot tell.
    """

    claim_id: str
    provider: str
    model: str
    strip: tuple[str, ...]
    rate: Rate
    days_since_live: int | None
    ttfb_ms: int | None
    usd: Decimal | None
    clean_nights: int

    @property
    def is_promoted(self) -> bool:
        """Whether the claim may be required live: so many nights with live proof, and no other outcome since."""
        return self.clean_nights >= PROMOTED_AFTER_NIGHTS


def trends(history: Sequence[JsonObject], now: datetime) -> tuple[Trend, ...]:
    """Every claim and provider of the history, sorted; of two lines about one night the later one counts."""
    nights = sorted({_text(line, "night") for line in history if _night(line) is not None})
    span = _every_night(nights)
    by_pair: dict[tuple[str, str], dict[str, JsonObject]] = {}
    for line in history:
        if _night(line) is not None and _text(line, "provider"):
            by_pair.setdefault((_text(line, "claim"), _text(line, "provider")), {})[_text(line, "night")] = line
    return tuple(_trend(*pair, by_pair[pair], span, now) for pair in sorted(by_pair))


def missed_nights(history: Sequence[JsonObject], now: datetime) -> tuple[str, ...]:
    """Each time that the schedule was missed for longer than 48 hours, and whether it is being missed now."""
    times = sorted({at for line in history if (at := _time(line)) is not None})
    if not times:
        return (NEVER,)
    found = [
        f"no night between {one:%Y-%m-%d} and {other:%Y-%m-%d}, {_hours(other - one)} hours"
        for one, other in itertools.pairwise(times)
        if other - one > MISSED_AFTER
    ]
    return (*found, *filter(None, [missed_now(history, now)]))


def missed_now(history: Sequence[JsonObject], now: datetime) -> str:
    """The finding that the last night is longer ago than 48 hours; empty when it is not."""
    times = [found for line in history if (found := _time(line)) is not None]
    if not times:
        return NEVER
    last = max(times)
    return f"no night since {last:%Y-%m-%d}, {_hours(now - last)} hours" if now - last > MISSED_AFTER else ""


def promotion_problems(claims: Claims, found: Sequence[Trend]) -> tuple[str, ...]:
    """The claims that are required live without having earned it with any provider."""
    promoted = {each.claim_id for each in found if each.is_promoted}
    return tuple(
        f"claim {claim.id} is required in lane {COLUMN!r} without {PROMOTED_AFTER_NIGHTS} clean nights with live proof"
        for claim in claims
        if COLUMN in claim.required and claim.id not in promoted
    )


def cost_notes(claims: Claims, history: Sequence[JsonObject]) -> tuple[str, ...]:
    """The claims that cost more than twice what they say they may, in each of the latest three nights that were judged.

    Shape: a night whose cost nobody knows counts as one of them.
    """
    found: list[str] = []
    by_pair: dict[tuple[str, str], dict[str, JsonObject]] = {}
    for line in history:
        if line.get("status") in JUDGED and _night(line) is not None:
            by_pair.setdefault((_text(line, "claim"), _text(line, "provider")), {})[_text(line, "night")] = line
    for (claim_id, provider), lines in sorted(by_pair.items()):
        expected = _amount(claims.by_id[claim_id].expected_usd if claim_id in claims.by_id else None)
        latest = [_amount(lines[night].get("usd")) for night in sorted(lines)[-DEAR_NIGHTS:]]
        if expected is None or len(latest) < DEAR_NIGHTS:
            continue
        if all(usd is None or usd > DEAR_FACTOR * expected for usd in latest):
            told = ", ".join("not known" if usd is None else f"${usd:f}" for usd in latest)
            found.append(f"claim {claim_id} with {provider} was to cost ${expected:f} a night, the latest: {told}")
    return tuple(found)


def trend_lines(found: Sequence[Trend]) -> tuple[str, ...]:
    """The trend for a reader, in Markdown table rows; the strip in words, for whoever sees no colours."""
    if not found:
        return ("No night has been judged.",)
    head = (
        "| claim | provider | nights judged | last seen live | first byte | cost | may be required | latest nights |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    )
    return (*head, *(_row(each) for each in found))


def _row(trend: Trend) -> str:
    ago = "never" if trend.days_since_live is None else f"{trend.days_since_live} days ago"
    first = "-" if trend.ttfb_ms is None else f"{trend.ttfb_ms} ms"
    cost = "not known" if trend.usd is None else f"${trend.usd:f}"
    earned = "yes" if trend.is_promoted else f"{trend.clean_nights} of {PROMOTED_AFTER_NIGHTS} nights"
    strip = ", ".join(trend.strip[-SHOWN_NIGHTS:])
    cells = (trend.claim_id, f"{trend.provider} {trend.model}", trend.rate.words, ago, first, cost, earned, strip)
    return f"| {' | '.join(_cell(each) for each in cells)} |"


def _cell(text: str) -> str:
    kept = "".join(each if each.isprintable() else " " for each in text)
    return kept.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _trend(claim_id: str, provider: str, lines: dict[str, JsonObject], span: Sequence[str], now: datetime) -> Trend:
    ordered = [lines[night] for night in sorted(lines)]
    judged = [line for line in ordered if line.get("status") in JUDGED]
    live = [line for line in ordered if _is_live_pass(line)]
    clean = 0
    for line in reversed(judged):
        if not _is_live_pass(line):
            break
        clean += 1
    first_bytes = sorted(value for line in judged if isinstance(value := line.get("ttfb_ms"), int))
    costs = [_amount(line.get("usd")) for line in judged]
    seen = [found for line in live if (found := _time(line)) is not None]
    return Trend(
        claim_id,
        provider,
        _text(ordered[-1], "model"),
        tuple(_word(lines.get(night)) for night in span),
        Rate(sum(1 for line in judged if line.get("status") == "passed"), len(judged)),
        max(0, (now - max(seen)).days) if seen else None,
        first_bytes[len(first_bytes) // 2] if first_bytes else None,
        None if any(cost is None for cost in costs) else sum((cost for cost in costs if cost is not None), Decimal(0)),
        clean,
    )


def _is_live_pass(line: JsonObject) -> bool:
    return line.get("status") == "passed" and line.get("live") is True


def _word(line: JsonObject | None) -> str:
    return _text(line, "status") if line is not None and line.get("status") in JUDGED else GAP


def _every_night(nights: Sequence[str]) -> tuple[str, ...]:
    """Every date from the first night to the last one: one that nobody wrote down is a gap, and not left out."""
    if not nights:
        return ()
    first, last = (datetime.fromisoformat(each).date() for each in (nights[0], nights[-1]))
    return tuple((first + timedelta(days=number)).isoformat() for number in range(min((last - first).days, 4000) + 1))


def _night(line: JsonObject) -> str | None:
    text = _text(line, "night")
    try:
        return text if datetime.fromisoformat(text).date().isoformat() == text else None
    except ValueError:
        return None


def _time(line: JsonObject) -> datetime | None:
    try:
        found = datetime.fromisoformat(_text(line, "at"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _amount(value: Json) -> Decimal | None:
    try:
        return Decimal(value) if isinstance(value, str) and len(value) <= 40 else None
    except InvalidOperation:
        return None


def _text(line: JsonObject, name: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) else ""


def _hours(span: timedelta) -> int:
    return int(span.total_seconds() // 3600)
