"""Raw facts of a record, read with suspicion: whatever is missing or has the wrong type reads as nothing.

Room: pure. Admission and the board come in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from lanes.record import Json, JsonObject, Record

_LATER_FIELDS = frozenset({"sample", "seen"})  # known, and only there where a run took samples or several attempts


def live_facts(record: Record) -> JsonObject:
    """The live group of a record; empty when it has none."""
    return record.live_proof or {}


def model_facts(record: Record) -> JsonObject:
    """The model group of a record; empty when it has none."""
    return record.model or {}


def unknown_fields(record: Record) -> tuple[str, ...]:
    """The names of the fields of a record that this version does not know; they are kept, and mean nothing here."""
    found = [name for name in record.extra if name not in _LATER_FIELDS]
    found += [f"subject.{name}" for name in record.subject.extra] if record.subject.extra else []
    found += [f"shard.{name}" for name in record.shard.extra] if record.shard.extra else []
    for attempt in record.attempts:
        if attempt.extra:
            found += [f"attempts.{name}" for name in attempt.extra if name not in _LATER_FIELDS]
    return tuple(dict.fromkeys(found))


def told_everywhere(record: Record, name: str) -> tuple[Json, ...]:
    """One fact from the record and from each answer that tells it; the record must tell it itself."""
    found = [live_facts(record).get(name)]
    for answer in record.answers:
        wire = answer.get("wire")
        if isinstance(wire, Mapping) and name in wire:
            found.append(wire[name])
    return tuple(found)


def endpoints(record: Record) -> tuple[tuple[str, str, int, str | None], ...]:
    """Scheme, host, port and path of every place the record and its answers say they spoke to."""
    found: list[tuple[str, str, int, str | None]] = []
    spelled: list[Json] = [model_facts(record).get("endpoint")]
    for answer in record.answers:
        wire = answer.get("wire")
        if isinstance(wire, Mapping) and "endpoint" in wire:
            spelled.append(wire["endpoint"])
    for endpoint in spelled:
        if not isinstance(endpoint, Mapping):
            continue
        port = endpoint.get("port")
        path = endpoint.get("path")
        found.append(
            (
                shown(endpoint.get("scheme")),
                shown(endpoint.get("host")),
                port if isinstance(port, int) else -1,
                path if isinstance(path, str) else None,
            )
        )
    return tuple(found)


def has_endpoint(record: Record) -> bool:
    """Whether the record itself, and not only one of its answers, says where it spoke to."""
    return isinstance(model_facts(record).get("endpoint"), Mapping)


def is_finished(answer: JsonObject) -> bool:
    """Whether an answer came to its end; an error answer and a cut stream did not."""
    status = answer.get("status")
    is_error = isinstance(status, int) and status >= 400
    return not is_error and answer.get("finished") is not False


def address_of(value: Json) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as a value, IPv4 taken out of IPv6; None when the text is no address."""
    if not isinstance(value, str):
        return None
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def is_number(value: Json) -> bool:
    """Whether a fact is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Json) -> float:
    """A fact as a number; 0 for whatever is none."""
    return float(value) if isinstance(value, int | float) else 0.0


def is_text(value: Json) -> bool:
    """Whether a fact is a text with something in it."""
    return isinstance(value, str) and bool(value.strip())


def shown(value: Json) -> str:
    """A fact as text to show; empty for whatever is no text."""
    return value if isinstance(value, str) else ""
