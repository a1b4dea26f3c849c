"""The seal on the live channel: whether an answer came the way it should have, and what its TLS connection really was.

Room: the sealed transport comes in. The plugin loads it in the lane `real` before any file of the suite, so that what
it takes down is what was there before a test could change it.
"""

from __future__ import annotations

import _ssl
import ssl
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import httpcore
import httpx

from lanes.providers import authorities_digest
from lanes.record import JsonObject, digest_bytes

# What every live answer comes through, outermost first. A stand-in for one of them could make an answer up.
_WAY: tuple[tuple[type, str], ...] = (
    (httpx.AsyncHTTPTransport, "handle_async_request"),
    (httpcore.AsyncConnectionPool, "handle_async_request"),
    (httpcore.AsyncHTTPProxy, "create_connection"),
    (httpcore.AsyncHTTPConnection, "handle_async_request"),
    (httpcore.AsyncHTTP11Connection, "handle_async_request"),
    (httpcore.AnyIOBackend, "connect_tcp"),
    (ssl.SSLContext, "wrap_bio"),
    (ssl.SSLObject, "do_handshake"),
    (ssl.SSLObject, "read"),
)


def _part(owner: type, name: str) -> tuple[object, object]:
    found = vars(owner)[name]
    return found, getattr(found, "__code__", None)


_TAKEN_DOWN = tuple(_part(owner, name) for owner, name in _WAY)


def replaced_parts() -> tuple[str, ...]:
    """Return the names of the parts of the way that are not what they were when this room was loaded."""
    return tuple(
        f"{owner.__module__.partition('.')[0]}.{owner.__name__}.{name}"
        for (owner, name), before in zip(_WAY, _TAKEN_DOWN, strict=True)
        if any(now is not then for now, then in zip(_part(owner, name), before, strict=True))
    )


def seal(inner: httpx.AsyncBaseTransport, context: ssl.SSLContext) -> Callable[[object], tuple[str, ...]]:
    """Remember a transport as it was made; the answer says what is other about it now, and on the way it goes.

    Shape: the answer is asked with the transport that is about to be used.
    """
    pool = getattr(inner, "_pool", None)
    own = frozenset(vars(inner))

    def find_breaks(used: object) -> tuple[str, ...]:
        if used is not inner:
            return ("the transport inside the channel",)
        breaks = list(replaced_parts())
        breaks += [f"the {name} of the transport" for name in vars(inner) if name not in own]
        if getattr(inner, "_pool", None) is not pool:
            breaks.append("the connections of the transport")
        elif isinstance(pool, httpcore.AsyncConnectionPool):
            breaks += _pool_breaks(pool, context)
        return tuple(breaks)

    return find_breaks


class Peers:
    """Who stood at the other end of each connection, asked when it was made; a reset connection knows it no more.

    Source: httpcore, "Request extensions", trace: the events connect_tcp and start_tls, whose value is the connection.
    """

    def __init__(self) -> None:
        self._found: MutableMapping[object, str] = WeakKeyDictionary()

    def watch(self, request: httpx.Request) -> None:
        """Have the connection that is made for a request, if one is, tell its other end."""
        others: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None = request.extensions.get("trace")

        async def trace(name: str, info: Mapping[str, Any]) -> None:
            if name.endswith((".connect_tcp.complete", ".start_tls.complete")):
                self.ip_of(info["return_value"])
            if others is not None:
                await others(name, info)

        request.extensions = {**request.extensions, "trace": trace}

    def ip_of(self, stream: Any) -> str | None:
        """The address at the other end; None where there is no connection, or none that ever told."""
        if stream is None:
            return None
        peer = stream.get_extra_info("server_addr")
        if peer:
            self._found.setdefault(stream, str(peer[0]))
        return self._found.get(stream)


def tls_facts(tls: object, context: ssl.SSLContext, host: str) -> JsonObject | None:
    """What a connection shows of its TLS; None when there was none, or not one that this context made.

    Shape: name and chain are those of the certificates that were shown, and not only what the context was set to;
    `trust_store` is the digest of the authorities that this very context believes.
    Source: RFC 9110, section 4.3.4, for the name; CPython, module ssl.
    """
    raw: Any = getattr(tls, "_sslobj", None)  # the C object: what stands around it can be made to say anything
    if type(tls) not in {ssl.SSLObject, ssl.SSLSocket} or type(raw).__module__ != "_ssl" or raw.context is not context:
        return None
    told: Mapping[str, Any] = raw.getpeercert(False) or {}
    certificate: bytes | None = raw.getpeercert(True)
    authorities: Sequence[bytes] = _ssl._SSLContext.get_ca_certs(context, True)  # noqa: SLF001 - not the attribute of the object, which can be set
    chain = [each.public_bytes(_ssl.ENCODING_DER) for each in raw.get_verified_chain() or ()]
    issuer = ", ".join(f"{name}={value}" for part in told.get("issuer", ()) for name, value in part)
    return {
        "version": raw.version(),
        "cert": digest_bytes(certificate) if certificate else None,
        "issuer": issuer,
        "name_verified": context.check_hostname and _names(told, host),
        "chain_verified": context.verify_mode == ssl.CERT_REQUIRED and bool(chain) and chain[-1] in authorities,
        "trust_store": authorities_digest(authorities),
    }


def _pool_breaks(pool: httpcore.AsyncConnectionPool, context: ssl.SSLContext) -> list[str]:
    facts = vars(pool)
    breaks = [f"the {name} of the connections" for name in facts if not name.startswith("_")]
    if facts.get("_ssl_context") is not context:
        breaks.append("the TLS context of the connections")
    if type(facts.get("_network_backend")) is not type(httpcore.AsyncConnectionPool()._network_backend):  # noqa: SLF001 - the class that httpcore takes has no public name
        breaks.append("the network of the connections")
    return breaks


def _names(told: Mapping[str, Any], host: str) -> bool:
    """Whether a certificate is for a host; a star stands for the first label alone."""
    wanted = host.lower()
    for kind, value in told.get("subjectAltName", ()):
        name = str(value).lower()
        if kind == "DNS" and (name == wanted or (name.startswith("*.") and name[1:] == "." + wanted.partition(".")[2])):
            return True
        if kind == "IP Address" and name == wanted:
            return True
    return False
