"""Reading what recordings are held against today: the run's clock, commits, the provider table, pins and drift.

Room: the fixture of channels comes in, once for each item that opens a recording.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lanes.drift_report import breaking_dialects, breaking_findings
from lanes.lane_run import LaneRun
from lanes.pinned_headers import read_pins
from lanes.providers import load_providers
from lanes.staleness import ProviderAges, Today


def load_today(run: LaneRun) -> Today:
    """What recordings are held against in this run; its clock is the run's start, the same in every process."""
    return Today(
        now=datetime.fromisoformat(run.started_at),
        committed={name: datetime.fromisoformat(told) for name, told in run.committed.items()},
        providers=provider_ages(),
        headers=read_pins(),
        drifted=breaking_findings(run.root),
        drifted_dialects=breaking_dialects(run.root),
    )


def provider_ages(table: Path | None = None) -> tuple[ProviderAges, ...]:
    """What the provider table says of recordings."""
    rows = load_providers() if table is None else load_providers(table)
    return tuple(
        ProviderAges(row.name, row.host, row.known_models, row.retired, row.fresh_days, row.stale_days) for row in rows
    )
