"""The committed table of who may answer in the lane `real`.

Room: the runner, the live channel and the admission of live records may come in. It knows names of key variables only.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import certifi

from lanes.errors import UsageError

TABLE = Path(__file__).with_name("providers.toml")
_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\$\{.*\}|x{3,}|\.{3,}|sk-(x+|\.+)|none|null|todo|unset|placeholder|changeme|change-me|dummy|your[-_ ].*|"
    r"no-key-in-this-lane"
)
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:]+")  # a name, or an address of a private endpoint
_FORMS = (
    ("name", re.compile(r"[a-z][a-z0-9_-]*"), "small letters, digits, '_' and '-'"),
    ("peers", re.compile(r"global|private"), "global or private"),
    ("path_prefix", re.compile(r"/[!-~]*"), "a path that starts with '/'"),
    ("dialect", re.compile(r"[a-z][a-z0-9_]*"), "the name of a dialect, as openai_chat"),
    ("key", re.compile(r"[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET)[A-Z0-9_]*"), "the name of a variable, as ACME_API_KEY"),
    ("model", re.compile(r"[!-~]+"), "the name of a model"),
)


@dataclass(frozen=True, slots=True)
class Provider:
    """One service that may answer, and how its answers are recognised.

    Shape: `key` is the name of the variable, never its value; `id_pattern` is empty where the provider gives no ids.
    """

    name: str
    base_url: str
    path_prefix: str
    dialect: str
    key: str
    model: str
    id_pattern: str
    sends_date: bool
    peers: Literal["global", "private"]

    @property
    def host(self) -> str:
        """The one host that requests to this provider may go to."""
        return urlsplit(self.base_url).hostname or ""


def load_providers(path: Path = TABLE) -> tuple[Provider, ...]:
    """Load and check the provider table.

    Raises: UsageError that names the provider and the field.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # the last for what is nested too deep to be a table
        message = f"the provider table cannot be read: {error}"
        raise UsageError(message, where=path.name, code="PROVIDERS") from error
    if not document:
        raise UsageError("no provider is listed", where=path.name, expected="one table or more", code="PROVIDERS")
    return tuple(_provider(path.name, name, row) for name, row in document.items())


def has_key(environ: Mapping[str, str], provider: Provider) -> bool:
    """Whether the environment holds a key for the provider; blanks and placeholders are no key."""
    value = environ.get(provider.key, "").strip()
    return bool(value) and _PLACEHOLDER.fullmatch(value) is None


def verified_context() -> ssl.SSLContext:
    """The TLS settings of every request to a provider: the locked authorities and no other, chain and name verified."""
    return ssl.create_default_context(cafile=certifi.where())


def trust_store_digest() -> str:
    """The digest of the certificate authorities that a live answer must be verified against; they come with a lock."""
    return authorities_digest(verified_context().get_ca_certs(binary_form=True))


def authorities_digest(authorities: Iterable[bytes]) -> str:
    """The digest of some certificate authorities in their binary form, whatever their order."""
    digest = hashlib.sha256()
    for each in sorted(set(authorities)):
        digest.update(hashlib.sha256(each).digest())
    return "sha256:" + digest.hexdigest()


def _provider(file: str, name: str, row: object) -> Provider:
    where = f"{file}, [{name}]"
    if not isinstance(row, dict):
        raise UsageError("a provider is a table of fields", where=where, code="PROVIDERS")
    wanted = {field.name for field in fields(Provider)} - {"name"}
    if row.keys() != wanted:
        odd = ", ".join(sorted(row.keys() ^ wanted))
        message = f"fields missing or unknown: {odd}"
        raise UsageError(message, where=where, expected=", ".join(sorted(wanted)), code="PROVIDERS")
    for field, value in row.items():
        if not isinstance(value, bool if field == "sends_date" else str):
            raise UsageError(
                f"{field} is {value!r}", where=where, expected="the type of its neighbours", code="PROVIDERS"
            )
    provider = Provider(name=name, **row)
    for field, found, expected in _odd_values(provider):
        raise UsageError(f"{field} is {found!r:.200}", where=where, expected=expected, code="PROVIDERS")
    return provider


def _odd_values(provider: Provider) -> Iterator[tuple[str, str, str]]:
    """Each value that cannot be meant: the field, what it holds, and what it may hold."""
    for field, pattern, expected in _FORMS:
        if not pattern.fullmatch(found := getattr(provider, field)):
            yield field, found, expected
    if not _is_address(provider.base_url, only_tls=provider.peers == "global"):
        yield "base_url", provider.base_url, "https://HOST/…, without a port, a name or a query"
    try:
        re.compile(provider.id_pattern)
    except (re.error, RecursionError) as error:
        yield "id_pattern", provider.id_pattern, f"a regular expression; {error}"


def _is_address(text: str, *, only_tls: bool) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # brackets or a port that are none
        return False
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment) and "@" not in parts.netloc
    scheme_fits = parts.scheme == "https" or (parts.scheme == "http" and not only_tls)
    return is_plain and scheme_fits and bool(_HOST.fullmatch(parts.hostname or "")) and (port is None or not only_tls)
