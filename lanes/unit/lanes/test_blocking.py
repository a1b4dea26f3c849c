"""When a failure is taken for the provider's: not where the claim is about that very trouble."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lanes.claims import Claim, Claims
from lanes.items import _OBSERVATION, _REASON, ItemHooks
from lanes.live_run import stopped
from lanes.observation import Observation
from lanes.trouble import Trouble

NODE = "lanes/real/test_a.py::test_one"


def judged(tmp_path: Path, trouble: Trouble | None, condition: str | None = None) -> tuple[str, tuple[str, str] | None]:
    """What becomes of a failed report, and with which reason."""
    claim = Claim("a.claim", "It holds.", "none", (), ("real",), condition=condition, owner="us")
    (tmp_path / "preflight.json").write_text('{"acme": {"code": ""}}', "utf-8")
    run = SimpleNamespace(spool=tmp_path, claims=Claims({claim.id: claim}))
    observation = Observation(NODE, spool=tmp_path, secret="s")
    observation.trouble = None if trouble is None else ("acme", trouble)
    item = SimpleNamespace(
        stash=pytest.Stash(),
        nodeid=NODE,
        path=Path("test_a.py"),
        location=("test_a.py", 3, "test_one"),
        iter_markers=lambda name: [SimpleNamespace(args=("a.claim",))],
    )
    item.stash[_OBSERVATION] = observation
    report = SimpleNamespace(outcome="failed", longrepr="it failed")
    ItemHooks(run)._block(item, report)
    return report.outcome, item.stash.get(_REASON, None)


def test_a_failure_after_trouble_with_the_provider_is_no_failure_of_the_program(tmp_path: Path) -> None:
    assert judged(tmp_path, Trouble("outage", "503")) == ("skipped", ("outage", "503"))


def test_a_failure_after_a_good_answer_stays_one(tmp_path: Path) -> None:
    assert judged(tmp_path, None) == ("failed", None)


@pytest.mark.parametrize(
    ("code", "condition"),
    [("credential-rejected", "401"), ("quota", "402"), ("outage", "429"), ("outage", "timeout")],
)
def test_a_claim_about_the_very_trouble_is_judged_by_it(tmp_path: Path, code: str, condition: str) -> None:
    assert judged(tmp_path, Trouble(code, "as it should"), condition) == ("failed", None)
    assert stopped(tmp_path, "acme") is None


def test_status_30_31_lasting_trouble_ends_the_run_with_this_provider_and_passing_trouble_does_not(
    tmp_path: Path,
) -> None:
    judged(tmp_path, Trouble("outage", "503"))
    before = stopped(tmp_path, "acme")
    judged(tmp_path, Trouble("quota", "spent"))

    assert (before, stopped(tmp_path, "acme")) == (None, Trouble("quota", "spent"))
