"""The manifest: what a board came from comes back as it was written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from lanes.claims import load_claims
from reports.manifest import Manifest, digest_rules, parse_manifest, render_manifest

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

ROOT = Path(__file__).parents[3]


def test_a_manifest_comes_back_as_it_was_written(evidence: Evidence) -> None:
    manifest = Manifest(
        folded_at="2031-03-07T02:00:00+00:00",
        subject=evidence.subject,
        rules={"claims": "sha256:1"},
        configuration={"tox.ini": "2"},
        bundles=("sha256:3", "sha256:4"),
        proofs=(),
        history_lines=7,
        outputs={"board.txt": "sha256:5"},
    )

    assert parse_manifest(render_manifest(manifest).encode("ascii")) == manifest


def test_rules_of_any_type_have_a_digest_that_tells_them_apart(evidence: Evidence) -> None:
    plain = digest_rules(evidence.claims(), evidence.admission())
    dearer = digest_rules(evidence.claims(evidence.claim(expected_usd=Decimal("0.5"))), evidence.admission())

    assert (plain["claims"] == dearer["claims"], plain["providers"] == dearer["providers"]) == (False, True)


def test_the_rules_of_this_project_have_a_digest(evidence: Evidence) -> None:
    digests = digest_rules(load_claims(ROOT / "lanes" / "claims.toml"), evidence.admission())

    assert sorted(digests) == ["claims", "providers", "trust store"]
