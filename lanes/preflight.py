"""The preflight: one cheap exchange with each provider before the first test, to tell a bad key from a bad program.

Room: the runner starts it as `python -m lanes.preflight` inside the lane's own environment, guard and seal included.
What it finds lies in the spool; a provider that fails here blocks its claims and fails none of them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from lanes.errors import LanesError
from lanes.guard import SPOOL_VARIABLE
from lanes.ledger import BudgetError
from lanes.live_run import PREFLIGHT_FILE, LiveRun, load_live_run
from lanes.providers import Provider, load_providers
from lanes.record import Json, JsonObject
from lanes.sealed import FIRST_ERROR_STATUS, SealedTransport
from lanes.spool import write_document
from lanes.trouble import Trouble, trouble_of_failure, trouble_of_status

MAX_SKEW_MS = 300_000  # that of rule A9: a test whose answers are dated worse would be void
TIMEOUT_S = 60.0
_OUT_TOKENS = 1_024  # a model that thinks before it speaks needs some room for one word


@dataclass(frozen=True, slots=True)
class _Wire:
    """How a dialect is asked for one word."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Json]


async def exchange_nonce(provider: Provider, model: str, key: str, transport: SealedTransport) -> Trouble | None:
    """Ask for a fresh word and see it come back; the trouble that stands in the way, None for none."""
    word = secrets.token_hex(6)
    wire = _wire(provider, model, key, f"Answer with this one word and nothing else: {word}")
    try:
        async with httpx.AsyncClient(transport=transport, timeout=TIMEOUT_S, trust_env=False) as client:
            reply = await client.post(provider.base_url + wire.path, headers=dict(wire.headers), json=dict(wire.body))
    except BudgetError as error:
        return Trouble("budget", error.what)
    except httpx.TransportError as error:
        return trouble_of_failure(provider.host, error)
    trouble = trouble_of_status(reply.status_code, reply.content)
    if trouble is not None:
        return trouble
    if reply.status_code >= FIRST_ERROR_STATUS:
        return Trouble("preflight", f"the provider answered {reply.status_code} when it was asked for {model!r}")
    (note,) = transport.notes
    skew = _skew_ms(note)
    if provider.sends_date and (skew is None or abs(skew) > MAX_SKEW_MS):
        told = "the answer carries no date" if skew is None else f"this clock and the provider's differ by {skew} ms"
        return Trouble("clock", told)
    if word not in transport.said:
        return Trouble("preflight", "the answer does not hold the word that was asked for")
    return None


def _skew_ms(note: JsonObject) -> int | None:
    wire = note.get("wire")
    found = wire.get("date_skew_ms") if isinstance(wire, Mapping) else None
    return found if isinstance(found, int) else None


def _wire(provider: Provider, model: str, key: str, prompt: str) -> _Wire:
    body: dict[str, Json] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    if provider.dialect == "anthropic_messages":
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        return _Wire("/messages", headers, body | {"max_tokens": _OUT_TOKENS})
    return _Wire("/chat/completions", {"authorization": f"Bearer {key}"}, body)


async def _fly(run: LiveRun, spool: Path) -> dict[str, Json]:
    found: dict[str, Json] = {}
    by_name = {each.name: each for each in load_providers()}
    for target in run.targets:
        provider = by_name[target.provider]
        transport = SealedTransport(provider, purse=run.purse(spool, provider, "preflight"))
        key = os.environ.get(provider.key, "").strip()
        trouble = await exchange_nonce(provider, target.model, key, transport)
        found[provider.name] = {
            "model": target.model,
            "code": "" if trouble is None else trouble.code,
            "text": "" if trouble is None else trouble.text,
            "reported_model": next((note["reported_model"] for note in transport.notes), None),
            "cost": transport.cost_facts(),
        }
    return found


def main() -> int:
    """Ask every provider of this run, and leave what came of it in the spool."""
    spool = Path(os.environ[SPOOL_VARIABLE])
    run = load_live_run(spool)
    try:
        write_document(spool / PREFLIGHT_FILE, {} if run is None else asyncio.run(_fly(run, spool)))
    except LanesError as error:
        os.write(2, f"{error}\n".encode())
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
