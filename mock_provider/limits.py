"""How much a client may send, how long it may take, and how large a script and its pieces may be.

Room: pure; the engine and the loopback server come in.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server.

    Units: body_bytes is also what a compressed body may become; receive_s is the time from the first byte of a request
    to its last, idle_s the time between requests on one connection. connections 0 means: as many as the process may
    have open files, less a reserve. script_bytes is of a script file, event_bytes of one piece that a script sends.
    """

    header_bytes: int = 64 << 10
    body_bytes: int = 32 << 20
    receive_s: float = 60
    idle_s: float = 300
    connections: int = 0
    script_bytes: int = 16 << 20  # written by people or from one recording; more is a mistaken file
    event_bytes: int = 1 << 20
