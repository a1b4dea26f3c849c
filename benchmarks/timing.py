"""Time a piece of work against a floor, alternating, and keep the medians.

Room: measuring only; what is measured lives in the other rooms of this folder.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Units: work and floor are seconds of CPU or wall time for the same amount of work, or MiB where unit says so.
    """

    subject: str
    floor: str
    work: float
    base: float
    note: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times the floor the work costs."""
        return self.work / self.base if self.base else float("inf")


def compare(
    subject: str, floor: str, work: Callable[[], None], base: Callable[[], None], *, rounds: int, note: str = ""
) -> Row:
    """Run both alternately and compare the medians of their CPU times, so that other load hits both alike."""
    work_times: list[float] = []
    base_times: list[float] = []
    for _ in range(rounds):
        for run, times in ((work, work_times), (base, base_times)):
            gc.collect()  # what the one left behind is not the other's to clear away
            before = time.process_time()
            run()
            times.append(time.process_time() - before)
    return Row(subject, floor, statistics.median(work_times), statistics.median(base_times), note)


def table(rows: list[Row]) -> str:
    """The rows as aligned text, ratio last."""
    head = ("subject", "floor", "subject", "floor", "", "ratio", "")
    body = [(r.subject, r.floor, _figure(r.work), _figure(r.base), r.unit, f"{r.ratio:.2f}", r.note) for r in rows]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *body]
    )


def _figure(value: float) -> str:
    return f"{value:.1f}" if value >= 100 else f"{value:.4f}"
