"""What a run of the lane `real` was asked for: which providers and models, how many attempts, and for how much.

Room: the runner plans it and leaves it in the spool; the suite, its channels and the preflight read it there.
"""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from lanes.budget import RUN, Ask, Limits, total_of, why_refused
from lanes.claims import Claims
from lanes.errors import UsageError
from lanes.guard import SPOOL_VARIABLE
from lanes.ledger import LEDGER_FILE, Ledger, Purse
from lanes.providers import Provider, has_key, key_problem, load_providers
from lanes.record import Json, JsonObject
from lanes.spool import read_document, write_document
from lanes.trouble import Trouble

LIVE_FILE = "live.json"
PREFLIGHT_FILE = "preflight.json"
_STOPPED = "stopped-{}.json"
DEFAULT_BUDGET_USD = Decimal(1)  # the journeys of one provider cost some cents; ten times that is a mistake to notice
MAX_BUDGET_USD = Decimal(10_000)
MAX_ATTEMPTS = 100
RUNAWAY_FACTOR = 50  # so many times its expected cost a claim may take; the worst case of one answer is ten of them
MAX_REQUESTS = 2_000  # of one run; a loop that asks for ever ends here also where it costs nothing
MAX_WALL_S = 2_400  # five minutes less than the nightly job has, so that what was seen by then is published


@dataclass(frozen=True, slots=True)
class LiveWish:
    """What a person asked for.

    Shape: empty texts name nothing: every provider with a key, its usual model. attempts 0 is the lane's own rule,
    once and again after a failure; a number is a sample of that many.
    """

    target: str = ""
    model: str = ""
    attempts: int = 0
    budget_usd: Decimal = DEFAULT_BUDGET_USD


NO_WISH = LiveWish()


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """One provider and the model it is asked for."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One run as it was planned.

    Shape: limits are what single providers and claims may take, in USD by their scope in the ledger.
    Units: started_s is the machine's steady clock in seconds.
    """

    targets: tuple[LiveTarget, ...]
    attempts: int = 0
    budget_usd: Decimal = DEFAULT_BUDGET_USD
    started_s: float = 0.0
    limits: Mapping[str, Decimal] = field(default_factory=dict)

    def ledger(self, spool: Path) -> Ledger:
        """The ledger that all processes of the run share."""
        whole = Limits(usd=self.budget_usd, requests=MAX_REQUESTS, wall_s=MAX_WALL_S)
        parts = {scope: Limits(usd=usd) for scope, usd in self.limits.items()}
        return Ledger(spool / LEDGER_FILE, {RUN: whole, **parts})

    def purse(self, spool: Path, provider: Provider, *scopes: str) -> Purse:
        """What a conversation with a provider may take, on the account of these scopes too."""
        return Purse(
            self.ledger(spool),
            (provider_scope(provider.name), *scopes),
            provider.models,
            provider.max_out_tokens,
            lambda: time.monotonic() - self.started_s,
        )


def choose_targets(
    wish: LiveWish, providers: Sequence[Provider], environ: Mapping[str, str]
) -> tuple[tuple[LiveTarget, ...], tuple[Provider, ...]]:
    """The targets that have a key, and the providers that were meant.

    Raises: UsageError for a provider or a model that the table does not have, naming those that it has.
    """
    by_name = {each.name: each for each in providers}
    if wish.target and wish.target not in by_name:
        raise _unknown("--target", wish.target, tuple(by_name), "a table in lanes/providers.toml")
    meant = (by_name[wish.target],) if wish.target else tuple(providers)
    if wish.model:
        meant = tuple(each for each in meant if wish.model in each.known_models)
        if not meant:
            known = by_name[wish.target].known_models if wish.target else _all_models(providers)
            raise _unknown("--model", wish.model, known, "a table [NAME.models.MODEL] in lanes/providers.toml")
    found = tuple(LiveTarget(each.name, wish.model or each.model) for each in meant if has_key(environ, each))
    return found, meant


def why_no_key(environ: Mapping[str, str], providers: Sequence[Provider]) -> str:
    """What to set, and which of these variables are there and hold no key."""
    told = [
        f"{each.key} is {problem}"
        for each in providers
        if (problem := key_problem(environ, each)) and problem != "unset"
    ]
    return "; ".join([f"set {' or '.join(each.key for each in providers)}", *told])


def parse_budget(text: str) -> Decimal:
    """Return an amount of USD.

    Raises: UsageError.
    """
    try:
        amount = Decimal(text) if len(text) <= 20 else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount.is_finite() and Decimal(0) < amount <= MAX_BUDGET_USD:
        return amount
    message = f"--budget-usd is {text[:80]!r}"
    raise UsageError(message, where="lanes run", expected=f"an amount above 0 and up to {MAX_BUDGET_USD}, as 0.50")


def write_live_run(spool: Path, run: LiveRun) -> None:
    """Leave the plan for the processes of the run."""
    targets: list[Json] = [{"provider": each.provider, "model": each.model} for each in run.targets]
    document: dict[str, Json] = {
        "targets": targets,
        "attempts": run.attempts,
        "budget_usd": str(run.budget_usd),
        "started_s": run.started_s,
        "limits": {scope: str(usd) for scope, usd in run.limits.items()},
    }
    write_document(spool / LIVE_FILE, document)


def load_live_run(spool: Path) -> LiveRun | None:
    """The plan of the run that this process belongs to; None where nobody planned one."""
    document = read_document(spool / LIVE_FILE)
    if document is None:
        return None
    rows, limits = document["targets"], document["limits"]
    return LiveRun(
        tuple(LiveTarget(str(each["provider"]), str(each["model"])) for each in rows if isinstance(each, Mapping))
        if isinstance(rows, list)
        else (),
        int(str(document["attempts"])),
        Decimal(str(document["budget_usd"])),
        float(str(document["started_s"])),
        {scope: Decimal(str(usd)) for scope, usd in limits.items()} if isinstance(limits, Mapping) else {},
    )


def live_targets(environ: Mapping[str, str] = os.environ) -> tuple[tuple[Provider, str], ...]:
    """The providers of this run, each with the model it is asked for; outside a lane all of the table."""
    spool = environ.get(SPOOL_VARIABLE, "")
    run = load_live_run(Path(spool)) if spool else None
    by_name = {each.name: each for each in load_providers()}
    if run is None:
        return tuple((each, each.model) for each in by_name.values())
    return tuple((by_name[each.provider], each.model) for each in run.targets if each.provider in by_name)


def provider_scope(name: str) -> str:
    """The account of a provider in the ledger."""
    return f"provider {name}"


def claim_scope(claim_id: str) -> str:
    """The account of a claim in the ledger."""
    return f"claim {claim_id}"


def part_limits(providers: Sequence[Provider], claims: Claims, attempts: int) -> dict[str, Decimal]:
    """What single providers and claims may take: what the table says, and many times what a claim says it costs."""
    found = {provider_scope(each.name): each.budget_usd for each in providers if each.budget_usd is not None}
    for claim in claims:
        if claim.expected_usd is not None:
            found[claim_scope(claim.id)] = Decimal(claim.expected_usd) * RUNAWAY_FACTOR * max(attempts, 1)
    return found


def why_spent(run: LiveRun, spool: Path, scopes: Sequence[str] = ()) -> str:
    """Why nothing is left for another test on these accounts; empty while something is.

    Shape: a test that finds nothing left was not run, and one that runs out of it is blocked; so the least that a
    request can take is asked for here, and not the worst case of the first one.
    """
    ledger = run.ledger(spool)
    ask = Ask((RUN,), Decimal(0), 0, time.monotonic() - run.started_s)
    entries = ledger.entries()
    for scope, limit in {RUN: run.budget_usd, **run.limits}.items():
        total = total_of(entries, scope)
        if scope in {RUN, *scopes} and limit <= total.usd + total.reserved_usd:
            return f"{scope}: ${total.usd + total.reserved_usd:.6f} of ${limit} are spent or reserved"
    return why_refused(ledger.limits, entries, ask)


def stopped(spool: Path, provider: str) -> Trouble | None:
    """Why a provider is not asked any more in this run; None while it is."""
    found = read_document(spool / _STOPPED.format(provider)) or _preflight(spool, provider)
    if found is None:
        return Trouble("preflight", "nobody has asked the provider before the first test")
    return Trouble(str(found["code"]), str(found.get("text", ""))) if found.get("code") else None


def stop(spool: Path, provider: str, trouble: Trouble) -> None:
    """Ask a provider no more in this run: everything else would end the same way."""
    write_document(spool / _STOPPED.format(provider), {"code": trouble.code, "text": trouble.text})


def _preflight(spool: Path, provider: str) -> JsonObject | None:
    found = (read_document(spool / PREFLIGHT_FILE) or {}).get(provider)
    return found if isinstance(found, Mapping) else None


def _all_models(providers: Sequence[Provider]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(model for each in providers for model in each.known_models))


def _unknown(option: str, asked: str, known: Sequence[str], fix: str) -> UsageError:
    near = difflib.get_close_matches(asked, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UsageError(
        f"{option} {asked[:80]!r} is unknown{hint}",
        where="lanes run real",
        expected=f"one of {', '.join(known)}",
        fix=f"name one of these, or give it {fix}",
    )
