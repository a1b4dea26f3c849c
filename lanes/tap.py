"""Between a client and a server: passes bytes both ways and writes down what went through.

Room: run as a program by the tests of clients: `python -m lanes.tap RECORD COMMAND ...`. It leaves `RECORD.in` and
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

PIECE_BYTES = 1 << 16


def main(record: str, command: list[str]) -> None:
    """Run the command between this process's own standard streams."""
    into, (output, out) = os.pipe(), os.pipe()
    server = subprocess.Popen(command, stdin=into[0], stdout=out)
    os.close(into[0])
    os.close(out)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: server.send_signal(number))
    beside = Path(f"{record}.pid.new")
    beside.write_text(str(server.pid), "utf-8")
    beside.replace(f"{record}.pid")
    threading.Thread(target=to_server, args=(into[1], record), daemon=True).start()
    with Path(f"{record}.out").open("ab", buffering=0) as record_out:
        is_read = True
        while data := os.read(output, PIECE_BYTES):
            record_out.write(data)
            is_read = is_read and sent(1, data)
    status = server.wait()
    Path(f"{record}.exit").write_text(str(status), "utf-8")
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)  # the other thread may be waiting for a client that sends nothing more


def to_server(stdin: int, record: str) -> None:
    """Pass on what the client sends until it closes its end, or the server is gone."""
    with Path(f"{record}.in").open("ab", buffering=0) as into:
        while data := os.read(0, PIECE_BYTES):
            into.write(data)
            if not sent(stdin, data):
                return
    os.close(stdin)


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
