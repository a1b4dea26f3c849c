"""Admission of a model on this machine: what takes the place of host, TLS, id and date in its proof.

Room: pure. `admit` alone comes in; it has found by then that the record names a local row of the provider table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lanes.record import Record
from reports.facts import (
    address_of,
    endpoints,
    has_endpoint,
    is_number,
    is_text,
    live_facts,
    model_facts,
    told_everywhere,
)

if TYPE_CHECKING:  # admit itself loads this room
    from reports.admit import Admission

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def check_local(record: Record, admission: Admission) -> tuple[str, str] | None:
    """Check that the lane's own server answered: its one port on loopback, its weights and its identity.

    Shape: void code and text of what is broken, None when nothing is.
    """
    overrides = live_facts(record).get("override_variables")
    if overrides != []:
        return "override", "override variables were set, or nothing says that there were none"
    local = live_facts(record).get("local")
    if not isinstance(local, Mapping):
        return "local", "nothing says which server was started"
    port = local.get("port")
    for _scheme, host, found, _path in endpoints(record):
        address = address_of(host)
        if not (host == "localhost" or (address is not None and address.is_loopback)) or found != port:
            return "peer", f"{host}:{found} is not the port that the lane started"
    for seen in told_everywhere(record, "peer_ip"):
        address = address_of(seen)
        if address is None or not address.is_loopback:
            return "peer", f"the peer address {seen!r:.80} is not loopback"
    if not has_endpoint(record) or not is_number(port):
        return "host", "the record names no endpoint"
    digest = local.get("model_digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        return "local", "the digest of the model file is missing"
    row = admission.providers.get(str(model_facts(record).get("provider")))
    if row is None or digest != row.model_digest:
        return "local", f"the weights are not those of the committed row: {digest[:23]}…"
    if not is_text(local.get("server")):
        return "local", "the identity of the server is missing"
    return None


def local_note(record: Record) -> str:
    """Which weights answered and which server served them, for the cell."""
    local = live_facts(record).get("local")
    facts = local if isinstance(local, Mapping) else {}
    return f"weights {str(facts.get('model_digest'))[:19]}, {facts.get('server')}"
