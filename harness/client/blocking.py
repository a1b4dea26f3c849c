"""The same client for programs without an event loop: every call waits for its end.

Room: programs that embed the agent come in; safe to use from several threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import TypeVar

from harness.client.client import Content, HarnessClient, Launch
from harness.client.errors import ClientClosedError
from harness.client.runs import Observer, RunResult
from harness.model.messages import JsonObject

T = TypeVar("T")


class BlockingHarnessClient:
    """HarnessClient in a thread of its own.

    Shape: the methods are the same, each waits. Observers run in the client's thread and must not call back.
    Raises: as HarnessClient.
    """

    def __init__(self, launch: Launch) -> None:
        self._client = HarnessClient(launch)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="harness-client", daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> BlockingHarnessClient:
        self._wait(self._client.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def stderr_tail(self) -> str:
        """The newest lines of the server's standard error."""
        return self._client.stderr_tail

    def run(
        self, content: Content, *, session_id: str, timeout_s: float | None = None, observer: Observer | None = None
    ) -> RunResult:
        """Prompt a session and wait until it has come to rest."""
        return self._wait(self._client.run(content, session_id=session_id, timeout_s=timeout_s, observer=observer))

    def prompt(self, content: Content, *, session_id: str) -> str:
        """Queue a prompt and give its receipt."""
        return self._wait(self._client.prompt(content, session_id=session_id))

    def cancel(self, session_id: str, message_id: str | None = None) -> str:
        """Stop a message, or with none everything of a session."""
        return self._wait(self._client.cancel(session_id, message_id))

    def resume(self, session_id: str) -> None:
        """Open a stored session without a prompt."""
        self._wait(self._client.resume(session_id))

    def request(self, method: str, params: JsonObject | None = None, *, timeout_s: float | None = None) -> JsonObject:
        """Any request of the wire."""
        return self._wait(self._client.request(method, params, timeout_s=timeout_s))

    def close(self) -> None:
        """End the server; returns once its process is really gone. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            try:
                self._wait(self._client.close())
            finally:
                self._closed = True
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()

    def _wait(self, work: Coroutine[None, None, T]) -> T:
        if self._closed:
            work.close()
            raise ClientClosedError("the client was closed", fix="make a new one")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
