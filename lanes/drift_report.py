"""The drift report as a file: written by `lanes drift`, read by the lanes whose cells it can make stale.

Room: the command, and the reading of what recordings are held against, come in. It is kept beside the history, because
a run without a key has no other way to know what the last one with a key saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lanes.drift import Finding, Verdict
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


def _breaking(root: Path, key: str, against: Sequence[str]) -> dict[str, tuple[str, ...]]:
    path = root / REPORT
    if not path.is_file():
        return {}
    found: dict[str, dict[str, None]] = {}
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}")
        for each in document["comparisons"]:
            if each["source"] != "live" or each["against"] not in against:
                continue
            ids = [each["id"] for verdict in each["verdicts"] for each in verdict["findings"] if _breaks(each)]
            if ids:
                found.setdefault(str(each[key]), {}).update(dict.fromkeys(map(str, ids)))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"it is no drift report: {error}", where=str(REPORT), expected=SCHEMA, fix="write it anew: lanes drift"
        ) from None
    return {name: tuple(ids) for name, ids in found.items()}


def _breaks(finding: Mapping[str, Json]) -> bool:
    return finding["weight"] == "breaking"


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
