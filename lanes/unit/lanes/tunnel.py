"""A proxy on loopback that knows CONNECT and nothing else: it passes bytes on to one server, whatever name it is told.

Room: the tests of live channels come in.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field


@dataclass
class Tunnel:
    """One proxy.

    Shape: target is the port on 127.0.0.1 that bytes are passed on to, place where it listens, as HOST:PORT. seen holds
    the first lines it was sent, passed what its clients sent after them.
    """

    target: int
    seen: list[str] = field(default_factory=list)
    passed: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve, daemon=True)]

    def __enter__(self) -> Tunnel:
        self._threads[0].start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._pass_on, args=(client,), daemon=True))
            self._threads[-1].start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            self.seen.append(head.split(b"\r\n")[0].decode("ascii"))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(server, client, []), daemon=True)
            back.start()
            _copy(client, server, self.passed)
            back.join(10)


def _copy(source: socket.socket, target: socket.socket, kept: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            kept.append(data)
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
