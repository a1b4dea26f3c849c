"""Kill a session again and again while it works, and see that it kept every promise it made.

Room: the command line and the tests of this room come in. It forks children, so nothing here may have started a thread.
A kill ends the process and not the machine: that bytes survive a power cut is what fsync is trusted for.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.log.events import Event
from lanes.crash_child import Life, live, places_in, say_on, sessions_of, workspace_of
from lanes.crash_promises import KINDS, Judgement, Promises, judge
from lanes.errors import InternalError

DEFAULT_KILLS = 500
STUCK_S = 60.0  # a life takes a tenth of a second; one that takes this long will not end
SHARE_AT_CALLS = 0.7  # of the kills; with the default number it takes in every place
JOBS = 4
RESUMED_JOBS = 2
LIVES = 4  # how often one session is killed at random times before it may end
SHOWN = 20  # broken promises printed in full


@dataclass(slots=True)
class Totals:
    """What all lives together came to."""

    kills: Counter[str] = field(default_factory=Counter)
    promises: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept, every call ran once and every session went on."""
        return not (self.lost or self.twice or self.stuck)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a life ended: by a signal or by itself, what it said, and how long it took in seconds."""

    killed: bool
    lines: tuple[str, ...]
    took_s: float


class Session:
    """One session over several lives, judged after each of them."""

    def __init__(self, folder: Path, totals: Totals, name: str) -> None:
        self._folder = folder
        self._totals = totals
        self._name = name
        self._promises = Promises()
        self._events: Sequence[Event] = ()
        self._number = 0
        workspace_of(folder).mkdir(parents=True)
        sessions_of(folder).mkdir()
        totals.sessions += 1

    def live(self, life: Life, how: str, *, kill_after_s: float | None = None) -> Ended:
        """Let it live once more; how names the kind of kill it is to meet, empty for none."""
        self._number += 1
        ended = run_life(replace(life, folder=str(self._folder), number=self._number), kill_after_s=kill_after_s)
        for line in ended.lines:
            self._promises.hear(line)
        if ended.killed:
            self._totals.kills[how] += 1
        self._take(judge(self._folder, self._promises, self._events, is_last=not how))
        return ended

    def end(self) -> None:
        """Let it live to its end, count what it promised, and clean up."""
        self.live(Life("", 0, RESUMED_JOBS), "")
        self._totals.promises.update(self._promises.count())
        shutil.rmtree(self._folder)

    def _take(self, found: Judgement) -> None:
        self._events = found.events
        where = f"{self._name}, life {self._number}"
        for kept, new in (
            (self._totals.lost, found.lost),
            (self._totals.twice, tuple(f"call {call} ran twice" for call in found.twice)),
            (self._totals.stuck, found.stuck),
        ):
            kept.extend(f"{where}: {text}" for text in new)


def run_life(life: Life, *, kill_after_s: float | None = None) -> Ended:
    """Fork a child that lives this life, kill it after that time, and hear what it said before it ended."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be(life, writing)
    os.close(writing)
    kill_at = began + (STUCK_S if kill_after_s is None else kill_after_s)
    said = bytearray()
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, kill_at - time.monotonic()))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            kill_at = began + 2 * STUCK_S
        elif data := os.read(reading, 1 << 16):
            said += data
        else:
            break
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    lines = tuple(line for line in said.decode().split("\n")[:-1])
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return Ended(killed, lines, time.monotonic() - began)


def _be(life: Life, writing: int) -> None:
    """The child: live, and never come back."""
    code = 1
    try:
        asyncio.run(live(life, say_on(writing)))
        code = 0
    except BaseException:  # noqa: BLE001 - a forked child must not go on in the parent's code, whatever it was
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def run_crashes(kills: int, seed: int, tell: Callable[[str], None]) -> Totals:
    """Kill that many children, most of them at disk calls and the rest at random times.

    Shape: each session is killed several times over, in its repairs too, and is then let live to its end. tell is
    given a line now and then.
    """
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        root = Path(name)
        first, second, took_s = _measure(root / "measure", totals)
        places, again = places_in(first), itertools.cycle(places_in(second))
        for number, place in enumerate(_spread(places, math.ceil(kills * SHARE_AT_CALLS / 2))):
            session = Session(root / f"place-{number}", totals, f"disk call {place[0]} {place[1]}")
            session.live(Life("", 0, JOBS, *place), "disk")
            session.live(Life("", 0, RESUMED_JOBS, *next(again)), "disk")
            session.end()
        tell(f"{totals.kills['disk']} kills at {len(places)} places of disk calls")
        chance = random.Random(seed)  # noqa: S311 - draws moments, protects nothing
        number = 0
        while totals.kills.total() < kills and number < 4 * kills:
            number += 1
            session = Session(root / f"time-{number}", totals, f"seed {seed}, session {number}")
            for _ in range(min(LIVES, kills - totals.kills.total())):
                session.live(Life("", 0, JOBS), "time", kill_after_s=chance.uniform(0, took_s))
            session.end()
        tell(f"{totals.kills['time']} kills at random times of lives of {took_s * 1000:.0f} ms")
    return totals


def _measure(folder: Path, totals: Totals) -> tuple[str, str, float]:
    """The disk calls of a first and of a second life nobody kills, and how long the first one takes.

    Raises: InternalError when such a life does not come to its end; there is nothing to kill then.
    """
    session = Session(folder, totals, "without a kill")
    first, second = session.live(Life("", 0, JOBS), ""), session.live(Life("", 0, RESUMED_JOBS), "")
    said = [line.partition(" ") for ended in (first, second) for line in ended.lines]
    traces = [trace for kind, _, trace in said if kind == "closed"]
    if len(traces) != 2:
        raise InternalError("a session that nobody kills does not come to its end", where="lanes crash")
    return traces[0], traces[1], first.took_s


def _spread(places: Sequence[tuple[int, str]], count: int) -> Iterator[tuple[int, str]]:
    """That many of the places, evenly over all of them, and again from the first when there are fewer."""
    for number in range(count):
        yield places[number * len(places) // count if count < len(places) else number % len(places)]


def report_lines(totals: Totals) -> str:
    """What came of it, in a few lines, the broken promises first."""
    problems = [*totals.lost, *totals.twice, *totals.stuck]
    lines = problems[:SHOWN]
    if len(problems) > SHOWN:
        lines.append(f"and {len(problems) - SHOWN} more")
    made = ", ".join(f"{totals.promises[kind]} {kind}" for kind in KINDS)
    at_calls, at_times = totals.kills["disk"], totals.kills["time"]
    lines += [
        f"kills {totals.kills.total()} ({at_calls} at disk calls, {at_times} at random times)",
        f"sessions {totals.sessions}",
        f"promises heard: {made}",
        f"lost promises {len(totals.lost)}",
        f"tools run twice {len(totals.twice)}",
        f"sessions that did not go on {len(totals.stuck)}",
    ]
    return "\n".join(lines) + "\n"
