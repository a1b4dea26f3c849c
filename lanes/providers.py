"""The committed table of who may answer in the lane `real`.

Room: the runner, the live channel and the admission of live records may come in. It knows names of key variables only.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
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
    except (OSError, ValueError) as error:
        message = f"the provider table cannot be read: {error}"
        raise UsageError(message, where=path.name, code="PROVIDERS") from error
    return tuple(_provider(path.name, name, row) for name, row in document.items())


def has_key(environ: Mapping[str, str], provider: Provider) -> bool:
    """Whether the environment holds a key for the provider; blanks and placeholders are no key."""
    value = environ.get(provider.key, "").strip()
    return bool(value) and _PLACEHOLDER.fullmatch(value) is None


def trust_store_digest() -> str:
    """The digest of the certificate authorities that a live answer must be verified against; they come with a lock."""
    return "sha256:" + hashlib.sha256(Path(certifi.where()).read_bytes()).hexdigest()


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
    if provider.peers not in {"global", "private"}:
        raise UsageError(f"peers is {provider.peers!r}", where=where, expected="global or private", code="PROVIDERS")
    if not provider.host or (provider.peers == "global" and not provider.base_url.startswith("https://")):
        raise UsageError(f"base_url is {provider.base_url!r}", where=where, expected="https://HOST/…", code="PROVIDERS")
    return provider
