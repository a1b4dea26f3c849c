"""The sealed way to a provider: one host of the table, verified TLS, no recorder, and a witness of the wire.

Room: `lanes.channels` opens it in the lane `real`. What it notes are facts of the connection; it judges none of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import cast

import httpx

from lanes.drift import Answer, shape_note
from lanes.environment import override_names
from lanes.errors import GuardError
from lanes.ledger import BudgetError, Purse
from lanes.policy import MODULES_REFUSED_WITH_KEY
from lanes.prices import cost_facts
from lanes.providers import Provider, verified_context
from lanes.record import Json, JsonObject, digest_bytes, digest_json
from lanes.seal import Peers, seal, tls_facts
from lanes.spoken import Spoken, parse_object, read_spoken
from lanes.trouble import Trouble, trouble_of_failure, trouble_of_status

FIRST_ERROR_STATUS = 400
LONG_WAIT_S = 10.0  # a client that gives up after this long was not answered; before, it was told to stop
_OUT_LIMITS = ("max_completion_tokens", "max_tokens")  # how a request of either dialect says the most it wants back


@dataclass(slots=True)
class _Exchange:
    """One request and its answer, while they last."""

    body: Mapping[str, Json]
    wire: dict[str, Json]
    status: int
    sent_s: float
    cache_headers: tuple[str, ...] = ()
    end: Callable[[_Exchange], None] | None = None
    failure: Trouble | None = None
    first_byte_s: float | None = None
    ended_s: float | None = None
    is_finished: bool = False
    received: bytearray = field(default_factory=bytearray)
    header_names: tuple[str, ...] = ()

    @property
    def spoken(self) -> Spoken:
        return read_spoken(bytes(self.received))

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))

    def close(self, *, is_finished: bool) -> None:
        """Say once that nothing more will come."""
        if self.ended_s is not None:
            return
        self.ended_s, self.is_finished = time.monotonic(), is_finished
        if self.end is not None:
            self.end(self)

    @property
    def is_root(self) -> bool:
        """Whether it began a conversation: nothing an assistant said was sent along."""
        messages = self.body.get("messages")
        sent = messages if isinstance(messages, list) else []
        return not any(isinstance(each, Mapping) and each.get("role") == "assistant" for each in sent)


class SealedTransport(httpx.AsyncBaseTransport):
    """An httpx transport to one provider, and what came over its wire.

    Shape: purse is what the conversation may cost, None for no limit; tell hears after each exchange what trouble it
    met, None for none.
    Limits: one observation; a client may close it, and another may go on. An inner transport is for tests of this
    room; what it answers says so.
    Raises: GuardError, before a byte is sent, for a request to any other place, and when something on the way was put
    in the place of another thing; BudgetError, before a byte is sent, for one that does not fit into the purse.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        purse: Purse | None = None,
        tell: Callable[[Trouble | None], None] | None = None,
        inner: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.provider = provider
        self._purse = purse
        self._tell = tell or _tell_nobody
        self._context = verified_context(provider)
        tunnel = f"http://{provider.tunnel}" if provider.tunnel else None
        self._inner = inner or httpx.AsyncHTTPTransport(
            verify=self._context, trust_env=False, http2=False, retries=0, proxy=tunnel
        )
        self._find_breaks = seal(self._inner, self._context)
        self._in_the_way: set[str] = set() if inner is None else {"another transport inside the channel"}
        self._exchanges: list[_Exchange] = []
        self._peers = Peers()
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
        sent = await request.aread()
        body = parse_object(sent)
        reserved = self._reserve(body, len(sent))
        sent_s = time.monotonic()
        self._peers.watch(request)
        try:
            response = await self._inner.handle_async_request(request)
        except httpx.TransportError as error:
            self._tell(trouble_of_failure(self.provider.host, error))
            raise
        except asyncio.CancelledError:
            waited_s = time.monotonic() - sent_s
            if waited_s >= LONG_WAIT_S:
                self._tell(Trouble("outage", f"{self.provider.host} had not answered after {waited_s:.0f} s"))
            raise
        self._in_the_way.update(self._find_breaks(self._inner))
        wire = _wire_facts(request, response, self._context, self._peers, self.provider)
        cached = _cache_headers(response.headers)
        exchange = _Exchange(body, wire, response.status_code, sent_s, cached, self._ending(reserved))
        exchange.header_names = tuple(response.headers)
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

    @property
    def said(self) -> str:
        """The words of every answer so far, one after the other."""
        return "".join(each.spoken.text for each in self._exchanges)

    def model_facts(self) -> JsonObject:
        """Which model was asked for and where, and which one said that it answered."""
        if not self._exchanges:
            return unasked_model(self.provider)
        first = self._exchanges[0]
        return {
            **unasked_model(self.provider),
            "requested": first.body.get("model"),
            "reported": next((each.spoken.model for each in self._exchanges if each.spoken.model), None),
            "endpoint": first.wire["endpoint"],
        }

    def proof_facts(self) -> JsonObject:
        """The facts of the whole conversation that the rules of admission ask for."""
        first = self._exchanges[0] if self._exchanges else None
        wire: Mapping[str, Json] = first.wire if first else {}
        return {
            **{name: wire.get(name) for name in ("peer_ip", "peer_scope", "tls", "proxy_used", "date_skew_ms")},
            **({"tunnel": self.provider.tunnel} if self.provider.tunnel else {}),
            "provider_ids": [_id_digest(each.spoken.id) for each in self._exchanges if each.spoken.id],
            "ttfb_ms": None if first is None else _since(first, first.first_byte_s),
            "override_variables": list(override_names(os.environ)),
            "recorders": sorted({*self._in_the_way, *(sys.modules.keys() & {*MODULES_REFUSED_WITH_KEY})}),
            "root_conversations": sum(1 for each in self._exchanges if each.is_root and each.is_finished),
            "nonce": self._nonce(),
            "cache_headers": sorted({name for each in self._exchanges for name in each.cache_headers}),
            "observed_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def cost_facts(self) -> JsonObject:
        """What the conversation has cost so far: an estimate by the table's prices; an error answer costs nothing."""
        model = self._exchanges[0].model if self._exchanges else self.provider.model
        usages = [each.spoken.usage for each in self._exchanges if each.status < FIRST_ERROR_STATUS]
        table = f"{self.provider.name} {self.provider.priced_on}".strip()
        return cost_facts(usages, self.provider.price_of(model), table)

    def _reserve(self, body: Mapping[str, Json], sent_bytes: int) -> str | None:
        if self._purse is None:
            return None
        asked = [each for name in _OUT_LIMITS if isinstance(each := body.get(name), int)]
        try:
            return self._purse.reserve(str(body.get("model", "")), sent_bytes, asked[0] if asked else None)
        except BudgetError as error:
            self._tell(Trouble("budget-midway", error.what))
            raise

    def _ending(self, reserved: str | None) -> Callable[[_Exchange], None]:
        def end(exchange: _Exchange) -> None:
            self._tell(exchange.failure or trouble_of_status(exchange.status, bytes(exchange.received)))
            # what an error or a cut answer costs is not told: the worst case that was reserved for it stays spent
            if reserved is not None and self._purse is not None and exchange.status < FIRST_ERROR_STATUS:
                spoken = exchange.spoken
                if spoken.is_whole or spoken.usage is not None:
                    self._purse.settle(reserved, exchange.model, spoken.usage)

        return end

    def _check(self, request: httpx.Request) -> None:
        place, provider = request.url, self.provider
        allowed = place.scheme == "https" or provider.peers == "private"
        port = place.port or (443 if place.scheme == "https" else 80)
        here = (place.host, port) == (provider.host, provider.port)
        if not allowed or not here or not place.path.startswith(provider.path_prefix):
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
            "shape": _shape(exchange) if exchange.is_finished else None,
        }

    def _nonce(self) -> JsonObject | None:
        if self._challenge is None:
            return None
        said = any(self._challenge in exchange.spoken.text for exchange in self._exchanges)
        return {"challenge": digest_bytes(self._challenge.encode()), "verified": said}


def unasked_model(provider: Provider) -> JsonObject:
    """What is known of a model that nobody has asked yet: whose it would be."""
    private = provider.peers == "private"
    return {"provider": provider.name, "requested": None, "reported": None, "endpoint": None, "private": private}


def _shape(exchange: _Exchange) -> JsonObject:
    """What the answer looks like, without any of its values; `lanes drift` holds it against what is expected."""
    body = exchange.received.decode("utf-8", "replace")
    return shape_note(Answer(exchange.status, exchange.header_names, body))


class _WatchedStream(httpx.AsyncByteStream):
    """The body of an answer, noted while it passes."""

    def __init__(self, source: httpx.AsyncByteStream, exchange: _Exchange) -> None:
        self._source = source
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._source:
                if self._exchange.first_byte_s is None:
                    self._exchange.first_byte_s = time.monotonic()
                self._exchange.received += piece
                yield piece
        except httpx.TransportError as error:
            self._exchange.failure = trouble_of_failure("the provider, in the middle of its answer,", error)
            raise
        self._exchange.close(is_finished=True)

    async def aclose(self) -> None:
        # a client may stop reading at the end mark; what it had by then is whole
        self._exchange.close(is_finished=self._exchange.spoken.is_whole)
        await self._source.aclose()


def _tell_nobody(_trouble: Trouble | None) -> None:
    """Where nobody asked to be told."""


def _wire_facts(
    request: httpx.Request, response: httpx.Response, context: ssl.SSLContext, peers: Peers, provider: Provider
) -> dict[str, Json]:
    """What only an answer from a socket can show; a canned one has no stream and shows nothing."""
    stream = response.extensions.get("network_stream")
    tls = stream.get_extra_info("ssl_object") if stream is not None else None
    peer_ip = peers.ip_of(stream)
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
        "proxy_used": bool(provider.tunnel),  # the transport has the one of the table or none, and asks no environment
        "date_skew_ms": _date_skew_ms(response.headers.get("date")),
    }


def _cache_headers(headers: httpx.Headers) -> tuple[str, ...]:
    """The headers that say that a shared cache may have answered in the provider's place."""
    said = [name for name in ("x-cache", "cf-cache-status") if "hit" in headers.get(name, "").lower()]
    return (*(("age",) if "age" in headers else ()), *said)


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
