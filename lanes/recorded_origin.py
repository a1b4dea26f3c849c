"""Whether a recorded answer came from a model: the rules of live evidence, less those about lane and recorder.

Room: pure. The recorder composes the proof of each exchange, the cassette judges it whenever it is loaded. What passes
here is a recorded origin and no more: a replay of it can never become live evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lanes.record import Json, canonical_json, digest_bytes

PROOF_FIELD = "live_proof"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_ERROR_STATUS = 400
_NOTED = ("status", "finished", "usage", "provider_id", "reported_model", "answer_digest")
_TOLD = ("tls", "peer_scope", "date_skew_ms", "override_variables")
_SERVED = ("model_digest", "server", "sampling")


def compose_proof(note: Mapping[str, Json], facts: Mapping[str, Json]) -> dict[str, Json]:
    """What is kept of the witness's note on one exchange and of its facts on the whole conversation.

    Shape: no address, no port and no time of day: where it was answered stands in the origin, and so does when.
    """
    wire = note.get("wire")
    seen = wire if isinstance(wire, Mapping) else {}
    served = facts.get("local")
    proof: dict[str, Json] = {name: note.get(name) for name in _NOTED}
    proof |= {name: seen.get(name, facts.get(name)) for name in _TOLD}
    proof["stream"] = seen.get("stream")
    if facts.get("tunnel"):
        proof["tunnel"] = facts["tunnel"]
    if isinstance(served, Mapping):
        proof["local"] = {name: served.get(name) for name in _SERVED}
    return proof


def proof_digest(proof: Mapping[str, Json]) -> str:
    """The digest by which an answer's note names the proof of its recording."""
    return digest_bytes(canonical_json(proof))


def origin_problem(origin: Mapping[str, Json]) -> str:
    """Why an origin that says its answer came from a model does not show it; empty when it does."""
    proof = origin.get(PROOF_FIELD)
    if not isinstance(proof, Mapping):
        return "it holds no live proof"
    if origin.get("live_proof_digest") != proof_digest(proof):
        return "its live proof was altered"
    if not isinstance(at := origin.get("recorded_at"), str) or not _MOMENT.fullmatch(at):
        return "it does not say when it was recorded"
    if proof.get("stream") is not True:
        return "it did not come over a connection"
    if proof.get("override_variables") != []:
        return "override variables were set while it was recorded"
    if problem := _usage_problem(proof):
        return problem
    return _local_problem(origin, proof) if "local" in proof else _hosted_problem(origin, proof)


def weights_of(origin: Mapping[str, Json]) -> str | None:
    """The digest of the weights that answered, where the model was served on the recording machine itself."""
    proof = origin.get(PROOF_FIELD)
    served = proof.get("local") if isinstance(proof, Mapping) else None
    digest = served.get("model_digest") if isinstance(served, Mapping) else None
    return digest if isinstance(digest, str) else None


def _usage_problem(proof: Mapping[str, Json]) -> str:
    status, usage = proof.get("status"), proof.get("usage")
    if isinstance(status, int) and status >= _ERROR_STATUS:
        return ""
    if proof.get("finished") is not True:
        return "it did not come to its end"
    counts = usage.values() if isinstance(usage, Mapping) else ()
    total = sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))
    return "" if total > 0 else "it reports no tokens"


def _local_problem(origin: Mapping[str, Json], proof: Mapping[str, Json]) -> str:
    served = proof["local"]
    if not isinstance(served, Mapping) or not _DIGEST.fullmatch(str(served.get("model_digest"))):
        return "it does not say which weights answered"
    if not isinstance(server := served.get("server"), str) or not server.strip():
        return "it does not say which server answered"
    if origin.get("host") != "loopback" or proof.get("peer_scope") != "loopback":
        return "it did not come from this machine"
    return ""


def _hosted_problem(origin: Mapping[str, Json], proof: Mapping[str, Json]) -> str:
    tls = proof.get("tls")
    is_far = proof.get("peer_scope") == "global" or isinstance(proof.get("tunnel"), str)
    if origin.get("host") == "loopback" or not is_far:
        return "it did not come from a public address"
    if not isinstance(tls, Mapping) or tls.get("name_verified") is not True or tls.get("chain_verified") is not True:
        return "the certificate of its host was not verified"
    return ""
