"""Where shapes come from: live answers in bundles, recorded ones in cassettes, and the mock provider's own catalogue.

Room: the command `lanes drift` comes in. It is one of the few rooms that know the mock provider.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from lanes.bundle_reading import read_bundle
from lanes.cassette import load_cassette
from lanes.drift import Answer, Kind, Shape, compare, read_shape, shape_of, shapes_of
from lanes.drift_report import Comparison
from lanes.local_table import LOCAL_NAME
from lanes.policy import LOCAL_ENVIRONMENT
from lanes.providers import Provider
from lanes.record import BLOCKING_REASONS, JsonObject, Record, digest_bytes
from mock_provider.catalogue import declared_answers

CASSETTES = Path("cassettes")
LOCAL_DIALECT = "openai_chat"
FLAVOURS: Mapping[str, str] = {"deepseek": "deepseek"}  # the flavour of the mock provider that stands for a provider


@dataclass(slots=True)
class Seen:
    """What was seen of one provider: the shapes by kind, and the digests of the ids of the answers."""

    shapes: dict[Kind, Shape] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    def add(self, kind: Kind, shape: Shape, answer: str) -> None:
        """Take in one answer."""
        self.shapes.setdefault(kind, Shape()).add(shape)
        self.answers.append(answer)


def compare_all(root: Path, bundles: Path, providers: Iterable[Provider]) -> list[Comparison]:
    """Every comparison that can be made here: live answers against cassettes and catalogue, recorded ones against it.

    Raises: CassetteError for a cassette that cannot be read.
    """
    rows = {row.name: row for row in providers}
    dialects = {name: row.dialect for name, row in rows.items()} | {LOCAL_NAME: LOCAL_DIALECT}
    hosts = {row.host: name for name, row in rows.items()} | {"loopback": LOCAL_NAME}
    recorded, live = recorded_shapes(root, hosts), live_shapes(bundles)
    found: list[Comparison] = []
    for name in sorted({*recorded, *live} & dialects.keys()):
        dialect = dialects[name]
        catalogue = shapes_of(
            Answer(each.status, each.headers, each.body)
            for each in declared_answers(dialect, flavour=FLAVOURS.get(name, ""))
        )
        if name in live:
            seen = live[name]
            answers = tuple(sorted(seen.answers))
            if name in recorded:
                verdicts = compare(_knowing_words(recorded[name].shapes, catalogue), seen.shapes)
                found.append(Comparison(name, dialect, "live", "cassettes", answers, verdicts))
            if name in rows:  # the mock provider stands for hosted services; what a model here serves is its own affair
                verdicts = compare(catalogue, seen.shapes)
                found.append(Comparison(name, dialect, "live", "catalogue", answers, verdicts))
        if name in recorded:
            seen = recorded[name]
            verdicts = compare(catalogue, seen.shapes)
            answers = tuple(sorted(seen.answers))
            found.append(Comparison(name, dialect, "recorded", "catalogue", answers, verdicts))
    return found


def _knowing_words(shapes: Mapping[Kind, Shape], catalogue: Mapping[Kind, Shape]) -> dict[Kind, Shape]:
    """The shapes with every word that the catalogue of the dialect has at the same place.

    A handful of recordings does not use up a closed list: that none of them met `length` makes it no unknown word.
    """
    found: dict[Kind, Shape] = {}
    for kind, shape in shapes.items():
        known = catalogue[kind].words if kind in catalogue else {}
        words = {place: own | known.get(place, set()) for place, own in shape.words.items()}
        found[kind] = replace(shape, words=words)
    return found


def recorded_shapes(root: Path, hosts: Mapping[str, str]) -> dict[str, Seen]:
    """The shapes of what models once answered, by provider; answers that nobody recorded from a model are left out."""
    found: dict[str, Seen] = {}
    for path in sorted((root / CASSETTES).glob("*/*.yaml")):
        for interaction in load_cassette(path, keeps_transient=True).interactions:
            name = hosts.get(str(interaction.origin["host"]))
            if interaction.answer_class != "recorded" or name is None:
                continue
            answer = Answer(interaction.status, interaction.header_names, interaction.body)
            kind, shape = shape_of(answer)
            found.setdefault(name, Seen()).add(kind, shape, _id_digest(interaction.origin.get("provider_id")))
    return found


def live_shapes(bundles: Path) -> dict[str, Seen]:
    """The shapes that the witness of live answers left in the evidence, by provider."""
    found: dict[str, Seen] = {}
    for header in sorted(bundles.rglob("header.json")):
        for record in read_bundle(header.parent).records:
            name = _provider_of(record)
            for note in _answers_of(record) if name else ():
                stored = note.get("shape")
                if not isinstance(stored, Mapping) or note.get("channel") != "live":
                    continue
                kind = cast("Kind", str(stored.get("kind")))
                try:
                    shape = read_shape(json.loads(json.dumps(stored)))
                except ValueError:
                    continue
                found.setdefault(name, Seen()).add(kind, shape, _id_digest(note.get("provider_id")))
    return found


def blocked_providers(bundles: Path) -> dict[str, str]:
    """Why providers could not be asked in these runs, by provider; of those that answered nothing is known of drift."""
    found: dict[str, str] = {}
    for header in sorted(bundles.rglob("header.json")):
        bundle = read_bundle(header.parent)
        if bundle.trailer is not None:
            found.update(_grounded(bundle.trailer.extra))
        for record in bundle.records:
            is_local = bundle.header.lane_mark == LOCAL_ENVIRONMENT
            name = _provider_of(record) or (LOCAL_NAME if is_local else "")
            if name and record.verdict == "blocked" and record.reason_code in BLOCKING_REASONS:
                found.setdefault(name, f"{record.reason_code}: {record.reason_text}")
    return found


def _grounded(extra: JsonObject) -> dict[str, str]:
    """The providers that the preflight of a run did not get through to."""
    hosted = extra.get("hosted")
    preflight = hosted.get("preflight") if isinstance(hosted, Mapping) else None
    rows = preflight.items() if isinstance(preflight, Mapping) else ()
    return {
        name: f"{row['code']}: {row.get('text', '')}"
        for name, row in rows
        if isinstance(row, Mapping) and row.get("code")
    }


def _answers_of(record: Record) -> Iterable[JsonObject]:
    """The answers of every attempt: a record holds those of its last one, and each earlier attempt its own."""
    for attempt in record.attempts[:-1]:
        seen = attempt.extra.get("seen")
        answers = seen.get("answers") if isinstance(seen, Mapping) else None
        yield from (each for each in answers if isinstance(each, Mapping)) if isinstance(answers, list | tuple) else ()
    yield from record.answers


def _provider_of(record: Record) -> str:
    name = (record.model or {}).get("provider")
    return name if isinstance(name, str) else ""


def _id_digest(value: object) -> str:
    """The digest of an answer's id; the evidence holds digests already."""
    text = value if isinstance(value, str) else ""
    return text if text.startswith("sha256:") else digest_bytes(text.encode())
