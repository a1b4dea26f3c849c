"""How old a recording is, and what else makes it say too little about today: a pure verdict from dates and facts.

Room: pure; the channel of recordings comes in. Age is that of the oldest exchange, by what it says of itself and never
by the file's: a checkout makes every file new. Reading a recording does not refresh it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lanes.cassette_checks import Origin, check_dates, recorded_at
from lanes.record import Json, digest_json

FRESH_DAYS = 30
STALE_DAYS = 90
# Who may have written a recording, and the oldest form of each that still says all that is asked of it.
RECORDER_FLOORS: Mapping[str, int] = {"lanes.recording": 1, "lanes.recorder": 1, "mock_provider.record": 1}
LOCAL = "local"  # what the model of this machine is called, where a provider is named
_RECORDER = re.compile(r"([a-z_.]+)/([0-9]+)")

Level = Literal["undated", "fresh", "ageing", "stale"]


@dataclass(frozen=True, slots=True)
class ProviderAges:
    """What the provider table says of recordings of one service.

    Shape: models may be asked for, retired ones may not any more; an empty models says nothing.
    Units: fresh_days and stale_days may tighten the common levels and never loosen them.
    """

    name: str
    host: str
    models: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    fresh_days: int = FRESH_DAYS
    stale_days: int = STALE_DAYS


@dataclass(frozen=True, slots=True)
class Today:
    """What a recording is held against.

    Shape: committed gives the time of the commit that holds a file as it stands, by its name in the tree; headers are
    the digests of the pinned request headers by the names of their tools; drifted gives the ids of the breaking
    findings of a provider, drifted_dialects those that break what the mock provider says of a dialect.
    """

    now: datetime
    committed: Mapping[str, datetime] = field(default_factory=dict)
    providers: tuple[ProviderAges, ...] = ()
    headers: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    drifted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drifted_dialects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def provider(self, host: Json) -> ProviderAges | None:
        """The row of a host, if it has one."""
        return next((each for each in self.providers if each.host == host), None)


def age_days(origins: Sequence[Origin], now: datetime, where: str = "") -> int | None:
    """The age of the oldest exchange in whole days; None when none of them has a date."""
    dates = [found for origin in origins if (found := recorded_at(origin, where)) is not None]
    return (now - min(dates)).days if dates else None


def level(age: int | None, row: ProviderAges | None = None) -> Level:
    """What an age means; a provider's own limits count where they are tighter."""
    if age is None:
        return "undated"
    fresh, stale = _limits(row)
    if age > stale:
        return "stale"
    return "ageing" if age > fresh else "fresh"


def freshness(origins: Sequence[Origin], bodies: Sequence[Json], today: Today, where: str) -> dict[str, Json]:
    """The facts of a recording's age and of what else is stale about it, as evidence shows them.

    Shape: origins and bodies are those of its exchanges, in order; where is its name in the tree.
    Raises: CassetteError for a date that cannot be true.
    """
    check_dates(origins, where, now=today.now, committed=today.committed.get(where))
    age = age_days(origins, today.now, where)
    row = today.provider(origins[0].get("host")) if origins else None
    fresh, stale = _limits(row)
    reasons = [*stale_forms(origins), *stale_headers(bodies, today.headers)]
    reasons += [] if row is None else stale_models(origins, row)
    reasons += [told for name in _providers(origins, row) for told in _drifted(today.drifted.get(name, ()))]
    return {
        "age_days": age,
        "level": level(age, row),
        "fresh_days": fresh,
        "stale_days": stale,
        "stale_reasons": list(dict.fromkeys(reasons)),
    }


def stale_forms(origins: Iterable[Origin], floors: Mapping[str, int] = RECORDER_FLOORS) -> list[str]:
    """Recorders that are unknown, or older than what is still accepted of them."""
    reasons: list[str] = []
    for origin in origins:
        told = str(origin.get("recorder"))
        match = _RECORDER.fullmatch(told)
        floor = floors.get(match[1]) if match else None
        if match is None or floor is None:
            reasons.append(f"recorder {told} is not known")
        elif int(match[2]) < floor:
            reasons.append(f"recorder {told} is older than {match[1]}/{floor}")
    return reasons


def stale_models(origins: Iterable[Origin], row: ProviderAges) -> list[str]:
    """Models that were retired, or that nobody would ask for any more."""
    asked = [str(origin.get("requested_model")) for origin in origins]
    return [
        f"model {model} is retired" if model in row.retired else f"model {model} is not configured any more"
        for model in asked
        if model in row.retired or (row.models and model not in row.models)
    ]


def stale_headers(bodies: Iterable[Json], pinned: Mapping[tuple[str, ...], str]) -> list[str]:
    """Requests whose system text or tools are not those that are pinned for their class today.

    Shape: a class is known by the names of its tools; one that is not pinned is not judged.
    """
    reasons: list[str] = []
    for body in bodies:
        names, digest = header_class(body)
        if names and names in pinned and pinned[names] != digest:
            reasons.append("the request header differs from the pinned one")
    return reasons


def header_class(body: Json) -> tuple[tuple[str, ...], str]:
    """The class of a request of the chat dialect and the digest of its header: system text and tools."""
    fields = body if isinstance(body, dict) else {}
    tools, messages = fields.get("tools"), fields.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    is_system = isinstance(first, dict) and first.get("role") == "system"
    system = first.get("content") if isinstance(first, dict) and is_system else None
    names = tuple(sorted(_tool_name(tool) for tool in tools)) if isinstance(tools, list) else ()
    return names, digest_json({"system": system, "tools": tools})


def _tool_name(tool: Json) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else ""


def _limits(row: ProviderAges | None) -> tuple[int, int]:
    if row is None:
        return FRESH_DAYS, STALE_DAYS
    return min(FRESH_DAYS, row.fresh_days), min(STALE_DAYS, row.stale_days)


def drifted_dialects(dialects: Iterable[str], today: Today) -> list[str]:
    """Why answers in these dialects are stale: what they stand for is not what a provider does any more."""
    return [told for name in sorted(set(dialects)) for told in _drifted(today.drifted_dialects.get(name, ()))]


def _providers(origins: Iterable[Origin], row: ProviderAges | None) -> list[str]:
    """The providers of a recording: the one of its host, and the model of this machine where that answered."""
    is_local = any(origin.get("class") == "live" and origin.get("host") == "loopback" for origin in origins)
    return [*([] if row is None else [row.name]), *([LOCAL] if is_local else [])]


def _drifted(findings: Iterable[str]) -> list[str]:
    return [f"its provider drifted: {finding}" for finding in findings]
