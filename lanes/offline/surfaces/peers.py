"""A server of the program in a process of its own, with our own peer at the other end of its pipes.

Room: the drivers of stories come in, here and in the replay lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from harness.client.process import Grace, start_process
from harness.model.messages import JsonObject
from harness.transport.rpc import Peer


async def talk_to_server(
    command: Sequence[str],
    workspace: Path,
    environment: Mapping[str, str],
    hear: Callable[[str, JsonObject], None],
    talk: Callable[[Peer], Awaitable[None]],
) -> None:
    """Start a server, talk to it, close its input, and see that it ended well and without a word on standard error."""
    process = await start_process([*command], str(workspace), {**environment})
    numbers = itertools.count(1)
    complaints: list[str] = []
    peer = Peer(process.source, process.sink, ids=lambda: f"c-{next(numbers)}", report=complaints.append, hear_all=hear)
    peer.start()
    try:
        await talk(peer)
    finally:
        await process.end(_ask_nothing, Grace())
        peer.close()
    assert (process.exit_code, process.tail.text(), complaints) == (0, "", [])


async def _ask_nothing() -> None:
    """The end of the input is enough."""
