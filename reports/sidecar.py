"""Evidence beside a JUnit file: which items made which requests, as a witness noted them and not as anybody says.

Room: pure. The import of results comes in. An item's answers are what the journal of a mock provider shows; whatever a
sidecar claims beyond that is taken down, and said.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from lanes.bundle import Bundle, ExpectedItem
from lanes.errors import UsageError
from lanes.record import Json, Provenance, Record
from lanes.witness import scripted_notes

SCHEMA = "evidence-sidecar/1"
CLASSES: tuple[Provenance, ...] = ("none", "scripted", "recorded", "live")  # weakest first
MAX_BYTES = 16 * 1024 * 1024
_TOP = ("schema", "commit", "items")
_FIELDS = ("claims", "requests", "class")


@dataclass(frozen=True, slots=True)
class Told:
    """What a sidecar says of one item. Shape: requests are numbers in the journal; claimed is the class it names."""

    claims: tuple[str, ...] = ()
    requests: tuple[int, ...] = ()
    claimed: Provenance = "none"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A checked sidecar. Shape: commit is empty where it names none."""

    items: Mapping[str, Told]
    commit: str = ""
    where: str = "sidecar"


def read_sidecar(data: bytes, *, where: str) -> Sidecar:
    """Check the text of a sidecar.

    Raises: UsageError with place and field, code SIDECAR.
    """
    try:
        document = json.loads(data) if len(data) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        _fail(where, "is no JSON", "one JSON object in UTF-8")
    if document is None:
        _fail(where, f"has {len(data)} bytes", f"{MAX_BYTES} bytes at most")
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else document
        _fail(where, f"schema is {found!r:.80}", f'an object with "schema": "{SCHEMA}"')
    _check_names(document, _TOP, where)
    items, commit = document.get("items", {}), document.get("commit", "")
    if not isinstance(items, dict) or not isinstance(commit, str):
        _fail(where, "'items' is no object, or 'commit' no text", "items by the name that they have in the JUnit file")
    return Sidecar({name: _told(value, f"{where}, item {name!r:.120}") for name, value in items.items()}, commit, where)


def read_journal(data: bytes, *, where: str) -> dict[int, Mapping[str, Json]]:
    """The entries of a mock provider's journal, by their number.

    Raises: UsageError with the line, code SIDECAR.
    """
    entries: dict[int, Mapping[str, Json]] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict) or not _is_entry(entry):
            _fail(f"{where}:{number}", "is no entry of a journal", "the file that `mock-provider run --journal` wrote")
        if entry["number"] in entries:
            _fail(f"{where}:{number}", f"request {entry['number']} is there twice", "the journal of one run")
        entries[entry["number"]] = entry
    return entries


def attach(
    bundle: Bundle, sidecar: Sidecar, journal: Mapping[int, Mapping[str, Json]]
) -> tuple[Bundle, tuple[str, ...]]:
    """Give the items of a JUnit bundle their claims and the answers that a witness saw; and say what was taken down.

    Raises: UsageError for an item that the JUnit file does not have, for a request that the journal does not have, and
    for one that two items claim.
    """
    known = {record.node_id for record in bundle.records}
    for name in sidecar.items:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            _fail(
                sidecar.where, f"item {name!r:.120} is not in the JUnit file{hint}", "CLASSNAME::NAME as JUnit has it"
            )
    _check_requests(sidecar, journal)
    notes: list[str] = []
    records = tuple(_attached(record, sidecar.items.get(record.node_id), journal, notes) for record in bundle.records)
    expected = tuple(ExpectedItem(record.node_id, record.claim_ids) for record in records)
    return replace(bundle, header=replace(bundle.header, expected=expected), records=records), tuple(notes)


def _attached(record: Record, told: Told | None, journal: Mapping[int, Mapping[str, Json]], notes: list[str]) -> Record:
    if told is None:
        return record
    answers = tuple(scripted_notes((journal[number] for number in told.requests), "loopback", ()))
    attached = replace(
        record,
        claim_ids=tuple(dict.fromkeys((*record.claim_ids, *told.claims))),
        answers=answers,
    )
    if CLASSES.index(told.claimed) > CLASSES.index(attached.provenance):
        notes.append(
            f"{record.node_id}: claimed {told.claimed}, the witness shows {attached.provenance}, and that counts"
        )
    return attached


def _check_requests(sidecar: Sidecar, journal: Mapping[int, Mapping[str, Json]]) -> None:
    holders: dict[int, str] = {}
    for name, told in sidecar.items.items():
        for number in told.requests:
            where = f"{sidecar.where}, item {name!r:.120}"
            if number not in journal:
                _fail(where, f"request {number} is not in the journal", "the number of a request as the journal has it")
            if number in holders:
                _fail(where, f"request {number} is claimed by {holders[number]!r:.120} too", "each request by one item")
            holders[number] = name


def _told(value: object, where: str) -> Told:
    if not isinstance(value, dict):
        _fail(where, f"{value!r:.80} is no object", f"an object with {', '.join(_FIELDS)}")
    _check_names(value, _FIELDS, where)
    claims, requests, claimed = value.get("claims", []), value.get("requests", []), value.get("class", "none")
    if not isinstance(claims, list) or not all(isinstance(each, str) for each in claims):
        _fail(where, "'claims' is no list of texts", "ids of claims")
    if not isinstance(requests, list) or not all(type(each) is int for each in requests):
        _fail(where, "'requests' is no list of whole numbers", "numbers of requests in the journal")
    if claimed not in CLASSES:
        _fail(where, f"'class' is {claimed!r:.80}", f"one of {', '.join(CLASSES)}")
    return Told(tuple(claims), tuple(requests), claimed)


def _is_entry(entry: Mapping[str, object]) -> bool:
    needed = ("number", "body", "reply_digest", "status", "end", "conversation", "step")
    return all(name in entry for name in needed) and type(entry["number"]) is int


def _check_names(value: Iterable[str], known: Sequence[str], where: str) -> None:
    for name in value:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            _fail(where, f"field {name!r:.80} is unknown{hint}", f"one of {', '.join(known)}")


def _fail(where: str, what: str, expected: str) -> NoReturn:
    raise UsageError(what, where=where, expected=expected, code="SIDECAR")
