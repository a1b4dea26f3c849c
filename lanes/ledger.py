"""The ledger of one run: reservations and their settlement in a file that all of its processes share.

Room: file input and output. The live channel and the preflight reserve here, the runner reads what it came to.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from lanes.budget import RUN, Ask, Entry, Limits, settle, why_refused
from lanes.errors import LanesError
from lanes.prices import Price, cost_of, read_tokens, worst_cost
from lanes.record import Json

LEDGER_FILE = "ledger.jsonl"


class BudgetError(LanesError):
    """The budget of the run does not hold one more request."""

    code = "BUDGET"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The file and the limits of a run.

    Shape: each line is a reservation or its settlement. It is held by a lock from the look at what is left until the
    new line is on the disk, so that of two who want the last cent exactly one gets it. A reservation that nobody
    settles stays spent.
    """

    path: Path
    limits: Mapping[str, Limits]

    def reserve(self, ask: Ask) -> str:
        """Write a reservation down and return its id.

        Raises: BudgetError when it does not fit.
        """
        with self._held() as file:
            entries = _read(file)
            reason = why_refused(self.limits, entries, ask)
            if reason:
                raise BudgetError(
                    f"the request was not made: {reason}",
                    where="budget",
                    fix="raise it with --budget-usd AMOUNT, or ask for fewer tests with -k",
                )
            entry_id = f"r{len(entries) + 1}"
            line: dict[str, Json] = {
                "reserve": entry_id,
                "scopes": list(ask.scopes),
                "usd": str(ask.usd or 0),
                "tokens": ask.tokens,
            }
            _append(file, line)
        return entry_id

    def settle(self, entry_id: str, usd: Decimal | None, tokens: int | None) -> None:
        """Write down what a request did cost; None where nobody can tell."""
        with self._held() as file:
            _append(file, {"settle": entry_id, "usd": None if usd is None else str(usd), "tokens": tokens})

    def entries(self) -> tuple[Entry, ...]:
        """Every reservation so far, oldest first, with what became of it."""
        if not self.path.exists():
            return ()
        with self._held() as file:
            return _read(file)

    @contextmanager
    def _held(self) -> Generator[BinaryIO]:
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield file


@dataclass(frozen=True, slots=True)
class Purse:
    """What one conversation may take from the ledger: by the prices of its provider, on the account of its claims.

    Shape: prices goes by the model's name; elapsed_s tells how long the run has lasted.
    """

    ledger: Ledger
    scopes: tuple[str, ...]
    prices: Mapping[str, Price | None]
    max_out_tokens: int
    elapsed_s: Callable[[], float]

    def reserve(self, model: str, sent_bytes: int, asked_out: int | None) -> str:
        """Reserve the worst case of a request.

        Raises: BudgetError.
        """
        out = self.max_out_tokens if asked_out is None else asked_out
        usd = worst_cost(sent_bytes, out, self.prices.get(model))
        return self.ledger.reserve(Ask((RUN, *self.scopes), usd, sent_bytes + out, self.elapsed_s()))

    def settle(self, entry_id: str, model: str, usage: Json) -> None:
        """Settle a request by what its answer said that it used."""
        tokens = read_tokens(usage)
        usd = cost_of(tokens, self.prices.get(model))
        self.ledger.settle(entry_id, usd, None if tokens is None else tokens.total)


def _read(file: BinaryIO) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    for line in file.read().splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # whoever wrote it died in between; no request followed
            continue
        if "reserve" in row:
            entries[row["reserve"]] = Entry(row["reserve"], tuple(row["scopes"]), Decimal(row["usd"]), row["tokens"])
        elif row.get("settle") in entries:
            usd = None if row["usd"] is None else Decimal(row["usd"])
            entries[row["settle"]] = settle(entries[row["settle"]], usd, row["tokens"])
    return tuple(entries.values())


def _append(file: BinaryIO, row: Mapping[str, Json]) -> None:
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 1, 0))
    torn = b"\n" if file.read(1) not in {b"", b"\n"} else b""  # what a process that died left must not swallow the next
    file.write(torn + json.dumps(row).encode("ascii") + b"\n")
    file.flush()
    os.fsync(file.fileno())
