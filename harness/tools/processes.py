"""Find and end every process a command started, also those that left its process group.

Room: the shell tool comes in, and assemble for the other programs of a session. Knows process tables and signals,
nothing of tools.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

MARK = "HARNESS_SHELL"  # environment variable that every process of a command inherits
_PROC = Path("/proc")
_POLL_S = 0.02  # fine enough to return soon after the last process went, coarse enough to cost nothing
FAMILY_GRACE_S = 0.5  # between asking and killing what is no command: it was told to end in its own way before
_KILL_ROUNDS = 100  # a killed process may have forked just before; two seconds of polls end every honest case


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the process table."""

    pid: int
    parent: int
    session: int
    state: str


def read_table() -> tuple[Process, ...]:
    """All processes that can be seen. Where the system has no /proc, groups stand for sessions and no mark is found."""
    if not (_PROC / "self" / "stat").exists():
        return _table_of_ps()
    rows = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_bytes()
        except OSError:
            continue  # it ended while the table was read
        fields = text[text.rfind(b")") + 2 :].split()  # the command name before it may hold anything
        rows.append(Process(int(folder.name), int(fields[1]), int(fields[3]), fields[0].decode("ascii")))
    return tuple(rows)


def _table_of_ps() -> tuple[Process, ...]:
    command = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,stat="]
    text = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
    rows = (line.split() for line in text.splitlines())
    return tuple(Process(int(row[0]), int(row[1]), int(row[2]), row[3][:1].decode("ascii")) for row in rows)


def find_members(table: tuple[Process, ...], sessions: frozenset[int], mark: str) -> tuple[Process, ...]:
    """The living processes of these sessions, their descendants, and all that carry the mark.

    Limits: a process that left the session, outlived its parent and cleared its environment is not found.
    """
    found = {row.pid for row in table if row.session in sessions or _carries(row.pid, mark)}
    grew = True
    while grew:
        children = {row.pid for row in table if row.parent in found and row.pid not in found}
        found |= children
        grew = bool(children)
    found.discard(os.getpid())
    return tuple(row for row in table if row.pid in found and row.state not in {"Z", "X"})


def _carries(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False  # it ended, or belongs to someone else
    prefix = f"{MARK}=".encode()
    wanted = mark.encode()
    return any(
        token == wanted or token.startswith(wanted + b"-")
        for item in environment.split(b"\0")
        if item.startswith(prefix)
        for token in item.removeprefix(prefix).split()
    )


def command_line(pid: int) -> str:
    """The command of a process, as a person would type it; empty when it is gone."""
    try:
        data = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return " ".join(part.decode("utf-8", "replace") for part in data.split(b"\0") if part)


def mark_of(place: str) -> str:
    """The mark of everything that was ever started for a place: a digest that says nothing of the place."""
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def own_mark(place: str) -> str:
    """The part of that mark that no other process of this machine hands out: with own pid and own start time.

    Shape: a mark covers every mark that continues it after a dash.
    """
    try:
        text = (_PROC / "self" / "stat").read_bytes()
        started = text[text.rfind(b")") + 2 :].split()[19].decode("ascii")
    except OSError:
        started = "0"
    return f"{mark_of(place)}-{os.getpid()}-{started}"


def signal_now(sessions: frozenset[int], mark: str, number: signal.Signals) -> tuple[Process, ...]:
    """Signal everything that belongs to the sessions or the mark; says what was there."""
    table = read_table()
    for session in sessions & {row.session for row in table}:
        _send(os.killpg, session, number)
    members = find_members(table, sessions, mark)
    for member in members:
        _send(os.kill, member.pid, number)
    return members


def _send(send: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return  # it ended by itself, or runs as somebody else and is out of reach


async def end_all(sessions: frozenset[int], mark: str, *, grace_s: float) -> None:
    """Ask everything to end, then kill what is left; returns when nothing is left.

    Units: grace_s is what a process gets between the request and the kill.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + grace_s
    left = await asyncio.to_thread(signal_now, sessions, mark, signal.SIGTERM)
    while left and clock() < until:
        await asyncio.sleep(_POLL_S)
        left = await asyncio.to_thread(lambda: find_members(read_table(), sessions, mark))
    for _ in range(_KILL_ROUNDS):
        if not await asyncio.to_thread(signal_now, sessions, mark, signal.SIGKILL):
            return
        await asyncio.sleep(_POLL_S)


def family_of(
    place: str, kind: str
) -> tuple[str, str, Callable[[frozenset[int], str], Awaitable[None]], Callable[[frozenset[int], str], object]]:
    """How other processes of a place than its shell's are known and ended: variable, mark, end and kill.

    Shape: the mark is one of the place, so that a resumed session ends what was left, and none of its shell, which
    would report it as left in the background.
    """
    mark = f"{mark_of(place)}-{kind}-{own_mark(place)}"
    return MARK, mark, partial(end_all, grace_s=FAMILY_GRACE_S), partial(signal_now, number=signal.SIGKILL)
