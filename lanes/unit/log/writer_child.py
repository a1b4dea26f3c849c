"""A process that writes one session, for tests that need two writers or kill one.

Room: run by path from the tests of this folder. Usage: writer_child.py ROOT SESSION NAME RECORDS SIZE...

Says "ready", waits for a line, opens the session and says "opened" or "refused" with the error; stores the records,
says "durable SEQ" after each; says "done", waits for a line, closes and says "closed".
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from harness.errors import LogError
from harness.log.events import UserMessage
from harness.log.store import SessionStore
from harness.model.messages import Message, MessageId, SessionId, TextBlock, UserSource


def say(text: str) -> None:
    """One line to the parent."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def write(root: str, session: str, name: str, records: str, *sizes: str) -> int:
    """Open, store, close."""
    ticks = itertools.count(1)
    store = SessionStore(Path(root), clock=lambda: next(ticks))
    say("ready")
    sys.stdin.readline()
    try:
        writer = await store.resume(SessionId(session))
    except LogError as error:
        say(f"refused {error.error_code} {error.where} {error.what}")
        return 3
    say("opened")
    lengths = itertools.cycle(int(size) for size in sizes)
    for number in range(int(records)):
        text = f"{name}-{number}-".ljust(next(lengths), "x")
        message = Message(MessageId(f"{name}-{number}"), "user", (TextBlock(text),), UserSource())
        writer.log.append(UserMessage(message))
        await writer.flush()
        say(f"durable {writer.durable_seq}")
    say("done")
    sys.stdin.readline()
    await writer.close()
    say("closed")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(write(*sys.argv[1:])))
