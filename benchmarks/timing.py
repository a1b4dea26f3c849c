"""Time a piece of work against a floor, alternating, and keep the medians.

Room: measuring only; what is measured lives in the other rooms of this folder.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Units: work_s and floor_s are seconds of CPU or wall time for the same amount of work."""

    subject: str
    floor: str
    work_s: float
    floor_s: float
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times the floor the work costs."""
        return self.work_s / self.floor_s if self.floor_s else float("inf")


def compare(
    subject: str, floor: str, work: Callable[[], None], base: Callable[[], None], *, rounds: int, note: str = ""
) -> Row:
    """Run both alternately and compare the medians of their CPU times, so that other load hits both alike."""
    work_times: list[float] = []
    base_times: list[float] = []
    for _ in range(rounds):
        for run, times in ((work, work_times), (base, base_times)):
            before = time.process_time()
            run()
            times.append(time.process_time() - before)
    return Row(subject, floor, statistics.median(work_times), statistics.median(base_times), note)


def table(rows: list[Row]) -> str:
    """The rows as aligned text, ratio last."""
    head = ("subject", "floor", "subject s", "floor s", "ratio", "")
    body = [(r.subject, r.floor, f"{r.work_s:.4f}", f"{r.floor_s:.4f}", f"{r.ratio:.2f}", r.note) for r in rows]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *body]
    )
