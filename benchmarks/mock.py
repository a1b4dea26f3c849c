"""The mock provider beside a bare responder, and beside other mock servers named on the command line.

Every server is a process of its own; they take turns, so that other load meets all alike. CPU is that of the server:
it moves less than wall time when the machine is busy. A peer has to answer `POST /v1/chat/completions` with 200 when
the last user message contains "hello".
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.mock_provider import bodies, generator
from benchmarks.mock_provider.load import ask, run
from benchmarks.mock_provider.processes import Running, floor, ours, parse_peers, peer
from benchmarks.timing import Row

WARM_UP = 1_000  # requests before anything counts: other servers compile while they run
PIECES = 1_000


@dataclass(frozen=True, slots=True)
class _Size:
    """How much is asked. Units: round_s is how long a round of wrk takes, total how many requests a round without."""

    rounds: int
    round_s: int
    total: int
    streams: int
    remembered: int


_QUICK = _Size(rounds=3, round_s=1, total=1_600, streams=20, remembered=2_000)
_USUAL = _Size(rounds=5, round_s=2, total=6_400, streams=60, remembered=10_000)


@dataclass(slots=True)
class Taken:
    """What one server took, round by round. Units: seconds a request, wall and CPU; seconds to the first byte."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)

    def wall(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.wall_s)

    def cpu(self) -> float:
        """The smallest of the rounds, which other load disturbed least."""
        return min(self.cpu_s)


@dataclass(frozen=True, slots=True)
class Work:
    """What every server of a run is asked. Shape: total and round_s as generator.ask_much has them."""

    body: bytes
    connections: int
    total: int
    round_s: int
    is_varied: bool


def _take(server: Running, taken: Taken, work: Work) -> None:
    before = server.cpu_s()
    answered = generator.ask_much(
        server.port,
        work.body,
        connections=work.connections,
        total=work.total,
        round_s=work.round_s,
        is_varied=work.is_varied,
    )
    taken.cpu_s.append((server.cpu_s() - before) / answered.count)
    taken.wall_s.append(answered.wall_s / answered.count)


def _take_stream(server: Running, taken: Taken, total: int) -> None:
    """One stream after the other, asked for by this process, which looks when the first byte comes."""
    before = server.cpu_s()
    wall_s, askers = run(ask(server.port, bodies.stream_body(), connections=1, total=total))
    taken.cpu_s.append((server.cpu_s() - before) / total)
    taken.wall_s.append(wall_s / total)
    taken.first_s += [time_s for asker in askers for time_s in asker.first_byte_s]


def _row(subject: str, name: str, work: Taken, base: Taken) -> Row:
    note = (
        f"{1 / work.wall():,.0f} of {1 / base.wall():,.0f} a second, {base.wall() / work.wall():.1f} × as fast; CPU "
        f"{work.cpu() * 1e6:.0f} of {base.cpu() * 1e6:.0f} µs, {base.cpu() / work.cpu():.1f} × as cheap"
    )
    return Row(subject, name, 1_000 * work.wall(), 1_000 * base.wall(), note)


@contextlib.contextmanager
def _all(script: str, peers: Mapping[str, str]) -> Iterator[list[Running]]:
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        yield [
            running.enter_context(ours(script, folder)),
            running.enter_context(floor()),
            *(running.enter_context(peer(name, how)) for name, how in peers.items()),
        ]


def _compare(servers: Sequence[Running], subject: str, work: Work, rounds: int) -> list[Row]:
    taken = {server.name: Taken() for server in servers}
    for _ in range(rounds):
        for server in servers:
            _take(server, taken[server.name], work)
    return [_row(subject, name, taken["ours"], base) for name, base in taken.items() if name != "ours"]


def _requests(size: _Size, peers: Mapping[str, str]) -> list[Row]:
    rows: list[Row] = []
    kinds = (
        ("small, all the same", bodies.small_body(), False),
        ("small, other words each time", bodies.small_body(), True),
        ("an agent going on", bodies.agent_body(), True),
        ("an agent, nothing known but the tools", bodies.agent_body(is_new=True), True),
    )
    with _all(bodies.plain_script(), peers) as servers:
        for server in servers:
            for body in (bodies.small_body(), bodies.agent_body()):
                run(ask(server.port, body, connections=16, total=WARM_UP))
        for name, body, is_varied in kinds:
            for connections in (1, 16, 64):
                subject = (
                    f"mock: 1,000 requests by {generator.NAME}, {name}, {len(body):,} bytes, {connections} connections"
                )
                count = size.total // 4 if connections == 1 else size.total
                rows += _compare(servers, subject, Work(body, connections, count, size.round_s, is_varied), size.rounds)
    return rows


def _streams(total: int, peers: Mapping[str, str]) -> list[Row]:
    """Streams one after the other: first byte and all pieces. A peer cuts its answer as it likes, so it is left out."""
    del peers
    rows: list[Row] = []
    with _all(bodies.stream_script(PIECES), {}) as servers:
        taken = {server.name: Taken() for server in servers}
        for _ in range(3):
            for server in servers:
                _take_stream(server, taken[server.name], total)
        work, base = taken["ours"], taken["floor"]
        first, floor_first = statistics.median(work.first_s), statistics.median(base.first_s)
        note = f"{first * 1e3:.2f} of {floor_first * 1e3:.2f} ms, each piece its own write"
        rows.append(Row(f"mock: first byte of a stream of {PIECES:,} pieces", "floor", first, floor_first, note))
        rate, floor_rate = PIECES / work.wall(), PIECES / base.wall()
        note = (
            f"{rate:,.0f} of {floor_rate:,.0f} pieces a second; CPU {work.cpu() * 1e3:.1f} of {base.cpu() * 1e3:.1f} ms"
        )
        rows.append(Row(f"mock: a stream of {PIECES:,} pieces", "floor", work.wall(), base.wall(), note))
    return rows


def _memory(count: int, peers: Mapping[str, str]) -> list[Row]:
    rows: list[Row] = []
    with _all(bodies.plain_script(), peers) as servers:
        kept: dict[str, float] = {}
        for server in servers:
            for is_new in (False, True):
                run(ask(server.port, bodies.agent_body(is_new=is_new), connections=16, total=count // 2))
            kept[server.name] = server.resident_mib()
        starts = {server.name: server.start_s for server in servers}
        for name in kept:
            if name != "ours":
                subject = f"mock: memory after {count:,} agent requests"
                rows.append(Row(subject, name, kept["ours"], kept[name], unit="MiB"))
                rows.append(Row("mock: start of the process to an open port", name, starts["ours"], starts[name]))
    return rows


def _matching(size: _Size) -> list[Row]:
    """Scripts of many steps and of many conversations, against one of ten."""
    rows: list[Row] = []
    kinds: tuple[tuple[str, Callable[[int], str]], ...] = (
        ("steps in order", bodies.steps_script),
        ("steps in any order", bodies.group_script),
        ("conversations told apart by words", bodies.choices_script),
    )
    for name, make in kinds:
        taken: dict[int, Taken] = {}
        with contextlib.ExitStack() as running:
            servers: dict[int, Running] = {}
            for count in (10, 1_000, 10_000):
                folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
                servers[count] = running.enter_context(ours(make(count), folder))
                taken[count] = Taken()
                run(ask(servers[count].port, bodies.small_body(), connections=16, total=WARM_UP))
            for _ in range(4):
                for count, server in servers.items():
                    _take(server, taken[count], Work(bodies.small_body(), 16, size.total // 2, size.round_s, True))
        for count in (1_000, 10_000):
            row = _row(f"mock: {count:,} {name}", "10 of them", taken[count], taken[10])
            rows.append(Row(row.subject, row.floor, taken[count].cpu() * 1e3, taken[10].cpu() * 1e3, row.note))
    return rows


def measure(*, sizes: str, peers: Sequence[str] = ()) -> list[Row]:
    """Requests, streams, memory, start and matching; a ratio below 1 is faster than what it is held against."""
    named = parse_peers(list(peers))
    size = _QUICK if sizes == "quick" else _USUAL
    return [
        *_requests(size, named),
        *_streams(size.streams, named),
        *_memory(size.remembered, named),
        *_matching(size),
    ]
