"""Admission: raw facts of a real-lane record to a LiveProof, or the rule they broke.

Room: pure. Only the board comes in; a file can never hold a proof, because nothing but `admit` can make one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn, TypeAlias

from lanes.record import Record, Subject
from reports.admit_local import check_local, local_note
from reports.facts import (
    address_of,
    endpoints,
    has_endpoint,
    is_finished,
    is_number,
    is_text,
    live_facts,
    model_facts,
    number_of,
    shown,
    told_everywhere,
)

MAX_DATE_SKEW_MS = 300_000  # five minutes: a provider's clock and ours, both kept by NTP, differ by seconds
FAST_FIRST_BYTE_MS = 20  # no hosted model has answered faster; a cache has

ProofKind: TypeAlias = Literal["hosted", "local"]


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One line of the committed provider table.

    Shape: hosts are "host" or "host:port"; tunnel is the one CONNECT proxy allowed, or empty. A private row never
    shares a column with a vendor; a local row is the model server that the lane itself started on loopback, with the
    weights of model_digest.
    """

    name: str
    hosts: tuple[str, ...] = ()
    path_prefix: str = "/"
    issues_id: bool = True
    id_pattern: str = ".+"
    sends_date: bool = True
    private: bool = False
    local: bool = False
    tunnel: str = ""
    model_family: str = ""
    trust_store: str = ""
    model_digest: str = ""


@dataclass(frozen=True, slots=True)
class Admission:
    """What records are judged against: the board's subject, the committed tables, and ids seen before.

    Shape: trust_store is the digest of the locked trust store; used_ids are digests of provider ids that occur in
    cassettes, scripts or earlier runs, or more than once in these records. earlier_answers are digests of whole answers
    of earlier runs.
    """

    subject: Subject
    providers: Mapping[str, ProviderRow] = field(default_factory=dict)
    trust_store: str = ""
    used_ids: frozenset[str] = frozenset()
    earlier_answers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record is no live proof: the rule and its void code."""

    rule: str
    code: str
    text: str


_SEAL: Final = object()


class LiveProof:
    """That a real model was observed, in one record.

    Shape: made by `admit` only; it cannot be built, copied, pickled or changed. kind is "local" for a model served
    on loopback, which never stands for a hosted one. flags are soft doubts, shown and not void.
    """

    __slots__ = ("endpoint", "flags", "host", "kind", "model", "notes", "observed_at", "provider", "record_id")

    record_id: str
    kind: ProofKind
    provider: str
    model: str
    host: str
    endpoint: str
    observed_at: str
    flags: tuple[str, ...]
    notes: tuple[str, ...]

    def __init__(self, seal: object, facts: Mapping[str, object]) -> None:
        if seal is not _SEAL:
            raise TypeError("a LiveProof comes from reports.admit.admit, after rules A1 to A12, and from nowhere else")
        for name in self.__slots__:
            object.__setattr__(self, name, facts[name])

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("LiveProof has no subclasses")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a LiveProof does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a LiveProof does not change")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a LiveProof is neither copied nor stored; keep the record and admit it again")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveProof) and self.record_id == other.record_id

    def __hash__(self) -> int:
        return hash(self.record_id)

    def __repr__(self) -> str:
        return f"LiveProof({self.kind} {self.model} at {self.host}, {self.record_id})"


def admit(record: Record, admission: Admission) -> LiveProof | Refusal:
    """Check every rule on the raw facts of one record; the first one broken is the answer."""
    for refusal in _refusals(record, admission):
        return refusal
    return LiveProof(_SEAL, _proof_facts(record, admission))


def all_refusals(record: Record, admission: Admission) -> tuple[Refusal, ...]:
    """Every rule that one record breaks, in the order of the rules; none for one that would be admitted."""
    return tuple(_refusals(record, admission))


def _refusals(record: Record, admission: Admission) -> Iterator[Refusal]:
    for rule, check in _LOCAL_RULES if _is_local(record, admission) else _HOSTED_RULES:
        if broken := check(record, admission):
            code, text = broken
            yield Refusal(rule, code, text)


def answer_digests(record: Record) -> tuple[str, ...]:
    """The digests of the whole answers of a record, oldest first."""
    return tuple(found for answer in record.answers if isinstance(found := answer.get("answer_digest"), str))


def provider_ids(record: Record) -> tuple[str, ...]:
    """The digests of provider ids that a record holds, repeats included."""
    found = live_facts(record).get("provider_ids")
    if not isinstance(found, list):
        return ()
    return tuple(item for item in found if isinstance(item, str))


_Broken: TypeAlias = tuple[str, str] | None


def _check_lane(record: Record, admission: Admission) -> _Broken:
    if record.lane != "real":
        return "lane", f"the record is of lane {record.lane!r}"
    if record.subject.identity != admission.subject.identity:
        return "subject", f"the record is about {record.subject.commit or 'another tree'}"
    if record.subject.loop_digest != admission.subject.loop_digest:
        return "loop-mismatch", "the loop that ran is not the loop of this subject"
    return None


def _check_answers(record: Record, _admission: Admission) -> _Broken:
    needed = max(record.min_answers, 1) if record.verdict == "passed" else 1
    if len(record.answers) < needed:
        return "no-call", f"{len(record.answers)} answers of a model, {needed} needed"
    return None


def _check_host(record: Record, admission: Admission) -> _Broken:
    overrides = live_facts(record).get("override_variables")
    if not isinstance(overrides, list):
        return "override", "nothing says that no override variable was set"
    if overrides:
        return "override", f"override variables were set: {', '.join(str(name) for name in overrides)}"
    row = _row(record, admission)
    if row is None:
        return "host", f"provider {model_facts(record).get('provider')!r:.80} is not in the provider table"
    for scheme, host, port, path in endpoints(record):
        if scheme != "https" or (host not in row.hosts and f"{host}:{port}" not in row.hosts):
            return "host", f"{scheme}://{host}:{port} is not a host of {row.name}"
        if path is not None and not path.startswith(row.path_prefix):
            return "host", f"path {path!r:.80} is not under {row.path_prefix!r}"
        if host in row.hosts and port != 443:
            return "host", f"port {port} is not listed for {host}"
    return None if has_endpoint(record) else ("host", "the record names no endpoint")


def _check_peer(record: Record, admission: Admission) -> _Broken:
    row = _row(record, admission)
    if row is not None and row.private:
        return None
    facts = live_facts(record)
    if row is not None and row.tunnel and facts.get("tunnel") == row.tunnel:
        return None
    for seen in told_everywhere(record, "peer_ip"):
        address = address_of(seen)
        if address is None or not address.is_global or address.is_multicast:
            return "peer", f"the peer address {seen!r:.80} is not a global one"
    return None


def _check_tls(record: Record, admission: Admission) -> _Broken:
    row = _row(record, admission)
    locked = row.trust_store if row is not None and row.private and row.trust_store else admission.trust_store
    for tls in told_everywhere(record, "tls"):
        if not isinstance(tls, Mapping):
            return "tls", "there was no TLS"
        if tls.get("name_verified") is not True or tls.get("chain_verified") is not True:
            return "tls", "chain and name of the certificate were not both verified"
        if not is_text(tls.get("version")) or not str(tls["version"]).startswith("TLSv1."):
            return "tls", f"TLS version {tls.get('version')!r:.80}"
        if not locked or tls.get("trust_store") != locked:
            return "trust", "the trust store is not the locked one"
    return None


def _check_recorder(record: Record, admission: Admission) -> _Broken:
    facts = live_facts(record)
    recorders = facts.get("recorders")
    if not isinstance(recorders, list):
        return "recorder", "nothing says that no recorder or mock was loaded"
    if recorders:
        return "recorder", f"it stood in the way: {', '.join(str(name) for name in recorders)}"
    for used in told_everywhere(record, "proxy_used"):
        if used is False:
            continue
        row = _row(record, admission)
        if row is None or not row.tunnel or facts.get("tunnel") != row.tunnel:
            return "proxy", "a proxy was between us and the provider, or nothing says that there was none"
    return None


def _check_wire(record: Record, _admission: Admission) -> _Broken:
    for answer in record.answers:
        wire = answer.get("wire")
        if answer.get("channel") != "live" or not isinstance(wire, Mapping) or wire.get("stream") is not True:
            return "wire", f"answer {answer.get('ordinal')!r:.20} does not show the stream it came from"
    if record.provenance != "live":
        return "wire", f"the answers are {record.provenance}"
    return None


def _check_ids(record: Record, admission: Admission) -> _Broken:
    row = _row(record, admission)
    if row is None or not row.issues_id:
        return None
    for answer in record.answers:
        found = answer.get("provider_id")
        if not is_finished(answer) and found is None:
            continue
        if not isinstance(found, str) or not found:
            return "id-missing", f"answer {answer.get('ordinal')!r:.20} carries no provider id"
        if answer.get("provider_id_matches") is not True and not re.fullmatch(row.id_pattern, found):
            return "id-missing", f"a provider id does not look like one of {row.name}"
        if found in admission.used_ids:
            return "id-reuse", "a provider id was seen before"
    answered = [found for answer in record.answers if (found := answer.get("provider_id")) is not None]
    for known in (provider_ids(record), answered):
        if len(set(known)) != len(known) or admission.used_ids.intersection(map(str, known)):
            return "id-reuse", "a provider id was seen before"
    return None


def _check_date(record: Record, admission: Admission) -> _Broken:
    row = _row(record, admission)
    if row is not None and not row.sends_date:
        return None
    for skew in told_everywhere(record, "date_skew_ms"):
        if not is_number(skew) or abs(number_of(skew)) > MAX_DATE_SKEW_MS:
            return "date", f"the response date is off by {skew!r:.40} ms"
    return None


def _check_usage(record: Record, _admission: Admission) -> _Broken:
    for answer in record.answers:
        if not is_finished(answer):
            continue
        usage = answer.get("usage")
        total = 0.0
        if isinstance(usage, Mapping):
            total = sum(number_of(value) for value in usage.values() if is_number(value))
        if total <= 0:
            return "usage", f"answer {answer.get('ordinal')!r:.20} reports no tokens"
    return None


def _check_nonce(record: Record, _admission: Admission) -> _Broken:
    if not record.needs_nonce or record.verdict != "passed":
        return None  # a task that failed need not have come so far; that a model answered is shown by the other rules
    nonce = live_facts(record).get("nonce")
    if not isinstance(nonce, Mapping) or nonce.get("verified") is not True or not is_text(nonce.get("challenge")):
        return "nonce", "no reply carried what could only be read in this run"
    return None


def _check_retries(record: Record, _admission: Admission) -> _Broken:
    found = live_facts(record).get("root_conversations")
    allowed = max(record.conversations, 1) * max(len(record.attempts), 1)
    if not is_number(found):
        return "hidden-retry", "nothing says how many conversations there were"
    if number_of(found) > allowed:
        return "hidden-retry", f"{found} root conversations, {allowed} declared"
    return None


_Rules: TypeAlias = tuple[tuple[str, Callable[[Record, Admission], _Broken]], ...]
_HOSTED_RULES: _Rules = (
    ("A1", _check_lane),
    ("A2", _check_answers),
    ("A3", _check_host),
    ("A4", _check_peer),
    ("A5", _check_tls),
    ("A6", _check_recorder),
    ("A7", _check_wire),
    ("A8", _check_ids),
    ("A9", _check_date),
    ("A10", _check_usage),
    ("A11", _check_nonce),
    ("A12", _check_retries),
)
_LOCAL_RULES: _Rules = (
    ("A1", _check_lane),
    ("A2", _check_answers),
    ("A3 local", check_local),
    ("A6", _check_recorder),
    ("A7", _check_wire),
    ("A10", _check_usage),
    ("A11", _check_nonce),
    ("A12", _check_retries),
)


def _proof_facts(record: Record, admission: Admission) -> dict[str, object]:
    facts, model = live_facts(record), model_facts(record)
    row = _row(record, admission)
    scheme, host, port, _path = endpoints(record)[0]
    local = row is not None and row.local
    notes: list[str] = []
    if row is not None and not row.issues_id and not local:
        notes.append(f"{row.name} issues no response id")
    if local:
        notes.append(local_note(record))
    if facts.get("tunnel"):
        notes.append(f"through the tunnel {facts['tunnel']}")
    return {
        "record_id": record.record_id,
        "kind": "local" if local else "hosted",
        "provider": row.name if row is not None else "",
        "model": shown(model.get("reported") or model.get("requested")),
        "host": "this machine" if local else host,
        "endpoint": "" if local else f"{scheme}://{host}:{port}",
        "observed_at": shown(facts.get("observed_at")),
        "flags": _soft_flags(record, row, admission),
        "notes": tuple(notes),
    }


def _soft_flags(record: Record, row: ProviderRow | None, admission: Admission) -> tuple[str, ...]:
    facts, model = live_facts(record), model_facts(record)
    flags: list[str] = []
    first_byte = facts.get("ttfb_ms")
    if is_number(first_byte) and number_of(first_byte) < FAST_FIRST_BYTE_MS:
        flags.append(f"first byte after {first_byte} ms")
    family = row.model_family if row is not None else ""
    reported = model.get("reported")
    if family and not str(reported).startswith(family):
        flags.append(f"reported model {reported} is not of the family {family}")
    if facts.get("cache_headers"):
        flags.append("the response carried cache headers")
    if not admission.earlier_answers.isdisjoint(answer_digests(record)):
        flags.append("an answer is equal to one of an earlier run")
    return tuple(flags)


def _is_local(record: Record, admission: Admission) -> bool:
    row = _row(record, admission)
    return row is not None and row.local


def _row(record: Record, admission: Admission) -> ProviderRow | None:
    name = model_facts(record).get("provider")
    return admission.providers.get(name) if isinstance(name, str) else None
