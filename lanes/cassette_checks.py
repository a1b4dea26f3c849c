"""What makes a cassette unusable although every field of it reads: doubled ids, another model, passing errors, dates.

Room: pure; cassette and the channel of recordings come in. Each fault has a code of its own, and none of them ever
makes a cassette an absent one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from lanes.errors import CassetteError
from lanes.record import Json

# Statuses that say nothing about the product: they are gone a minute later.
TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)})

Origin = Mapping[str, Json]


def check_status(status: Json, where: str, *, keeps_transient: bool) -> None:
    """Refuse a status that is none, and one that passes by itself unless the claim is about just that.

    Raises: CassetteError with code CASSETTE_TRANSIENT, or CASSETTE_DAMAGED.
    """
    code = status.get("code") if isinstance(status, dict) else None
    if not isinstance(code, int) or isinstance(code, bool):
        raise _error(f"{where}, response.status", "has no code", "an object with code and message", "CASSETTE_DAMAGED")
    if code in TRANSIENT and not keeps_transient:
        what = f"answers with the status {code}, which passes by itself"
        raise _error(where, what, "a lasting answer", "CASSETTE_TRANSIENT")


def check_model(origin: Origin, body: Json, where: str) -> None:
    """Refuse an exchange that was recorded of another model than its own request asks for.

    Raises: CassetteError with code CASSETTE_OTHER_MODEL.
    """
    asked = body.get("model") if isinstance(body, dict) else None
    told = origin.get("requested_model")
    if isinstance(asked, str) and told != asked:
        what = f"its request asks for the model {asked!r}, its origin says {told!r}"
        raise _error(where, what, "one model", "CASSETTE_OTHER_MODEL")


def check_ids(origins: Iterable[Origin], where: str) -> None:
    """Refuse two exchanges with one id of the provider: no answer is given twice.

    Raises: CassetteError with code CASSETTE_DUPLICATE_ID.
    """
    holders: dict[str, int] = {}
    for number, origin in enumerate(origins, start=1):
        found = origin.get("provider_id")
        if not isinstance(found, str):
            continue
        if found in holders:
            what = f"has the answer id of interaction {holders[found]}"
            raise _error(f"{where}, interaction {number}", what, "an id of its own", "CASSETTE_DUPLICATE_ID")
        holders[found] = number


def check_dates(origins: Sequence[Origin], where: str, *, now: datetime, committed: datetime | None) -> None:
    """Refuse an exchange that was recorded in the future, or after the commit that already holds it.

    Shape: committed is None for a file that is in no commit as it stands.
    Raises: CassetteError with code CASSETTE_FUTURE, CASSETTE_AFTER_COMMIT, or CASSETTE_FIELD for what is no date.
    """
    for number, origin in enumerate(origins, start=1):
        place = f"{where}, interaction {number}"
        recorded = recorded_at(origin, place)
        if recorded is None:
            continue
        if recorded > now:
            what = f"says it was recorded at {recorded:%Y-%m-%d %H:%M}, which is in the future"
            raise _error(place, what, f"a time before {now:%Y-%m-%d %H:%M}", "CASSETTE_FUTURE")
        if committed is not None and recorded > committed:
            what = f"says it was recorded at {recorded:%Y-%m-%d %H:%M}, its commit is older"
            raise _error(place, what, f"a time before {committed:%Y-%m-%d %H:%M}", "CASSETTE_AFTER_COMMIT")


def recorded_at(origin: Origin, where: str) -> datetime | None:
    """When an exchange was recorded; None when no model was asked.

    Raises: CassetteError with code CASSETTE_FIELD for a text that is no date and time with its zone.
    """
    told = origin.get("recorded_at")
    if told is None:
        return None
    try:
        found = datetime.fromisoformat(str(told))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _error(where, f"recorded_at is {told!r}", "a date and time in UTC", "CASSETTE_FIELD")
    return found


def _error(where: str, what: str, expected: str, code: str) -> CassetteError:
    return CassetteError(what, where=where, expected=expected, fix="restore the file, or record it again", code=code)
