"""The httpx shell around the model dialects: one request out, one stream of chunks back.

Room: the only one that imports the HTTP client, so that changing the client is one import.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from dataclasses import dataclass, replace
from datetime import datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar

import httpx

from harness.errors import AttachmentError, HarnessError
from harness.model.call import CancelSignal, ModelRequest
from harness.model.chunks import Chunk, Failure, Finish
from harness.provider.bodies import Bodies, PictureReader
from harness.provider.credential import Credential
from harness.provider.dialects import Dialect, dialect_named
from harness.provider.endpoint import Endpoint, check_allowed, parse_endpoint
from harness.wire.answer import AnswerStream
from harness.wire.failures import request_id_of

USER_AGENT = "five-lanes-harness/0.1.0"
MAX_ERROR_BODY_BYTES = 1 << 16  # error bodies say what they say in the first lines; more is a page of markup
DRAIN_S = 0.1  # how long to wait for the end of a body whose answer is complete, to keep its connection

_ABORTED = Failure("cancelled by the caller", "ABORTED")
_NO_STREAM = frozenset({"text/html", "application/json", "application/problem+json"})
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one answer may keep us waiting; every one counts only while a read is pending, except total_s.

    Units: seconds. first_byte_s covers connecting and the wait for the response's headers; idle_s is the longest
    silence after that; keepalive_s is the longest run of comments and half events without an event; total_s the
    longest whole answer, None for no limit.
    """

    first_byte_s: float = 60
    idle_s: float = 60
    keepalive_s: float = 900
    total_s: float | None = None


class HttpModel:
    """A model reached over HTTP.

    Shape: stream yields the chunks of one answer and never raises for anything the service or the network does:
    the last chunk is a Finish that says it. Nothing is sent again by itself. Redirects are not followed and cookies
    are not kept. A transport that was given is used and left open; without one, a connection pool is made and closed
    by aclose.
    read_picture gives the bytes of a stored picture; without it the route takes text only.
    Limits: see Limits. now is only asked to read a Retry-After that is a date; without it such a date is left out.
    Raises: UsageError from the constructor for a base URL that is not usable [BASE_URL], a host outside allowed_hosts
    [ENDPOINT_REFUSED] or an unknown dialect [NO_ADAPTER].
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None,
        transport: httpx.AsyncBaseTransport | None,
        dialect: str = "openai_chat",
        first_byte_timeout_s: float = 60,
        idle_timeout_s: float = 60,
        keepalive_timeout_s: float = 900,
        total_timeout_s: float | None = None,
        allowed_hosts: Set[str] | None = None,
        now: Callable[[], datetime] | None = None,
        read_picture: PictureReader | None = None,
    ) -> None:
        self.endpoint = parse_endpoint(base_url)
        check_allowed(self.endpoint, allowed_hosts)
        self._dialect = dialect_named(dialect)
        self._bodies = Bodies(self._dialect, read_picture)
        self._limits = Limits(first_byte_timeout_s, idle_timeout_s, keepalive_timeout_s, total_timeout_s)
        self._credential = Credential(api_key)
        self._now = now
        self._owns_transport = transport is None
        self._client = httpx.AsyncClient(
            transport=transport or _pool(self.endpoint),
            timeout=httpx.Timeout(first_byte_timeout_s, read=max(first_byte_timeout_s, idle_timeout_s)),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            trust_env=False,
        )

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncIterator[Chunk]:
        """Ask once and yield the answer's chunks; the last one is a Finish. aclose() frees the connection at once."""
        exchange = _Exchange(
            self._client,
            self._dialect,
            self._bodies,
            self.endpoint,
            self._credential,
            self._limits,
            self._now,
            request,
            cancel,
        )
        try:
            while not exchange.over:
                for chunk in await exchange.advance():
                    yield chunk
        finally:
            await exchange.close()

    async def aclose(self) -> None:
        """Close the connections this model made."""
        if self._owns_transport:
            await self._client.aclose()


def build_model(
    *,
    base_url: str,
    api_key: str | None,
    transport: httpx.AsyncBaseTransport | None,
    dialect: str = "openai_chat",
    first_byte_timeout_s: float = 60,
    idle_timeout_s: float = 60,
    keepalive_timeout_s: float = 900,
    total_timeout_s: float | None = None,
    allowed_hosts: Set[str] | None = None,
    now: Callable[[], datetime] | None = None,
    read_picture: PictureReader | None = None,
) -> HttpModel:
    """Make the client of a model's service; the only place that does.

    Raises: as HttpModel; nothing is connected or looked up here.
    """
    return HttpModel(
        base_url=base_url,
        api_key=api_key,
        transport=transport,
        dialect=dialect,
        first_byte_timeout_s=first_byte_timeout_s,
        idle_timeout_s=idle_timeout_s,
        keepalive_timeout_s=keepalive_timeout_s,
        total_timeout_s=total_timeout_s,
        allowed_hosts=allowed_hosts,
        now=now,
        read_picture=read_picture,
    )


class _LimitPassedError(Exception):
    """Our own limit ended a wait; the text says which."""


class _Exchange:
    """One request and its answer. advance is called until over; close always."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        dialect: Dialect,
        bodies: Bodies,
        endpoint: Endpoint,
        credential: Credential,
        limits: Limits,
        now: Callable[[], datetime] | None,
        request: ModelRequest,
        cancel: CancelSignal,
    ) -> None:
        self.over = False
        self._answered = False
        self._client = client
        self._dialect = dialect
        self._bodies = bodies
        self._url = endpoint.url(dialect.path)
        self._endpoint = endpoint
        self._credential = credential
        self._limits = limits
        self._now = now
        self._request = request
        self._cancel = cancel
        self._answer: AnswerStream = dialect.open_stream()
        self._response: httpx.Response | None = None
        self._body: AsyncIterator[bytes] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._window: asyncio.Timeout | None = None
        self._deadline: float | None = None
        self._without_event_s = 0.0

    async def advance(self) -> tuple[Chunk, ...]:
        """Wait for the next piece of the answer and return its chunks; failures are chunks too."""
        chunks: tuple[Chunk, ...] = ()
        if not self._cancel.cancelled:
            try:
                chunks = await self._next()
            except Exception as error:  # noqa: BLE001 - the promise of HttpModel; what it was stands in the chunk
                if not self._cancel.cancelled:
                    chunks = self._answer.broken(_failure_of(error, f"POST {self._url}"))
        if self._cancel.cancelled:
            chunks = self._answer.aborted(_ABORTED) or _as_aborted(chunks)
        self.over = self._answer.finished
        self._answered = any(isinstance(chunk, Finish) and chunk.failure is None for chunk in chunks)
        return tuple(self._cleaned(chunk) for chunk in chunks)

    async def close(self) -> None:
        """Free the connection: to serve again when the body is read to its end, else by closing it."""
        if self._watcher is not None:
            self._watcher.cancel()
        if self._response is None:
            return
        with contextlib.suppress(Exception):  # the answer is over; whatever happens now, the connection is given up
            try:
                if self._body is not None and self._answered and not self._cancel.cancelled:
                    async with asyncio.timeout(DRAIN_S):
                        while await anext(self._body, None) is not None:
                            pass
            finally:
                await self._response.aclose()

    async def _next(self) -> tuple[Chunk, ...]:
        if self._body is None:
            return await self._open()
        limits = self._limits
        waited_for_event = limits.keepalive_s - self._without_event_s
        clock = asyncio.get_running_loop().time
        began, payloads = clock(), self._answer.payloads
        if waited_for_event < limits.idle_s:
            text = f"no event for {limits.keepalive_s:g} s, only signs of life"
            data = await self._within(waited_for_event, text, anext(self._body, None))
        else:
            data = await self._within(limits.idle_s, f"silent for {limits.idle_s:g} s", anext(self._body, None))
        if data is None:
            return self._answer.end()
        chunks = self._answer.feed(data)
        self._without_event_s = 0.0 if self._answer.payloads != payloads else self._without_event_s + clock() - began
        return chunks

    async def _open(self) -> tuple[Chunk, ...]:
        problem = self._credential.problem(self._endpoint)
        if problem is not None:
            return self._answer.broken(problem)
        key = self._credential.key()
        headers: dict[str, str] = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",  # a compressor may hold a stream back, and recordings stay readable
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            **self._dialect.headers,
            **(self._dialect.authorization(key) if key else {}),
        }
        if self._limits.total_s is not None:
            self._deadline = asyncio.get_running_loop().time() + self._limits.total_s
        self._watcher = asyncio.create_task(self._watch())
        limit_s = self._limits.first_byte_s
        reading = self._bodies.encode(self._request)
        content = await self._within(limit_s, f"no request for {limit_s:g} s, pictures are still being read", reading)
        request = self._client.build_request("POST", self._url, headers=headers, content=content)
        sending = self._client.send(request, stream=True)
        response = await self._within(limit_s, f"no response for {limit_s:g} s", sending)
        self._response = response
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and media_type not in _NO_STREAM:
            self._body = aiter(response.aiter_bytes())
            return ()
        body = await self._error_body(response)
        failure = self._dialect.classify_error(
            response.status_code,
            response.headers,
            self._credential.redact(body.decode("utf-8", "replace")).encode("utf-8"),
            now=self._now() if self._now else None,
        )
        return self._answer.broken(failure)

    async def _error_body(self, response: httpx.Response) -> bytes:
        """As much of an error's body as can be had; its status says enough when the rest does not come."""
        body = bytearray()
        pieces = aiter(response.aiter_bytes())
        with contextlib.suppress(httpx.HTTPError, httpx.StreamError, _LimitPassedError):
            while len(body) < MAX_ERROR_BODY_BYTES:
                data = await self._within(self._limits.idle_s, "", anext(pieces, None))
                if data is None or self._cancel.cancelled:
                    break
                body += data
        return bytes(body[:MAX_ERROR_BODY_BYTES])

    async def _within(self, limit_s: float, text: str, waiting: Awaitable[_T]) -> _T:
        """Wait at most so long, at most to the deadline of the whole answer, and no longer than to a cancel."""
        clock = asyncio.get_running_loop().time
        if self._deadline is not None and self._deadline - clock() < limit_s:
            limit_s = max(0.0, self._deadline - clock())
            text = f"not complete after {self._limits.total_s:g} s"
        try:
            async with asyncio.timeout(limit_s) as self._window:
                return await waiting
        except TimeoutError:
            if self._window is None or not self._window.expired():
                raise
            raise _LimitPassedError(text) from None
        finally:
            self._window = None

    async def _watch(self) -> None:
        """End the pending wait when the caller cancels; advance sees the signal itself."""
        await self._cancel.wait()
        if self._window is not None and not self._window.expired():
            self._window.reschedule(asyncio.get_running_loop().time())

    def _cleaned(self, chunk: Chunk) -> Chunk:
        if not isinstance(chunk, Finish) or chunk.failure is None:
            return chunk
        failure = chunk.failure
        if failure.request_id is None and self._response is not None:
            failure = replace(failure, request_id=request_id_of(self._response.headers))
        return replace(chunk, failure=self._credential.clean(failure))


def _as_aborted(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """An answer that ended in the very moment of the cancel: the caller did not want it any more."""
    kept = tuple(chunk for chunk in chunks if not isinstance(chunk, Finish))
    return (*kept, Finish("aborted", _ABORTED))


def _pool(endpoint: Endpoint) -> httpx.AsyncHTTPTransport:
    if endpoint.scheme == "http":
        # Reading the trusted certificates costs 0.1 s and plain HTTP never asks for one. This context trusts nobody.
        return httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return httpx.AsyncHTTPTransport()


def _failure_of(error: Exception, where: str) -> Failure:
    if isinstance(error, _LimitPassedError):
        return Failure(f"{where}: {error}", "TIMEOUT")
    if isinstance(error, AttachmentError):
        return Failure(f"{error.where}: {error.what}", error.error_code)
    if isinstance(error, HarnessError):
        return Failure(error.what, error.error_code)
    code = "UNKNOWN"
    if isinstance(error, httpx.TimeoutException):
        code = "TIMEOUT"
    elif isinstance(error, httpx.TransportError | httpx.DecodingError | OSError):
        code = "TRANSPORT"
    return Failure(f"{where}: {_cause_chain(error)}", code)


def _cause_chain(error: BaseException) -> str:
    """The error and what it came from, each said once."""
    texts: list[str] = []
    link: BaseException | None = error
    for _ in range(8):
        if link is None:
            break
        text = _text_of(link)
        if not any(text in said for said in texts):
            texts.append(text)
        if isinstance(link, BaseExceptionGroup):
            link = link.exceptions[0]
        else:
            link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return " <- ".join(texts)


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception's own text may be code of a stranger
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
