"""`mock-provider serve`: a server in this process until a signal stops it.

Room: asyncio, signals, files; the command comes in.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from mock_provider.dialects.table import BASE_PATHS
from mock_provider.doorkeeper import allow_many_files
from mock_provider.json_values import JsonObject
from mock_provider.mock import Mock
from mock_provider.ready_file import ReadyFile
from mock_provider.server import serve
from mock_provider.speed import choose_loop
from mock_provider.standard_streams import say, tell
from mock_provider.watching import Watch


def warn_about_host(host: str) -> None:
    """Say so when other machines can reach the provider."""
    if host == "localhost":
        return
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    tell(f"mock-provider: warning: {host} is not loopback, other machines can reach this provider\n")


def ready_line(mock: Mock) -> str:
    """What a starter needs to know, as one line of JSON."""
    urls: JsonObject = {dialect: mock.base_url(dialect) for dialect in BASE_PATHS}
    return json.dumps({"ready": True, "root": mock.root, "base_urls": urls}) + "\n"


def serve_until_stopped(
    mock: Mock, *, host: str, port: int, ready_file: Path | None, watch: Watch | None = None, is_fast: bool = True
) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP; the verdict goes to standard error.

    Shape: exit code 0, or 3 for a bad play.
    Raises: UsageError when the address or the ready file cannot be used.
    """
    warn_about_host(host)
    allow_many_files()
    ready = None if ready_file is None else ReadyFile(ready_file)
    try:
        with asyncio.Runner(loop_factory=choose_loop(is_fast=is_fast)) as runner:
            return runner.run(_serve(mock, host, port, ready, watch, is_fast=is_fast))
    finally:
        if ready is not None:
            ready.remove()


async def _serve(
    mock: Mock, host: str, port: int, ready: ReadyFile | None, watch: Watch | None, *, is_fast: bool
) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is signal.SIG_DFL:  # nohup asks for deafness to it
            loop.add_signal_handler(number, stopped.set)
    async with serve(mock, host, port, is_fast=is_fast), _watched(watch):
        line = ready_line(mock)
        if ready is not None:
            ready.write(line)
        say(line)
        await stopped.wait()
    verdict = mock.verify()
    tell(f"mock-provider: {verdict}\n")
    return 0 if verdict.ok else 3


@contextlib.asynccontextmanager
async def _watched(watch: Watch | None) -> AsyncIterator[None]:
    """Look at a script file all the while."""
    task = None if watch is None else asyncio.get_running_loop().create_task(watch.run())
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
