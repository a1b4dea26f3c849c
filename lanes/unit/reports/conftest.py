"""Makers of evidence for the tests of the reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from lanes.bundle import Bundle, BundleHeader, BundleTrailer, ExpectedItem, next_digest, start_digest
from lanes.claims import Claim, Claims
from lanes.policy import LANES, LanePolicy
from lanes.record import Attempt, Json, JsonObject, Record, Subject, Verdict, encode_record
from reports.admit import Admission, ProviderRow
from reports.board import Board, LastSeen, fold

_SHARED = ("override_variables", "recorders", "observed_at", "proxy_used")
GUARD: JsonObject = {"depth": "D3", "canary_start": "refused", "canary_end": "refused", "refusals": []}
TRUST = "sha256:" + "7" * 64


class Evidence:
    """Makes whole, valid evidence; each argument changes one thing about it."""

    subject = Subject(
        commit="4f0c2a1" + "0" * 33, tree="t" * 40, lock_digest="sha256:10", loop_digest="sha256:77", python="CPython 3"
    )
    trust = TRUST
    providers: Mapping[str, ProviderRow] = {
        "acme": ProviderRow("acme", hosts=("api.acme.example",), path_prefix="/v1/", id_pattern="resp-[0-9]+"),
        "lab": ProviderRow("lab", hosts=("10.0.0.5",), private=True, issues_id=False, sends_date=False),
        "local": ProviderRow(
            "local", local=True, private=True, issues_id=False, sends_date=False, model_digest="sha256:" + "a" * 64
        ),
    }

    def admission(self, **changes: object) -> Admission:
        """What records are judged against."""
        return replace(Admission(self.subject, self.providers, TRUST), **changes)  # type: ignore[arg-type]

    def claim(self, claim_id: str = "journey.fix-test", **changes: object) -> Claim:
        """One claim that asks for every lane."""
        claim = Claim(
            claim_id,
            "A sentence.",
            "headless",
            required=("unit", "snapshot", "replay", "offline"),
            optional=("real",),
            owner="owner",
        )
        return replace(claim, **changes)  # type: ignore[arg-type]

    def claims(self, *claims: Claim) -> Claims:
        """A claims file of these claims; one by default."""
        return Claims({claim.id: claim for claim in claims or (self.claim(),)})

    def record(
        self,
        lane: str = "offline",
        node_id: str | None = None,
        verdict: Verdict = "passed",
        **changes: object,
    ) -> Record:
        """One record of a keyless lane."""
        record = Record(
            lane=lane,
            node_id=node_id or f"lanes/{lane}/test_a.py::test_one",
            run_id=f"run-{lane}",
            verdict=verdict,
            subject=self.subject,
            claim_ids=("journey.fix-test",),
            attempts=() if verdict in {"not run", "blocked"} else (Attempt(1, verdict, 5),),
            answers=({"ordinal": 1, "channel": "loopback", "class": "scripted"},),
            guard=GUARD,
            duration_ms=5,
        )
        return replace(record, **changes)  # type: ignore[arg-type]

    def live_record(self, number: int = 1, node_id: str | None = None, **changes: object) -> Record:
        """One record of the real lane that rules A1 to A12 admit."""
        provider_id = f"resp-{number}"
        endpoint: JsonObject = {"scheme": "https", "host": "api.acme.example", "port": 443, "path": "/v1/chat"}
        tls: JsonObject = {
            "version": "TLSv1.3",
            "cert": "sha256:51",
            "chain_verified": True,
            "name_verified": True,
            "trust_store": TRUST,
        }
        answer: JsonObject = {
            "ordinal": 1,
            "channel": "live",
            "class": "live",
            "status": 200,
            "provider_id": provider_id,
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
            "wire": {"stream": True, "peer_ip": "104.18.2.1", "tls": tls, "endpoint": endpoint},
        }
        return self.record(
            "real",
            node_id,
            **{
                "answers": (answer,),
                "min_answers": 1,
                "model": {"requested": "m-large", "reported": "m-large-0221", "provider": "acme", "endpoint": endpoint},
                "live_proof": {
                    "peer_ip": "104.18.2.1",
                    "tls": tls,
                    "proxy_used": False,
                    "override_variables": [],
                    "recorders": [],
                    "provider_ids": [provider_id],
                    "date_skew_ms": 412,
                    "ttfb_ms": 640,
                    "root_conversations": 1,
                    "observed_at": "2031-03-04T02:00:00Z",
                },
            }
            | changes,
        )

    def local_record(self, **changes: object) -> Record:
        """One record of the real lane, answered by a model server that the lane started itself."""
        live = self.live_record()
        endpoint: JsonObject = {"scheme": "http", "host": "127.0.0.1", "port": 8123, "path": "/v1/chat"}
        wire: JsonObject = {"stream": True, "peer_ip": "127.0.0.1", "endpoint": endpoint}
        answer: dict[str, Json] = {name: value for name, value in live.answers[0].items() if name != "provider_id"}
        facts = {name: (live.live_proof or {})[name] for name in _SHARED}
        local: JsonObject = {"port": 8123, "model_digest": "sha256:" + "a" * 64, "server": "llama 1.2"}
        return replace(
            live,
            answers=(answer | {"wire": wire},),
            model={"requested": "small", "reported": "small", "provider": "local", "endpoint": endpoint},
            live_proof=facts | {"local": local, "peer_ip": "127.0.0.1", "root_conversations": 1},
            **changes,  # type: ignore[arg-type]
        )

    def bundle(
        self,
        *records: Record,
        lane: str | None = None,
        expected: Sequence[ExpectedItem] | None = None,
        shard: tuple[int, int] = (1, 1),
        trailer: bool = True,
        canary_end: str = "refused",
        exit_code: int = 0,
        breaches: tuple[str, ...] = (),
        **header: object,
    ) -> Bundle:
        """The bundle of these records as its writer would have left it."""
        lane = lane or (records[0].lane if records else "offline")
        listed = (
            [ExpectedItem(record.node_id, record.claim_ids) for record in records] if expected is None else expected
        )
        made = BundleHeader(
            lane=lane,
            run_id=f"run-{lane}",
            subject=self.subject,
            shard_index=shard[0],
            shard_total=shard[1],
            expected=tuple(listed),
            lane_mark=lane,
            tox_env=lane,
            guard_depth="D3",
            canary_start="refused",
        )
        made = replace(made, **header)  # type: ignore[arg-type]
        chain = start_digest(made)
        for record in records:
            chain = next_digest(chain, encode_record(record))
        closing = BundleTrailer(made.run_id, len(records), chain, canary_end, exit_code, breaches)
        return Bundle(made, records, closing if trailer else None, (), f"{lane}/{shard[0]}-of-{shard[1]}")

    def fold(
        self,
        *bundles: Bundle,
        claims: Claims | None = None,
        policy: Mapping[str, LanePolicy] = LANES,
        admission: Admission | None = None,
        last_seen: Sequence[LastSeen] = (),
    ) -> Board:
        """The board of these bundles."""
        return fold(
            bundles, claims or self.claims(), policy, admission=admission or self.admission(), last_seen=last_seen
        )

    def item(
        self, name: str = "test_one", lane: str = "offline", claims: tuple[str, ...] = ("journey.fix-test",)
    ) -> ExpectedItem:
        """One expected item."""
        return ExpectedItem(f"lanes/{lane}/test_a.py::{name}", claims)


@pytest.fixture(scope="session")
def evidence() -> Evidence:
    """Makers of records, bundles and boards."""
    return Evidence()
