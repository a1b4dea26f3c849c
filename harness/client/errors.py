"""What can go wrong for a program that embeds the agent through its client.

Room: the client's own rooms come in, and whoever uses the client.
"""

from __future__ import annotations

from harness.client.runs import RunResult
from harness.errors import HarnessError


class ClientError(HarnessError):
    """Anything the client raises by itself."""

    code = "CLIENT"


class StartError(ClientError):
    """The server's program could not be started, or it refused the handshake."""

    code = "CLIENT_START"


class ClientClosedError(ClientError):
    """The client was closed; a new one is needed."""

    code = "CLIENT_CLOSED"


class ProtocolError(ClientError):
    """The server answered or told something that is not of this wire."""

    code = "CLIENT_PROTOCOL"


class RequestTimeoutError(ClientError):
    """A request was not answered in time. It stays running on the server."""

    code = "CLIENT_TIMEOUT"


class RunTimeoutError(RequestTimeoutError):
    """A run did not end within its deadline; the server goes on with it. partial is what came until then."""

    def __init__(self, what: str, partial: RunResult) -> None:
        super().__init__(what, fix="wait longer, or stop it with cancel; what it did is in the session's log")
        self.partial = partial


class ServerDiedError(ClientError):
    """The server's process is gone.

    Shape: status is the exit code, negative for a signal, None when it is not known; tail is the end of its standard
    error; partial is what a run had received, None outside of a run.
    """

    code = "CLIENT_SERVER_DIED"

    def __init__(self, status: int | None, tail: str, partial: RunResult | None = None) -> None:
        ending = "its status is not known" if status is None else f"exit status {status}"
        super().__init__(f"the server ended, {ending}" + (f"; it said last:\n{tail}" if tail else ""))
        self.status = status
        self.tail = tail
        self.partial = partial


class StillRunningError(ClientError):
    """The server's process could not be ended."""

    code = "CLIENT_STILL_RUNNING"
