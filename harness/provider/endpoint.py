"""Where a model's service is, and whether this run may talk to it.

Room: pure; imports errors only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Set
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.errors import UsageError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A checked base URL, taken apart. host is lower case, an IPv6 address without its brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def is_loopback(self) -> bool:
        """Whether the address lies on this machine by its spelling alone, without a name look-up."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def host_and_port(self) -> str:
        """Host and port as they stand in a URL, the port always written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def url(self, path: str) -> str:
        """The URL of a path below this endpoint; built from the checked parts, so that nobody reads it otherwise."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}{path}"


def parse_endpoint(base_url: str) -> Endpoint:
    """Take a base URL apart.

    Raises: UsageError [BASE_URL]; the message never repeats a user name or password found in it.
    """
    text = base_url.strip()
    if any(character <= " " or character == "\x7f" for character in text):
        raise _refusal("it holds white space or control characters")  # the URL parser drops some of them silently
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise _refusal(f"it cannot be read: {error}") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise _refusal(f"its scheme is {parts.scheme!r}" if parts.scheme else "it has no scheme")
    if parts.username is not None or parts.password is not None:
        raise _refusal("it holds a user name or password", fix="give the key by itself, never inside the URL")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise _refusal("it holds a query or a fragment")
    if not _is_host(host):
        raise _refusal(f"its host is {host!r}")
    if port == 0 or not _PATH.fullmatch(parts.path) or "/../" in f"{parts.path}/":
        raise _refusal("its port or path is not usable")
    return Endpoint(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"))


def check_allowed(endpoint: Endpoint, allowed_hosts: Set[str] | None) -> None:
    """Refuse an endpoint that is not named in allowed_hosts; None allows every host.

    Shape: an entry is a host, or host:port to pin the port too; letter case is ignored and nothing else is.
    Raises: UsageError [ENDPOINT_REFUSED].
    """
    if allowed_hosts is None:
        return
    names = {name.strip().lower() for name in allowed_hosts}
    bracketed = endpoint.host_and_port.rpartition(":")[0]
    if names & {endpoint.host, bracketed, endpoint.host_and_port}:
        return
    raise UsageError(
        f"the model endpoint {endpoint.host_and_port} is not allowed in this run",
        where="HARNESS_ALLOWED_HOSTS",
        expected=f"one of {', '.join(sorted(names)) or '(no host at all)'}",
        fix="point the base URL at an allowed host, or run where this host is allowed",
        code="ENDPOINT_REFUSED",
    )


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            return ipaddress.ip_address(host).version == 6 and "%" not in host
        except ValueError:
            return False
    return _HOST_NAME.fullmatch(host) is not None


def _refusal(what: str, *, fix: str = "") -> UsageError:
    return UsageError(
        f"the base URL is not usable: {what}",
        where="model endpoint",
        expected="http:// or https://, an ASCII host, an optional port and path, as in https://api.deepseek.com/v1",
        fix=fix,
        code="BASE_URL",
    )
