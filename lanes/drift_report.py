"""The drift report as a file: written by `lanes drift`, read by the lanes whose cells it can make stale.

Room: the command, and the reading of what recordings are held against, come in. It is kept beside the history, because
a run without a key has no other way to know what the last one with a key saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from lanes.drift import Change, Finding, Kind, Verdict, Weight
from lanes.errors import UsageError
from lanes.normalize import Json

REPORT = Path("reports") / "drift.json"
SCHEMA = "drift/1"

Source = Literal["live", "recorded"]
Against = Literal["cassettes", "catalogue"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Answers of one provider held against one expectation.

    Shape: answers are the digests of their ids, so that a reader can tell which ones it rests on. Only live answers can
    make a cell stale: what a recording and the mock provider differ in was so when it was recorded.
    """

    provider: str
    dialect: str
    source: Source
    against: Against
    answers: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def breaking(self) -> tuple[Finding, ...]:
        """The findings that break something."""
        return tuple(each for verdict in self.verdicts for each in verdict.findings if each.weight == "breaking")


def compose_report(comparisons: Sequence[Comparison]) -> str:
    """The report's text; the same comparisons give the same bytes."""
    document: Json = {"schema": SCHEMA, "comparisons": [_comparison(each) for each in comparisons]}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def report_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """The report for people, a line each."""
    lines: list[str] = []
    for each in comparisons:
        lines.append(f"{each.provider}: {len(each.answers)} {each.source} answers against the {each.against}")
        for verdict in each.verdicts:
            if verdict.not_judged:
                lines.append(f"  {verdict.kind}: not judged: {verdict.not_judged}")
            elif not verdict.findings:
                lines.append(f"  {verdict.kind}: no drift in {verdict.samples} answers")
            lines += [f"  {found.weight}: {found.id}: {found.text}" for found in verdict.findings]
    return lines


def keep_unjudged(earlier: Sequence[Comparison], found: Sequence[Comparison]) -> list[Comparison]:
    """What was found, with what an earlier report says of the live answers that could not be judged this time.

    Shape: of a provider that was not asked, all of it; of another one the kinds of which too few answers came.
    """
    now = {_place(each): each for each in found}
    kept = {
        place: _with_unjudged(now[place], each) if place in now else each
        for each in earlier
        if each.source == "live"
        for place in [_place(each)]
    }
    return [merged for _, merged in sorted({**now, **kept}.items())]


def _place(each: Comparison) -> tuple[str, str, str]:
    return each.provider, each.source, each.against


def _with_unjudged(now: Comparison, before: Comparison) -> Comparison:
    judged = {verdict.kind for verdict in now.verdicts if not verdict.not_judged}
    stands = tuple(each for each in before.verdicts if not each.not_judged and each.kind not in judged)
    if not stands:
        return now
    kinds = {each.kind for each in stands}
    verdicts = (*(each for each in now.verdicts if each.kind not in kinds), *stands)
    answers = tuple(sorted({*now.answers, *before.answers}))
    return replace(now, answers=answers, verdicts=tuple(sorted(verdicts, key=lambda each: each.kind)))


def breaking_findings(root: Path) -> dict[str, tuple[str, ...]]:
    """The ids of the breaking findings in live answers, by provider; none where no report is kept.

    Raises: UsageError for a file that is no report.
    """
    return _breaking(root, "provider", ("cassettes", "catalogue"))


def breaking_dialects(root: Path) -> dict[str, tuple[str, ...]]:
    """The ids of those that break what the mock provider says a dialect is like, by dialect.

    Raises: UsageError for a file that is no report.
    """
    return _breaking(root, "dialect", ("catalogue",))


def load_report(root: Path) -> tuple[Comparison, ...]:
    """The report that is kept; empty where none is.

    Raises: UsageError for a file that is no report.
    """
    path = root / REPORT
    if not path.is_file():
        return ()
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}")
        return tuple(_read_comparison(each) for each in document["comparisons"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"it is no drift report: {error}", where=str(REPORT), expected=SCHEMA, fix="write it anew: lanes drift"
        ) from None


def _breaking(root: Path, key: Literal["provider", "dialect"], against: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for each in load_report(root):
        if each.source == "live" and each.against in against and each.breaking:
            name = each.provider if key == "provider" else each.dialect
            found.setdefault(name, {}).update(dict.fromkeys(finding.id for finding in each.breaking))
    return {name: tuple(ids) for name, ids in found.items()}


def _read_comparison(document: Mapping[str, Json]) -> Comparison:
    return Comparison(
        provider=str(document["provider"]),
        dialect=str(document["dialect"]),
        source=cast("Source", str(document["source"])),
        against=cast("Against", str(document["against"])),
        answers=tuple(map(str, cast("list[Json]", document["answers"]))),
        verdicts=tuple(
            _read_verdict(cast("dict[str, Json]", each)) for each in cast("list[Json]", document["verdicts"])
        ),
    )


def _read_verdict(document: Mapping[str, Json]) -> Verdict:
    kind = cast("Kind", str(document["kind"]))
    findings = cast("list[dict[str, str]]", document["findings"])
    return Verdict(
        kind,
        int(str(document["samples"])),
        tuple(
            Finding(
                kind,
                cast("Change", str(each["change"])),
                cast("Weight", str(each["weight"])),
                str(each["place"]),
                str(each["text"]),
            )
            for each in findings
        ),
        str(document["not_judged"]),
    )


def _comparison(each: Comparison) -> dict[str, Json]:
    return {
        "provider": each.provider,
        "dialect": each.dialect,
        "source": each.source,
        "against": each.against,
        "answers": list(each.answers),
        "verdicts": [_verdict(verdict) for verdict in each.verdicts],
    }


def _verdict(verdict: Verdict) -> dict[str, Json]:
    findings: list[Json] = [
        {"id": each.id, "change": each.change, "weight": each.weight, "place": each.place, "text": each.text}
        for each in verdict.findings
    ]
    return {
        "kind": verdict.kind,
        "samples": verdict.samples,
        "not_judged": verdict.not_judged,
        "findings": findings,
    }
