"""A run against hosted models, as its parent sees it: the plan, the preflight, the money, and what a reader is told.

Room: the runner alone comes in. It asks no model itself; what does is a process inside the lane.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from lanes.budget import RUN, total_of
from lanes.environment import override_names
from lanes.live_run import PREFLIGHT_FILE, LiveRun, LiveTarget, LiveWish, part_limits, write_live_run
from lanes.prices import usd_text
from lanes.project import claims_of, load_project
from lanes.providers import Provider
from lanes.record import Json, JsonObject
from lanes.spool import read_document

PREFLIGHT_TIMEOUT_S = 300
DEAREST = 3  # how many tests are named with what they took


@dataclass(frozen=True, slots=True)
class Hosted:
    """One such run."""

    run: LiveRun
    spool: Path

    def facts(self) -> JsonObject:
        """What the trailer of the bundle keeps: who was asked, how the preflight went, what was spent of how much."""
        entries = self.run.ledger(self.spool).entries()
        total = total_of(entries, RUN)
        return {
            "targets": [{"provider": each.provider, "model": each.model} for each in self.run.targets],
            "attempts": self.run.attempts,
            "preflight": read_document(self.spool / PREFLIGHT_FILE),
            "budget": {
                "limit_usd": str(self.run.budget_usd),
                "spent_usd": usd_text(total.usd),
                "reserved_usd": usd_text(total.reserved_usd),
                "requests": total.requests,
                "tokens": total.tokens,
                "is_known": total.is_known,
                "dearest": self._dearest(),
            },
        }

    def notes(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """What a reader of this run is told."""
        found = [f"asked: {', '.join(f'{each.provider} {each.model}' for each in self.run.targets)}"]
        preflight = read_document(self.spool / PREFLIGHT_FILE)
        if preflight is None:
            found.append("the preflight came to no end, so nothing was asked of any provider [PREFLIGHT]")
        for name, row in sorted((preflight or {}).items()):
            if isinstance(row, Mapping) and row.get("code"):
                found.append(f"{name}: blocked ({row['code']}): {row['text']} [PREFLIGHT]")
        overrides = override_names(environ)
        if overrides:
            found.append(f"not used, the lane asks the hosts of its table directly: {', '.join(overrides)}")
        total = total_of(self.run.ledger(self.spool).entries(), RUN)
        unknown = "" if total.is_known else "; an answer did not say what it used"
        found.append(
            f"budget: ${usd_text(total.usd)} spent and ${usd_text(total.reserved_usd)} reserved of "
            f"${self.run.budget_usd}, an estimate, {total.requests} requests{unknown}"
        )
        return tuple(found)

    def _dearest(self) -> list[Json]:
        entries = self.run.ledger(self.spool).entries()
        scopes = {scope for each in entries for scope in each.scopes if scope.startswith("test ")}
        sums = {scope: total_of(entries, scope) for scope in scopes}
        ranked = sorted(sums, key=lambda scope: (-(sums[scope].usd + sums[scope].reserved_usd), scope))
        return [
            {"test": scope.removeprefix("test "), "usd": usd_text(sums[scope].usd + sums[scope].reserved_usd)}
            for scope in ranked[:DEAREST]
            if sums[scope].usd + sums[scope].reserved_usd > Decimal(0)
        ]


def private_addresses(targets: Sequence[LiveTarget], providers: Sequence[Provider]) -> tuple[str, ...]:
    """Where the names of the private endpoints and of the tunnels that are asked lead to now, as ADDRESS:PORT.

    Shape: a name that leads nowhere has none; whoever asks it then says so. Behind a tunnel the endpoint itself is not
    looked up: the tunnel does that.
    """
    asked = {each.provider for each in targets}
    found: set[str] = set()
    for each in providers:
        host, port = _first_stop(each)
        if each.name in asked and (each.tunnel or each.peers == "private"):
            with contextlib.suppress(OSError):
                told = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found.update(f"{address[0]}:{port}" for *_rest, address in told)
    return tuple(sorted(found))


def _first_stop(provider: Provider) -> tuple[str, int]:
    """Where the connection of a request is opened to."""
    host, _, port = provider.tunnel.rpartition(":")
    return (host, int(port)) if host else (provider.host, provider.port)


def start_hosted(
    targets: Sequence[LiveTarget],
    wish: LiveWish,
    spool: Path,
    variables: Mapping[str, str],
    root: Path,
    providers: Sequence[Provider],
) -> Hosted:
    """Leave the plan in the spool and fly the preflight, which leaves what it found there."""
    limits = part_limits(providers, claims_of(load_project(root)), wish.attempts)
    run = LiveRun(tuple(targets), wish.attempts, wish.budget_usd, time.monotonic(), limits)
    write_live_run(spool, run)
    command = [sys.executable, "-m", "lanes.preflight"]
    with contextlib.suppress(subprocess.TimeoutExpired):  # it has left no word then, and who finds none asks nobody
        subprocess.run(command, env=dict(variables), cwd=root, timeout=PREFLIGHT_TIMEOUT_S, check=False)
    return Hosted(run, spool)
