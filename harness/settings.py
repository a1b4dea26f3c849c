"""What the environment and the command line ask for, as one frozen value.

Room: the command line builds it, assemble and surfaces read it. The only reader of os.environ in the harness.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UsageError
from harness.secret_variables import secret_values, shell_environment

DEFAULT_MAX_STEPS = 50
DEFAULT_RETRY_BASE_MS = 500
COMPACT_AT_PERCENT = 80  # of the window: what one more step usually adds still fits
MAX_SEED_CHARACTERS = 200
MAX_SHOWN = 200  # characters of a path that is repeated to whoever gave it


@dataclass(frozen=True, slots=True)
class Provider:
    """A service a model is reached at. dialect, base_url and model are what it is asked for when nobody chose."""

    name: str
    dialect: str
    base_url: str | None
    model: str | None
    key_variable: str
    base_url_variable: str | None
    takes_pictures: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "openai",
        "openai_chat",
        "https://api.openai.com/v1",
        "gpt-4.1-mini",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        takes_pictures=True,
    ),
    "deepseek": Provider(
        "deepseek",
        "openai_chat",
        "https://api.deepseek.com/v1",
        "deepseek-flash",
        "DEEPSEEK_API_KEY",
        "DEEPSEEK_BASE_URL",
    ),
    "custom": Provider("custom", "openai_chat", None, None, "HARNESS_API_KEY", None),
}


_TEXT = frozenset({"text"})
_TEXT_AND_IMAGE = frozenset({"text", "image"})
MODEL_INPUTS: Mapping[tuple[str, str], frozenset[str]] = {
    **{
        ("openai", name): _TEXT_AND_IMAGE
        for name in ("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini")
    },
    **{("deepseek", name): _TEXT for name in ("deepseek-chat", "deepseek-reasoner")},
}  # what the providers' model pages say these take; a pair that is not here is not known


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says; None where it says nothing."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    session_root: str | None = None
    cwd: str | None = None
    max_steps: int | None = None
    retry_base_ms: int | None = None
    compact_at: int | None = None
    delegation_depth: int | None = None
    mcp: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All choices of one run, made and checked.

    Shape: api_key is None when no key is set; cwd is None when nobody named a folder; allowed_hosts is None when every
    host is allowed; seed makes ids and clock the same in every run; max_delegation_depth is how deep children may
    stand, 0 for none at all; compact_at is None when history is never shortened; mcp_file names the MCP servers, whose
    configuration may refer to variables of environment, which holds keys too.
    model_inputs is what the model is known or declared to take, None where nobody knows. secrets are what nothing may
    write down.
    Units: retry_base_ms is the first wait between two attempts in milliseconds; context_window and compact_at are
    tokens of a request.
    """

    provider: str
    model: str
    base_url: str
    dialect: str
    takes_pictures: bool
    model_inputs: frozenset[str] | None
    api_key: str | None = field(repr=False)
    key_variable: str
    session_root: Path
    cwd: Path | None
    max_steps: int
    retry_base_ms: int
    allowed_hosts: frozenset[str] | None
    seed: str | None
    context_window: int | None
    compact_at: int | None
    max_delegation_depth: int
    shell_environment: Mapping[str, str] = field(repr=False)
    mcp_file: Path | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def environment() -> Mapping[str, str]:
    """The environment of this process, for a surface that settles its choices more than once."""
    return dict(os.environ)


def from_environment(environ: Mapping[str, str] | None = None, flags: Flags | None = None) -> Settings:
    """Settle every choice: the command line first, then the environment, then the default.

    Raises: UsageError naming the flag or variable, the value, and what was expected; never a key's value.
    """
    environ = os.environ if environ is None else environ
    flags = flags or Flags()
    provider = _choose_provider(environ, flags)
    base_url = _chosen(flags.base_url, environ, "HARNESS_BASE_URL", provider.base_url_variable)
    base_url = base_url or provider.base_url
    if base_url is None:
        raise UsageError(
            "no address for the provider 'custom'",
            where="--base-url",
            expected="the base URL of a server that speaks the OpenAI chat format",
            fix="give --base-url URL or set HARNESS_BASE_URL",
        )
    model = _chosen(flags.model, environ, "HARNESS_MODEL") or provider.model
    if model is None:
        raise UsageError("no model chosen", where="--model", fix="give --model NAME or set HARNESS_MODEL")
    api_key = _key(environ, provider)
    context_window = _whole_number(None, environ, "HARNESS_CONTEXT_WINDOW", least=1)
    declared = _model_inputs(environ)
    return Settings(
        provider=provider.name,
        model=model,
        base_url=base_url,
        dialect=_chosen(None, environ, "HARNESS_DIALECT") or provider.dialect,
        takes_pictures=provider.takes_pictures if declared is None else "image" in declared,
        model_inputs=MODEL_INPUTS.get((provider.name, model)) if declared is None else declared,
        api_key=api_key,
        key_variable=provider.key_variable,
        session_root=_session_root(environ, flags),
        cwd=None if flags.cwd is None else _folder(flags.cwd, "--cwd"),
        max_steps=DEFAULT_MAX_STEPS if flags.max_steps is None else flags.max_steps,
        retry_base_ms=_retry_base_ms(environ, flags),
        allowed_hosts=_allowed_hosts(environ),
        seed=_seed(environ),
        context_window=context_window,
        compact_at=_compact_at(environ, flags, context_window),
        max_delegation_depth=_whole_number(flags.delegation_depth, environ, "HARNESS_DELEGATION_DEPTH", least=0) or 0,
        shell_environment=shell_environment(environ, api_key),
        mcp_file=None if flags.mcp is None else _expanded(flags.mcp, "--mcp"),
        secrets=secret_values(environ),
        environment=dict(environ),
    )


def current_folder() -> Path:
    """The folder this process was started in.

    Raises: UsageError when it is gone.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(
            "the folder this was started in is gone",
            where="--cwd",
            expected="a folder to work in",
            fix="change to one that is there, or give --cwd FOLDER",
        ) from error


def session_root_of(flags: Flags) -> Path:
    """Where session logs are kept, for a command that needs no more than that.

    Raises: UsageError where neither a flag nor the environment tells.
    """
    return _session_root(os.environ, flags)


def _first(*values: str | None) -> str | None:
    """The first value that says something; a blank one says nothing."""
    return next((value.strip() for value in values if value is not None and value.strip()), None)


def _chosen(flag: str | None, environ: Mapping[str, str], *variables: str | None) -> str | None:
    """What the command line says, else the first of these variables that says something."""
    told = _first(flag)
    for name in filter(None, variables):
        told = told or _first(_text(environ, name))
    return told


def _text(environ: Mapping[str, str], name: str) -> str | None:
    """What a variable says; folders are not read by it, for a file system may hold any bytes in a name.

    Raises: UsageError for bytes that are no text, which Python hands on as half characters; never with the value.
    """
    value = environ.get(name)
    try:
        (value or "").encode()
    except UnicodeEncodeError as error:
        place = len(error.object[: error.start].encode())
        raise UsageError(f"not UTF-8 at byte {place}", where=name, expected="text", fix="give it as UTF-8") from None
    return value


def _choose_provider(environ: Mapping[str, str], flags: Flags) -> Provider:
    asked = _chosen(flags.provider, environ, "HARNESS_PROVIDER")
    if asked is not None:
        if asked in PROVIDERS:
            return PROVIDERS[asked]
        near = difflib.get_close_matches(asked, PROVIDERS, n=1)
        raise UsageError(
            f"provider {asked!r} is unknown" + (f"; did you mean {near[0]!r}?" if near else ""),
            where="--provider" if flags.provider else "HARNESS_PROVIDER",
            expected=f"one of {', '.join(PROVIDERS)}",
            fix="for any other server that speaks the OpenAI chat format, use custom and --base-url",
        )
    for provider in PROVIDERS.values():
        if _first(*(environ.get(name or "") for name in (provider.key_variable, provider.base_url_variable))):
            return provider
    return PROVIDERS["openai"]


def _key(environ: Mapping[str, str], provider: Provider) -> str | None:
    key = _first(environ.get(provider.key_variable))
    if key is not None and not re.fullmatch(r"[\x21-\x7e]+", key):
        raise UsageError(
            "the key holds blanks or characters no HTTP header can carry",
            where=provider.key_variable,
            expected="the key alone, on one line",
        )
    return key


def _model_inputs(environ: Mapping[str, str]) -> frozenset[str] | None:
    """What the model is declared to take, for models of other servers; None where nothing is declared."""
    text = _chosen(None, environ, "HARNESS_MODEL_INPUT")
    if text is None:
        return None
    words = frozenset(word.strip() for word in text.split(","))
    if not words <= _TEXT_AND_IMAGE or "text" not in words:
        raise UsageError(f"{text!r} is not understood", where="HARNESS_MODEL_INPUT", expected="text, or text,image")
    return words


def _session_root(environ: Mapping[str, str], flags: Flags) -> Path:
    told = _first(flags.session_root, environ.get("HARNESS_SESSION_ROOT"), environ.get("DSH_SESSION_ROOT"))
    if told is not None:
        return _absolute(told)
    dsh_home = _first(environ.get("DSH_HOME"))  # the folder that published clients give the program for all it keeps
    if dsh_home is not None:
        return _absolute(dsh_home) / "sessions"
    state = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME", "")
    if Path(state).is_absolute():  # the directory specification says to ignore a relative one
        return Path(state) / "five-lanes" / "sessions"
    if not Path(home).is_absolute():
        raise UsageError(
            "no place for session logs, HOME is not set", where="--session-root", fix="give --session-root FOLDER"
        )
    return Path(home) / ".local" / "state" / "five-lanes" / "sessions"


def _folder(path: str, where: str) -> Path:
    folder = _expanded(path, where)
    try:
        is_folder, problem = folder.is_dir(), ""
    except OSError as error:  # a name longer than any can be, a folder on the way that is closed to us
        is_folder, problem = False, f": {error.strerror or error}"
    if not is_folder:
        raise UsageError(
            f"{path[:MAX_SHOWN]!r} is not a folder{problem}", where=where, expected="an existing folder to work in"
        )
    return folder.resolve()


def _absolute(session_root: str) -> Path:
    folder = _expanded(session_root, "--session-root")
    try:
        return folder.absolute()
    except OSError as error:
        raise UsageError(
            "the folder this was started in is gone", where="--session-root", expected="an absolute path"
        ) from error


def _expanded(path: str, where: str) -> Path:
    """The path with the home that a ~ in front stands for."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"{path[:MAX_SHOWN]!r}: nobody knows whose home that is", where=where, fix="write the path out"
        ) from error


def _retry_base_ms(environ: Mapping[str, str], flags: Flags) -> int:
    if flags.retry_base_ms is not None:
        return flags.retry_base_ms
    text = _chosen(None, environ, "HARNESS_RETRY_BASE_MS")
    if text is None:
        return DEFAULT_RETRY_BASE_MS
    if not re.fullmatch(r"[0-9]{1,7}", text):
        raise UsageError(f"{text!r} is not a number", where="HARNESS_RETRY_BASE_MS", expected="whole milliseconds")
    return int(text)


def _compact_at(environ: Mapping[str, str], flags: Flags, context_window: int | None) -> int | None:
    told = _whole_number(flags.compact_at, environ, "HARNESS_COMPACT_AT", least=1)
    if told is None and context_window is not None:
        return max(1, context_window * COMPACT_AT_PERCENT // 100)
    return told


def _whole_number(flag: int | None, environ: Mapping[str, str], variable: str, *, least: int) -> int | None:
    if flag is not None:
        return flag
    text = _chosen(None, environ, variable)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
        raise UsageError(f"{text!r} is not such a number", where=variable, expected=f"a whole number from {least} up")
    return int(text)


def _allowed_hosts(environ: Mapping[str, str]) -> frozenset[str] | None:
    text = _text(environ, "HARNESS_ALLOWED_HOSTS")
    if text is None:
        return None
    return frozenset(host.strip().lower() for host in text.split(",") if host.strip())


def _seed(environ: Mapping[str, str]) -> str | None:
    seed = _text(environ, "HARNESS_SEED")
    if not seed:
        return None
    if len(seed) > MAX_SEED_CHARACTERS or not seed.isprintable():
        raise UsageError(
            "not usable", where="HARNESS_SEED", expected=f"up to {MAX_SEED_CHARACTERS} printable characters"
        )
    return seed
