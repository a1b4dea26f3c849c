"""The manifest: what a board was folded from and which files were written from it, by digest.

Room: pure. Output writes one beside the files, verification folds the board anew and compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from lanes.claims import Claims
from lanes.errors import EvidenceError
from lanes.record import Json, JsonObject, Subject, digest_bytes, group_to_json
from lanes.record_form import subject_from_json
from reports.admit import Admission

MANIFEST = "manifest.json"
SCHEMA = "manifest/1"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one board came from.

    Shape: folded_at is ISO 8601 in UTC; rules are the digests of what evidence was judged by, by name; configuration
    is file name to SHA-256, as the statements have it; bundles and proofs are digests, sorted; history_lines is
    how many lines the history of nights had; outputs is file name to digest.
    """

    folded_at: str
    subject: Subject
    rules: Mapping[str, str]
    configuration: Mapping[str, str]
    bundles: tuple[str, ...]
    proofs: tuple[str, ...]
    history_lines: int
    outputs: Mapping[str, str]


def digest_rules(claims: Claims, admission: Admission) -> dict[str, str]:
    """What evidence is judged by, as digests by name: the claims, the provider table and the trust store."""
    wanted = [{name: value for name, value in asdict(claim).items() if name != "line"} for claim in claims]
    rows = {name: asdict(row) for name, row in admission.providers.items()}
    return {
        "claims": digest_bytes(_spelled(wanted)),
        "providers": digest_bytes(_spelled(rows)),
        "trust store": admission.trust_store,
    }


def _spelled(value: object) -> bytes:
    """Rules in one spelling, whatever types their values have: what JSON has no form for is its text."""

    def plain(found: object) -> object:
        return sorted(map(str, found)) if isinstance(found, frozenset | set) else str(found)

    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=plain).encode("ascii")


def render_manifest(manifest: Manifest) -> str:
    """The manifest as JSON in ASCII with sorted keys."""
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "folded_at": manifest.folded_at,
        "subject": group_to_json(manifest.subject),
        "rules": dict(manifest.rules),
        "configuration": dict(manifest.configuration),
        "bundles": list(manifest.bundles),
        "proofs": list(manifest.proofs),
        "history_lines": manifest.history_lines,
        "outputs": dict(manifest.outputs),
    }
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest.

    Raises: EvidenceError for another schema or form, and for what is no JSON.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is no JSON: {error!s:.80}", where=MANIFEST, fix="lanes report writes it anew") from None
    told = document.get("schema") if isinstance(document, dict) else None
    if told != SCHEMA:
        fix = "read it with the version that wrote it, or fold the board anew: lanes report"
        raise EvidenceError(f"schema is {told!r:.80}", where=MANIFEST, expected=f'"{SCHEMA}"', fix=fix)
    return Manifest(
        folded_at=_text(document, "folded_at"),
        subject=subject_from_json(document.get("subject")),
        rules=_texts_by_name(document, "rules"),
        configuration=_texts_by_name(document, "configuration"),
        bundles=_texts(document, "bundles"),
        proofs=_texts(document, "proofs"),
        history_lines=_count(document, "history_lines"),
        outputs=_texts_by_name(document, "outputs"),
    )


def _text(document: JsonObject, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise _form(name, "a text")
    return value


def _count(document: JsonObject, name: str) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _form(name, "a whole number")
    return value


def _texts(document: JsonObject, name: str) -> tuple[str, ...]:
    value = document.get(name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _form(name, "a list of texts")
    return tuple(value)


def _texts_by_name(document: JsonObject, name: str) -> dict[str, str]:
    value = document.get(name)
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise _form(name, "an object of texts")
    return {key: str(each) for key, each in value.items()}


def _form(name: str, expected: str) -> EvidenceError:
    return EvidenceError(f"field {name!r} has another form", where=MANIFEST, expected=expected)
