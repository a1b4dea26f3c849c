"""Passing requests on to the provider, piece by piece, and noting what came.

Room: httpx; the proxy comes in, and tests with a transport of their own. Nothing is kept anywhere but in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from mock_provider.errors import UsageError
from mock_provider.recording.cleaning import is_loopback
from mock_provider.recording.exchanges import Seen

# What belongs to one connection and is not passed on (RFC 9110, section 7.6.1), and what is said anew.
_OWN = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OWN_OF_REQUESTS = _OWN | {"accept-encoding"}


@dataclass(frozen=True, slots=True)
class Begun:
    """An answer that has begun. Shape: headers are those to pass on; iterating pieces reads it to its end."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    length: int | None
    pieces: AsyncIterator[bytes]


def check_upstream(url: str) -> str:
    """The provider's address without a slash at its end. Raises: UsageError for one that is no address."""
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        is_address = parts.port != 0 and bool(parts.hostname) and parts.scheme in ("http", "https")
    except (ValueError, httpx.InvalidURL):
        raise _no_address(url) from None
    if not is_address or parts.query or parts.fragment or any(map(str.isspace, url)):
        raise _no_address(url)
    if parts.username or parts.password:
        raise UsageError("the address holds a password", where="--upstream", fix="send it in a header")
    return url.rstrip("/")


def _no_address(url: str) -> UsageError:
    return UsageError(f"'{url}' is no address", where="--upstream", expected="such as https://api.openai.com")


class Forwarder:
    """Sends requests to one provider.

    Shape: seen are all exchanges, in order of arrival; now_ms is a clock that only goes forward, offsets are counted
    from the request. Limits: asks for unpacked answers, because packed ones can be neither searched nor cut.
    """

    def __init__(
        self, upstream: str, *, now_ms: Callable[[], int], transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.upstream = check_upstream(upstream)
        self.host = urlsplit(self.upstream).hostname or ""
        self.seen: list[Seen] = []
        self._now_ms = now_ms
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(None, connect=30),  # how long an answer may take is the client's affair
            trust_env=not is_loopback(self.host),
            limits=httpx.Limits(max_connections=None),
        )

    async def aclose(self) -> None:
        """Close every connection to the provider."""
        await self._client.aclose()

    def _url(self, target: str) -> str:
        """The provider's address for a path; a version that both have stands in it once."""
        base = urlsplit(self.upstream).path
        if base and target.startswith(f"{base}/"):
            return self.upstream.removesuffix(base) + target
        return self.upstream + target

    async def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Begun:
        """Send one request. Raises: httpx.HTTPError when there is no answer, httpx.InvalidURL when it has no place."""
        seen = Seen(len(self.seen) + 1, method, target, headers, body)
        self.seen.append(seen)
        passed_on = [(name, value) for name, value in headers.items() if name not in _OWN_OF_REQUESTS]
        started = self._now_ms()
        try:
            request = self._client.build_request(
                method, self._url(target), headers=[*passed_on, ("accept-encoding", "identity")], content=body
            )
            response = await self._client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            seen.failure = type(error).__name__
            raise
        seen.status, seen.reason = response.status_code, response.reason_phrase
        seen.answer_headers = response.headers.multi_items()
        length = response.headers.get("content-length", "")
        return Begun(
            response.status_code,
            response.reason_phrase,
            tuple((name, value) for name, value in seen.answer_headers if name.lower() not in _OWN),
            int(length) if length.isascii() and length.isdigit() else None,
            self._pieces(response, seen, started),
        )

    async def _pieces(self, response: httpx.Response, seen: Seen, started: int) -> AsyncIterator[bytes]:
        try:
            async for piece in response.aiter_raw():
                seen.pieces.append((self._now_ms() - started, piece))
                yield piece
            seen.is_complete = True
        except httpx.HTTPError as error:
            seen.failure = type(error).__name__
            raise
        finally:
            await response.aclose()
