"""What the processes of one lane run know about it: policy, shard, subject, claims and where the spool is.

Room: the plugin and its hooks read it; the runner wrote the facts before the first of them started.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanes.claims import Claims
from lanes.environment import LANE_VARIABLE, MARK_VARIABLE, RUN_VARIABLE, SHARD_VARIABLE, TOX_VARIABLE
from lanes.errors import GuardError
from lanes.guard import SPOOL_VARIABLE
from lanes.namespace import OUTER_VARIABLE, measure_depth
from lanes.policy import LOCAL_ENVIRONMENT, LanePolicy, lane_of_environment, lane_policy
from lanes.project import claims_of, load_project
from lanes.record import Json, Subject
from lanes.record_form import subject_from_json
from lanes.spool import FACTS_FILE, read_document


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One run of one lane, as seen from the process that asks.

    Shape: `secret` is made for this run, so that answer notes of another run are void; `worker` is empty in the
    process that writes the evidence. `committed` says when the commit was made that holds a recording as it stands.
    """

    policy: LanePolicy
    run_id: str
    root: Path
    spool: Path
    shard_index: int
    shard_total: int
    subject: Subject
    claims: Claims
    depth: str
    mark: str
    tox_environment: str
    marker: str
    keys_removed: int
    started_at: str
    secret: str
    worker: str
    configuration: Mapping[str, str]
    committed: Mapping[str, str]

    def is_mine(self, node_id: str) -> bool:
        """Whether an item belongs to this shard: by a digest of its id, so that adding items moves no other."""
        digest = hashlib.sha256(node_id.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.shard_total == self.shard_index - 1

    def answers_needed(self, claim_ids: Sequence[str]) -> int:
        """The least number of model answers that an item with these claims must hold."""
        return max((self.claims.by_id[each].answers_needed(self.policy.name) for each in claim_ids), default=0)

    def conversations(self, claim_ids: Sequence[str]) -> int:
        """The number of root conversations that an item with these claims may have."""
        asked = [self.claims.by_id[each].conversations.get(self.policy.name, 1) for each in claim_ids]
        return max(asked, default=1)

    def needs_nonce(self, claim_ids: Sequence[str]) -> bool:
        """Whether an item with these claims must prove that the model read this run's token."""
        return any(self.claims.by_id[each].nonce for each in claim_ids)


def load_lane_run(root: Path) -> LaneRun:
    """Load what the runner left for this process.

    Raises: GuardError when no runner did; UsageError for a project or claims file that cannot be read.
    """
    spool = Path(os.environ.get(SPOOL_VARIABLE, ""))
    facts = read_document(spool / FACTS_FILE)
    if facts is None:
        raise GuardError("no lane run prepared this process", fix="start lanes with `lanes run LANE`")
    index, _, total = os.environ[SHARD_VARIABLE].partition("/")
    project = load_project(root)
    return LaneRun(
        policy=project.place(_policy(os.environ[LANE_VARIABLE], os.environ.get(MARK_VARIABLE, ""))),
        run_id=os.environ[RUN_VARIABLE],
        root=root,
        spool=spool,
        shard_index=int(index),
        shard_total=int(total),
        subject=subject_from_json(facts["subject"]),
        claims=claims_of(project),
        depth=measure_depth(os.environ.get(OUTER_VARIABLE, ""), guarded=True),
        mark=os.environ.get(MARK_VARIABLE, ""),
        tox_environment=os.environ.get(TOX_VARIABLE, ""),
        marker=_text(facts["marker"]),
        keys_removed=int(_text(facts["keys_removed"])),
        started_at=_text(facts["started_at"]),
        secret=_text(facts["secret"]),
        worker=os.environ.get("PYTEST_XDIST_WORKER", ""),
        configuration=_texts(facts["configuration"]),
        committed=_texts(facts["committed"]),
    )


def _policy(lane: str, mark: str) -> LanePolicy:
    """The policy of the lane, or of the one environment of it that has its own."""
    policy = lane_of_environment(LOCAL_ENVIRONMENT)
    return policy if (lane, mark) == (policy.name, LOCAL_ENVIRONMENT) else lane_policy(lane)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else str(value)


def _texts(value: Json) -> dict[str, str]:
    return {name: _text(each) for name, each in value.items()} if isinstance(value, Mapping) else {}
