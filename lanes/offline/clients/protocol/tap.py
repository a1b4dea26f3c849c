"""Between a client and a server: passes bytes both ways and writes down what went through.

Room: run as a program by the tests of published clients: `tap.py RECORD COMMAND ...`. It leaves `RECORD.in` and
`RECORD.out` with the bytes of both directions, `RECORD.pid` with the server's process id, `RECORD.exit` with how the
server ended, and ends in the same way itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 1 << 16


def main(record: str, command: list[str]) -> None:
    """Run the command between this process's own standard streams."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: server.send_signal(number))
    beside = Path(f"{record}.pid.new")
    beside.write_text(str(server.pid), "utf-8")
    beside.replace(f"{record}.pid")
    threading.Thread(target=to_server, args=(server.stdin, record), daemon=True).start()
    with Path(f"{record}.out").open("ab", buffering=0) as out:
        is_read = True
        while data := os.read(server.stdout.fileno(), PIECE_BYTES):
            out.write(data)
            is_read = is_read and sent(1, data)
    status = server.wait()
    Path(f"{record}.exit").write_text(str(status), "utf-8")
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    os._exit(status)  # the other thread may be waiting for a client that sends nothing more


def to_server(stdin: BinaryIO, record: str) -> None:
    """Pass on what the client sends until it closes its end, or the server is gone."""
    with Path(f"{record}.in").open("ab", buffering=0) as into:
        while data := os.read(0, PIECE_BYTES):
            into.write(data)
            if not sent(stdin.fileno(), data):
                return
    stdin.close()


def sent(descriptor: int, data: bytes) -> bool:
    """Write all of it; False when nobody reads any more."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
