"""The committed table of who may answer in the lane `real`.

Room: the runner, the live channel and the admission of live records may come in. It knows names of key variables only.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

import certifi

from lanes.errors import UsageError
from lanes.prices import Price

TABLE = Path(__file__).with_name("providers.toml")
DIALECTS = ("openai_chat", "anthropic_messages")  # those whose answers the witness of the wire can read
FRESH_DAYS = 30  # how old a recording may be without a word; a row may say less and never more
STALE_DAYS = 90
MAX_PRICE_USD = 100_000  # for a million tokens; more would be a slip
MAX_OUT_TOKENS = 16_384  # what one answer may cost at most, where a row does not say less: no journey here needs more
_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\$\{.*\}|x{3,}|\.{3,}|sk-(x+|\.+)|none|null|todo|unset|placeholder|changeme|change-me|dummy|your[-_ ].*|"
    r"no-key-in-this-lane"
)
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:]+")  # a name, or an address of a private endpoint
_FORMS = (
    ("name", re.compile(r"[a-z][a-z0-9_-]*"), "small letters, digits, '_' and '-'"),
    ("peers", re.compile(r"global|private"), "global or private"),
    ("path_prefix", re.compile(r"/[!-~]*"), "a path that starts with '/'"),
    ("dialect", re.compile("|".join(DIALECTS)), f"one of {', '.join(DIALECTS)}"),
    ("key", re.compile(r"[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET)[A-Z0-9_]*"), "the name of a variable, as ACME_API_KEY"),
    ("model", re.compile(r"[!-~]+"), "the name of a model"),
    ("priced_on", re.compile(r"|[0-9]{4}-[0-9]{2}-[0-9]{2}"), "the day the prices were read, as 2031-03-04"),
    ("authority", re.compile(r"|[A-Za-z0-9._-]+"), "the name of a file beside the table"),
    ("tunnel", re.compile(r"|[a-z0-9]([a-z0-9.-]*[a-z0-9])?:[0-9]{1,5}"), "HOST:PORT of a proxy that knows CONNECT"),
)
_TEXTS = ("base_url", "path_prefix", "dialect", "key", "model", "id_pattern", "peers")
_OPTIONAL_TEXTS = ("priced_on", "authority", "model_family", "tunnel")
_DAYS = {"fresh_days": FRESH_DAYS, "stale_days": STALE_DAYS}
_PRICE_FIELDS = ("in", "cached", "out")
_FIELDS = frozenset({*_TEXTS, "sends_date"})
_OPTIONAL = frozenset({*_OPTIONAL_TEXTS, *_DAYS, "budget_usd", "models", "retired", "max_out_tokens"})


@dataclass(frozen=True, slots=True)
class Provider:
    """One service that may answer, and how its answers are recognised.

    Shape: `key` is the name of the variable, never its value; `id_pattern` is empty where the provider gives no ids.
    `models` are those that may be asked for, each with its price or None where nobody knows it; `retired` those that a
    recording may not be of any more. `authority` is a file beside the table with the one certificate authority that a
    private endpoint is verified against, empty for the locked ones. `tunnel` is the HOST:PORT of the one proxy that all
    requests go through as bytes it cannot read, empty for none. `budget_usd` is what one run may spend on it, None
    for no limit beside that of the run.
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
    models: Mapping[str, Price | None] = field(default_factory=dict)
    retired: tuple[str, ...] = ()
    priced_on: str = ""
    fresh_days: int = FRESH_DAYS
    stale_days: int = STALE_DAYS
    max_out_tokens: int = MAX_OUT_TOKENS
    authority: str = ""
    model_family: str = ""
    tunnel: str = ""
    budget_usd: Decimal | None = None

    @property
    def host(self) -> str:
        """The one host that requests to this provider may go to."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        """The one port that requests to this provider may go to."""
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def known_models(self) -> tuple[str, ...]:
        """The models that may be asked for, the usual one first."""
        return tuple(dict.fromkeys((self.model, *self.models)))

    def price_of(self, model: str) -> Price | None:
        """What a model costs, None where nobody knows."""
        return self.models.get(model)


def load_providers(path: Path = TABLE) -> tuple[Provider, ...]:
    """Load and check the provider table.

    Raises: UsageError with file, line, provider and field.
    """
    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text, parse_float=Decimal)
    except (OSError, ValueError, RecursionError, ArithmeticError) as error:  # too deep to be a table; no number at all
        message = f"the provider table cannot be read: {error}"
        raise UsageError(message, where=path.name, code="PROVIDERS") from error
    if not document:
        raise UsageError("no provider is listed", where=path.name, expected="one table or more", code="PROVIDERS")
    return tuple(_Row(path, text, name, row).provider() for name, row in document.items())


def has_key(environ: Mapping[str, str], provider: Provider) -> bool:
    """Whether the environment holds a key for the provider; blanks and placeholders are no key."""
    return key_problem(environ, provider) == ""


def key_problem(environ: Mapping[str, str], provider: Provider) -> str:
    """Why the environment holds no key for the provider: unset, blank or a placeholder; empty when it holds one."""
    value = environ.get(provider.key)
    if not value:
        return "unset"
    if not value.strip():
        return "blank"
    return "a placeholder" if _PLACEHOLDER.fullmatch(value.strip()) else ""


def verified_context(provider: Provider | None = None, table: Path = TABLE) -> ssl.SSLContext:
    """The TLS settings of every request: the locked authorities and no other, or a private endpoint's own one.

    Shape: chain and name are verified in both.
    Raises: UsageError when the file of a private endpoint's authority cannot be used.
    """
    if provider is None or not provider.authority:
        return ssl.create_default_context(cafile=certifi.where())
    try:
        return ssl.create_default_context(cafile=str(table.parent / provider.authority))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the authority {provider.authority!r} cannot be used: {error}",
            where=f"{table.name}, [{provider.name}]",
            expected="a file beside the table that holds one certificate authority or more, as PEM",
            code="PROVIDERS",
        ) from None


def trust_store_digest(provider: Provider | None = None, table: Path = TABLE) -> str:
    """The digest of the certificate authorities that a live answer must be verified against; they come with a lock."""
    return authorities_digest(verified_context(provider, table).get_ca_certs(binary_form=True))


def authorities_digest(authorities: Iterable[bytes]) -> str:
    """The digest of some certificate authorities in their binary form, whatever their order."""
    digest = hashlib.sha256()
    for each in sorted(set(authorities)):
        digest.update(hashlib.sha256(each).digest())
    return "sha256:" + digest.hexdigest()


class _Row:
    """One table of the file while it is being checked."""

    def __init__(self, path: Path, text: str, name: str, row: object) -> None:
        self._file = path.name
        self._lines = text.splitlines()
        self._name = name
        if not isinstance(row, dict):
            raise self._fail(name, "a provider is a table of fields", "[NAME] and its fields")
        self._row: dict[str, object] = row

    def provider(self) -> Provider:
        self._check_fields()
        models = self._models()
        provider = Provider(
            name=self._name,
            **{name: self._text(name) for name in (*_TEXTS, *_OPTIONAL_TEXTS)},  # type: ignore[arg-type]
            sends_date=self._flag("sends_date"),
            models=MappingProxyType(models),
            retired=self._texts("retired"),
            max_out_tokens=self._number("max_out_tokens", MAX_OUT_TOKENS, 10**6),
            budget_usd=self._budget(),
            fresh_days=self._number("fresh_days", FRESH_DAYS, FRESH_DAYS),
            stale_days=self._number("stale_days", STALE_DAYS, STALE_DAYS),
        )
        for name, found, expected in _odd_values(provider):
            raise self._fail(name, f"{name} is {found!r:.200}", expected)
        return provider

    def _fail(self, name: str, what: str, expected: str, fix: str = "") -> UsageError:
        where = f"{self._file}:{self._line_of(name)}, [{self._name}]"
        return UsageError(what, where=where, expected=expected, fix=fix, code="PROVIDERS")

    def _line_of(self, name: str) -> int:
        """The line of a field, or of its table where it has none of its own."""
        start, inside = 1, False
        for number, line in enumerate(self._lines, start=1):
            if found := re.match(r"""\s*\[\s*["']?([^]"'.]+)["']?(.*)\]""", line):
                inside = found[1].strip() == self._name
                if inside and not found[2].strip():
                    start = number
                if inside and name in re.split(r"""[]"'\[]+|\.models\.""", line):
                    return number
            elif inside and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*=""", line):
                return number
        return start

    def _check_fields(self) -> None:
        found = self._row.keys()
        odd = sorted((_FIELDS - found) | (found - _FIELDS - _OPTIONAL))
        if odd:
            known = ", ".join(sorted(_FIELDS))
            expected = f"{known}; and where it applies {', '.join(sorted(_OPTIONAL))}"
            raise self._fail(odd[0], f"fields missing or unknown: {', '.join(odd)}", expected)

    def _text(self, name: str) -> str:
        value = self._row.get(name, "")
        if isinstance(value, str):
            return value
        raise self._fail(name, f"{name} is {value!r:.200}", "a text in quotes")

    def _flag(self, name: str) -> bool:
        value = self._row[name]
        if isinstance(value, bool):
            return value
        raise self._fail(name, f"{name} is {value!r:.200}", "true or false")

    def _texts(self, name: str) -> tuple[str, ...]:
        value = self._row.get(name, [])
        if isinstance(value, list) and all(isinstance(each, str) and each for each in value):
            return tuple(value)
        raise self._fail(name, f"{name} is {value!r:.200}", "a list of names in quotes")

    def _number(self, name: str, usual: int, most: int) -> int:
        value = self._row.get(name, usual)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        fix = "a row may tighten the rule of all recordings and never loosen it" if name in _DAYS else ""
        raise self._fail(name, f"{name} is {value!r:.200}", f"a whole number from 1 to {most}", fix)

    def _budget(self) -> Decimal | None:
        value = self._row.get("budget_usd")
        if value is None:
            return None
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            amount = Decimal(value)
            if amount.is_finite() and 0 < amount < MAX_PRICE_USD:
                return amount
        raise self._fail("budget_usd", f"budget_usd is {value!r:.200}", "an amount of USD above 0, as 0.50")

    def _models(self) -> dict[str, Price | None]:
        tables = self._row.get("models", {})
        if not isinstance(tables, dict):
            raise self._fail("models", f"models is {tables!r:.200}", f"tables as [{self._name}.models.NAME]")
        return {model: self._price(model, table) for model, table in tables.items()}

    def _price(self, model: str, table: object) -> Price | None:
        if not isinstance(table, dict):
            raise self._fail(model, f"model {model!r} is {table!r:.200}", "a table with in, cached and out, or empty")
        if not table:
            return None
        if table.keys() != {*_PRICE_FIELDS}:
            odd = ", ".join(sorted(table.keys() ^ {*_PRICE_FIELDS}))
            expected = f"{', '.join(_PRICE_FIELDS)} in USD for a million tokens, or none of them"
            raise self._fail(model, f"model {model!r}: prices missing or unknown: {odd}", expected)
        if not self._row.get("priced_on"):
            raise self._fail("priced_on", "there are prices and no day they were read on", "priced_on")
        return Price(*(self._amount(model, name, table[name]) for name in _PRICE_FIELDS))

    def _amount(self, model: str, name: str, value: object) -> Decimal:
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            amount = Decimal(value)
            if amount.is_finite() and 0 <= amount < MAX_PRICE_USD:
                return amount
        raise self._fail(model, f"model {model!r}: {name} is {value!r:.200}", "USD for a million tokens, as 0.28")


def _odd_values(provider: Provider) -> Iterator[tuple[str, str, str]]:
    """Each value that cannot be meant: the field, what it holds, and what it may hold."""
    for name, pattern, expected in _FORMS:
        if not pattern.fullmatch(found := getattr(provider, name)):
            yield name, found, expected
    is_public = provider.peers == "global"
    if not _is_address(provider.base_url, with_port=not is_public):
        port = "without a port, " if is_public else "with a port where it needs one, without "
        yield "base_url", provider.base_url, f"https://HOST/…, {port}a name or a query; no answer counts without TLS"
    try:
        re.compile(provider.id_pattern)
    except (re.error, RecursionError) as error:
        yield "id_pattern", provider.id_pattern, f"a regular expression; {error}"
    if provider.authority and provider.peers == "global":
        yield "authority", provider.authority, "none: a public service is verified against the locked authorities"
    if provider.fresh_days > provider.stale_days:
        yield "fresh_days", str(provider.fresh_days), f"no more than stale_days, {provider.stale_days}"
    if provider.models and provider.model not in provider.models:
        yield "model", provider.model, f"one of models: {', '.join(provider.models)}"
    if provider.model in provider.retired:
        yield "model", provider.model, "a model that is not retired"


def _is_address(text: str, *, with_port: bool) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # brackets or a port that are none
        return False
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment) and "@" not in parts.netloc
    is_host = bool(_HOST.fullmatch(parts.hostname or ""))
    return is_plain and parts.scheme == "https" and is_host and (port is None or with_port)
