"""The sealed way to a provider: one host of the table, verified TLS, no proxy, no recorder, and a witness of the wire.

Room: `lanes.channels` opens it in the lane `real`. What it notes are facts of the connection; it judges none of them.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import cast

import httpx

from lanes.environment import override_names
from lanes.errors import GuardError
from lanes.policy import MODULES_REFUSED_WITH_KEY
from lanes.providers import Provider, verified_context
from lanes.record import Json, JsonObject, digest_bytes, digest_json
from lanes.seal import seal, tls_facts
from lanes.spoken import Spoken, parse_object, read_spoken


@dataclass(slots=True)
class _Exchange:
    """One request and its answer, while they last."""

    body: Mapping[str, Json]
    wire: dict[str, Json]
    status: int
    sent_s: float
    first_byte_s: float | None = None
    ended_s: float | None = None
    is_finished: bool = False
    received: bytearray = field(default_factory=bytearray)

    @property
    def spoken(self) -> Spoken:
        return read_spoken(bytes(self.received))

    @property
    def is_root(self) -> bool:
        """Whether it began a conversation: nothing an assistant said was sent along."""
        messages = self.body.get("messages")
        sent = messages if isinstance(messages, list) else []
        return not any(isinstance(each, Mapping) and each.get("role") == "assistant" for each in sent)


class SealedTransport(httpx.AsyncBaseTransport):
    """An httpx transport to one provider, and what came over its wire.

    Limits: one observation; a client may close it, and another may go on. An inner transport is for tests of this
    room; what it answers says so.
    Raises: GuardError, before a byte is sent, for a request to any other place, and when something on the way was put
    in the place of another thing.
    """

    def __init__(self, provider: Provider, *, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self.provider = provider
        self._context = verified_context()
        self._inner = inner or httpx.AsyncHTTPTransport(verify=self._context, trust_env=False, http2=False, retries=0)
        self._find_breaks = seal(self._inner, self._context)
        self._in_the_way: set[str] = set() if inner is None else {"another transport inside the channel"}
        self._exchanges: list[_Exchange] = []
        self._challenge: str | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """Take what this class itself keeps; what it says and does is not for a test to set."""
        if hasattr(type(self), name) or not (name == "provider" or name.startswith("_")):
            raise AttributeError(f"{name} of a sealed transport is not for others to set")
        super().__setattr__(name, value)

    def new_challenge(self) -> str:
        """Make this run's token; planted in a file, it can come back only from who had that file read."""
        self._challenge = secrets.token_hex(8)
        return self._challenge

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request to the provider and watch how it is answered."""
        self._check(request)
        self._check_seal()
        body = parse_object(await request.aread())
        sent_s = time.monotonic()
        response = await self._inner.handle_async_request(request)
        self._in_the_way.update(self._find_breaks(self._inner))
        wire = _wire_facts(request, response, self._context)
        exchange = _Exchange(body, wire, response.status_code, sent_s)
        self._exchanges.append(exchange)
        response.stream = _WatchedStream(cast("httpx.AsyncByteStream", response.stream), exchange)
        return response

    async def aclose(self) -> None:
        """Close what is open; the next request opens anew."""
        await self._inner.aclose()

    @property
    def notes(self) -> tuple[dict[str, Json], ...]:
        """One answer note for each exchange."""
        return tuple(self._note(exchange) for exchange in self._exchanges)

    def model_facts(self) -> JsonObject:
        """Which model was asked for and where, and which one said that it answered."""
        first = self._exchanges[0] if self._exchanges else None
        return {
            "provider": self.provider.name,
            "requested": first.body.get("model") if first else None,
            "reported": next((each.spoken.model for each in self._exchanges if each.spoken.model), None),
            "endpoint": first.wire["endpoint"] if first else None,
            "private": self.provider.peers == "private",
        }

    def proof_facts(self) -> JsonObject:
        """The facts of the whole conversation that the rules of admission ask for."""
        first = self._exchanges[0] if self._exchanges else None
        wire: Mapping[str, Json] = first.wire if first else {}
        return {
            **{name: wire.get(name) for name in ("peer_ip", "peer_scope", "tls", "proxy_used", "date_skew_ms")},
            "provider_ids": [_id_digest(each.spoken.id) for each in self._exchanges if each.spoken.id],
            "ttfb_ms": None if first is None else _since(first, first.first_byte_s),
            "override_variables": list(override_names(os.environ)),
            "recorders": sorted({*self._in_the_way, *(sys.modules.keys() & {*MODULES_REFUSED_WITH_KEY})}),
            "root_conversations": sum(1 for each in self._exchanges if each.is_root and each.is_finished),
            "nonce": self._nonce(),
            "observed_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def _check(self, request: httpx.Request) -> None:
        place = request.url
        allowed = place.scheme == "https" or self.provider.peers == "private"
        if not allowed or place.host != self.provider.host or not place.path.startswith(self.provider.path_prefix):
            message = (
                f"a request to {place.scheme}://{place.host}{place.path} is not for provider {self.provider.name!r}"
            )
            raise GuardError(message, expected=f"{self.provider.base_url}, path {self.provider.path_prefix}…")

    def _check_seal(self) -> None:
        breaks = self._find_breaks(self._inner)
        self._in_the_way.update(breaks)
        if breaks:
            message = f"the live channel was opened: {', '.join(breaks)} is not what it was"
            raise GuardError(message, fix="ask the model through the channel as it is given", code="CHANNEL_OPENED")

    def _note(self, exchange: _Exchange) -> dict[str, Json]:
        spoken = exchange.spoken
        pattern = self.provider.id_pattern
        return {
            "channel": "live",
            "class": "live",
            "request_digest": digest_json(exchange.body),
            "answer_digest": digest_bytes(bytes(exchange.received)),
            "status": exchange.status,
            "finished": exchange.is_finished and spoken.is_whole,
            "reported_model": spoken.model,
            "usage": spoken.usage,
            "provider_id": _id_digest(spoken.id) if spoken.id else None,
            "provider_id_matches": bool(spoken.id and re.fullmatch(pattern, spoken.id)),
            "ttfb_ms": _since(exchange, exchange.first_byte_s),
            "total_ms": _since(exchange, exchange.ended_s),
            "wire": exchange.wire,
        }

    def _nonce(self) -> JsonObject | None:
        if self._challenge is None:
            return None
        said = any(self._challenge in exchange.spoken.text for exchange in self._exchanges)
        return {"challenge": digest_bytes(self._challenge.encode()), "verified": said}


class _WatchedStream(httpx.AsyncByteStream):
    """The body of an answer, noted while it passes."""

    def __init__(self, source: httpx.AsyncByteStream, exchange: _Exchange) -> None:
        self._source = source
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._source:
            if self._exchange.first_byte_s is None:
                self._exchange.first_byte_s = time.monotonic()
            self._exchange.received += piece
            yield piece
        self._exchange.is_finished = True
        self._exchange.ended_s = time.monotonic()

    async def aclose(self) -> None:
        if self._exchange.ended_s is None:  # a client may stop reading at the end mark; what it had by then is whole
            self._exchange.ended_s = time.monotonic()
            self._exchange.is_finished = self._exchange.spoken.is_whole
        await self._source.aclose()


def _wire_facts(request: httpx.Request, response: httpx.Response, context: ssl.SSLContext) -> dict[str, Json]:
    """What only an answer from a socket can show; a canned one has no stream and shows nothing."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    tls = stream.get_extra_info("ssl_object") if stream is not None else None
    peer_ip = str(peer[0]) if peer else None
    return {
        "stream": stream is not None,
        "endpoint": {
            "scheme": request.url.scheme,
            "host": request.url.host,
            "port": request.url.port or (443 if request.url.scheme == "https" else 80),
            "path": request.url.path,
        },
        "peer_ip": peer_ip,
        "peer_scope": _scope(peer_ip),
        "tls": tls_facts(tls, context, request.url.host),
        "proxy_used": False,  # the transport was built without one and asks no environment
        "date_skew_ms": _date_skew_ms(response.headers.get("date")),
    }


def _scope(peer_ip: str | None) -> str | None:
    if peer_ip is None:
        return None
    address = ip_address(peer_ip)
    if address.is_loopback:
        return "loopback"
    return "global" if address.is_global else "private"


def _date_skew_ms(date: str | None) -> int | None:
    if date is None:
        return None
    try:
        told = parsedate_to_datetime(date)
    except ValueError:
        return None
    return round((told - datetime.now(UTC)).total_seconds() * 1000)


def _since(exchange: _Exchange, moment_s: float | None) -> int | None:
    return None if moment_s is None else round((moment_s - exchange.sent_s) * 1000)


def _id_digest(provider_id: str) -> str:
    return digest_bytes(provider_id.encode("utf-8", "surrogatepass"))
