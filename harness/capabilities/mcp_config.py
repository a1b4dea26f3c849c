"""Which MCP servers a run uses: a small file, read and checked before anything is started.

Room: assemble comes in with the file, the other rooms of this capability with the servers it named. It knows nothing
of the `mcp` package.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from harness.errors import UsageError
from harness.loop.redaction import Secrets

DEFAULT_TIMEOUT_S = 120.0  # of one call; what the shell tool gives a command
MAX_TIMEOUT_S = 3600.0
# What a server gets of this process's environment. A list of what may go, since no list of secrets is complete.
INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
SEPARATOR = "__"  # between server and tool in a tool's name

_SERVER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,30}(?<!_)|[A-Za-z0-9]")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_STDIO_FIELDS = ("command", "args", "env", "cwd", "timeout_s")
_HTTP_FIELDS = ("url", "headers", "timeout_s")
_FIELDS = tuple(dict.fromkeys((*_STDIO_FIELDS, *_HTTP_FIELDS)))


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is a program of this machine.

    Shape: command is a name to be found on PATH, or a path; cwd None is the workspace; secrets are the values that
    came from variables, less those every server gets and those that name a place of this machine.
    Units: timeout_s is the time limit of one call in seconds.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    secrets: Secrets = field(default_factory=Secrets, repr=False)


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is reached over streamable HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S
    secrets: Secrets = field(default_factory=Secrets, repr=False)


Server = StdioServer | HttpServer


@dataclass(frozen=True, slots=True)
class Processes:
    """How the processes of a server are marked, ended and killed.

    Shape: variable and mark go into the server's environment, so that end and kill find what it started, also outside
    of its session; end asks, waits and kills, kill only kills.
    """

    variable: str
    mark: str
    end: Callable[[frozenset[int], str], Awaitable[None]]
    kill: Callable[[frozenset[int], str], object]


def load_servers(
    path: Path, *, environ: Mapping[str, str], allowed_hosts: Collection[str] | None = None
) -> tuple[Server, ...]:
    """Read and check the file.

    Shape: `${NAME}` in the values of env and headers is replaced from environ; nothing else of environ is used.
    Raises: UsageError [MCP_CONFIG] with file, line and field; [ENDPOINT_REFUSED] for a host outside allowed_hosts.
    """
    where = path.name
    if path.suffix not in {".json", ".toml"}:
        raise _error("is neither JSON nor TOML by its name", where, "a file whose name ends in .json or .toml")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise _error(f"is not UTF-8: {error.reason} at byte {error.start}", where) from None
    except OSError as error:
        raise _error(f"cannot be read: {(error.strerror or 'failed').lower()}", where, "a readable file") from None
    return _Reader(text, where, path, environ, allowed_hosts).servers()


def _error(what: str, where: str, expected: str = "", fix: str = "", code: str = "MCP_CONFIG") -> UsageError:
    return UsageError(what, where=where, expected=expected, fix=fix, code=code)


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Reader:
    """One file while it is being checked."""

    def __init__(
        self,
        text: str,
        where: str,
        path: Path,
        environ: Mapping[str, str],
        allowed_hosts: Collection[str] | None,
    ) -> None:
        self._text = text
        self._where = where
        self._folder = path.absolute().parent
        self._is_json = path.suffix == ".json"
        self._environ = environ
        self._filled_in: list[str] = []  # of the server being read
        self._allowed_hosts = allowed_hosts

    def servers(self) -> tuple[Server, ...]:
        document = self._document()
        for name in document:
            if name != "servers":
                self._fail((name,), f"field {name!r:.80} is unknown{_near(name, ('servers',))}", "the field 'servers'")
        servers = document.get("servers")
        if not isinstance(servers, dict) or not servers:
            self._fail(("servers",), "no server is named", "a table 'servers' with a table for each server")
        return tuple(self._server(name, servers[name]) for name in servers)

    def _document(self) -> dict[str, object]:
        import tomllib  # few sessions have servers to name

        try:
            document: object = (
                json.loads(self._text, object_pairs_hook=self._unique) if self._is_json else tomllib.loads(self._text)
            )
        except json.JSONDecodeError as error:
            raise _error(f"is no JSON: {error.msg}", f"{self._where}:{error.lineno}") from None
        except tomllib.TOMLDecodeError as error:
            raise _error(f"is no TOML: {error}", self._where) from None
        except RecursionError:
            raise _error("is nested too deeply", self._where) from None
        if not isinstance(document, dict):
            raise _error("holds no object", self._where, 'an object like {"servers": {...}}')
        return document

    def _unique(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        for name in found:
            if sum(1 for each, _ in pairs if each == name) > 1:
                self._fail((name,), f"field {name!r:.80} is there twice", "each name once")
        return found

    def _server(self, name: str, table: object) -> Server:
        at = ("servers", name)
        if not _SERVER_NAME.fullmatch(name):
            self._fail(
                at,
                f"{name!r:.80} cannot name a server",
                f"up to 32 letters, digits, '-' and single '_', a letter or digit first and no '_' last: its tools are"
                f" called {'NAME' + SEPARATOR + 'TOOL'}",
            )
        if not isinstance(table, dict):
            self._fail(at, "is no table", "an object with 'command' or 'url'")
        for each in table:
            if each not in _FIELDS:
                self._fail(
                    (*at, each), f"field {each!r:.80} is unknown{_near(each, _FIELDS)}", f"one of {', '.join(_FIELDS)}"
                )
        if ("command" in table) == ("url" in table):
            told = (
                "both 'command' and 'url' are given" if "command" in table else "neither 'command' nor 'url' is given"
            )
            self._fail(at, told, "'command' for a program, or 'url' for a server reached over HTTP")
        is_stdio = "command" in table
        self._filled_in.clear()
        fields = _STDIO_FIELDS if is_stdio else _HTTP_FIELDS
        for each in table:
            if each not in fields:
                kind = "'command'" if is_stdio else "'url'"
                self._fail((*at, each), f"field {each!r} does not go with {kind}", f"one of {', '.join(fields)}")
        timeout_s = self._timeout(at, table)
        if not is_stdio:
            url, headers = self._url(at, table["url"]), self._headers(at, table)
            return HttpServer(name, url, headers, timeout_s, Secrets(tuple(self._filled_in)))
        return StdioServer(
            name,
            self._command(at, table["command"]),
            self._args(at, table.get("args", [])),
            self._env(at, table),
            self._cwd(at, table.get("cwd")),
            timeout_s,
            Secrets(tuple(self._filled_in)),
        )

    def _word(self, at: tuple[str, ...], value: object) -> str:
        if not isinstance(value, str):
            self._fail(at, f"is {value!r:.80}", "a text")
        if "\0" in value or not value.isprintable():
            self._fail(at, "holds a character no command can hold", "printable characters")
        return value

    def _command(self, at: tuple[str, ...], value: object) -> str:
        command = self._word((*at, "command"), value)
        if not command.strip():
            self._fail((*at, "command"), "is empty", "a program's name or path")
        return str(self._folder / command) if "/" in command else command

    def _args(self, at: tuple[str, ...], value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._fail((*at, "args"), f"is {value!r:.80}", "a list of texts")
        for number, each in enumerate(value, start=1):
            if not isinstance(each, str) or "\0" in each:
                self._fail((*at, "args"), f"argument {number} is {each!r:.80}", "a text without NUL")
        return tuple(value)

    def _cwd(self, at: tuple[str, ...], value: object) -> Path | None:
        if value is None:
            return None
        folder = self._folder / Path(self._word((*at, "cwd"), value)).expanduser()
        if not folder.is_dir():
            self._fail((*at, "cwd"), f"{value!r} is not a folder", "an existing folder, from this file's folder on")
        return folder

    def _timeout(self, at: tuple[str, ...], table: Mapping[str, object]) -> float:
        value = table.get("timeout_s", DEFAULT_TIMEOUT_S)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._fail((*at, "timeout_s"), f"is {value!r:.80}", "a number of seconds")
        if not 0 < value <= MAX_TIMEOUT_S:
            self._fail((*at, "timeout_s"), f"{value:g} is out of range", f"more than 0, at most {MAX_TIMEOUT_S:g}")
        return float(value)

    def _url(self, at: tuple[str, ...], value: object) -> str:
        place = (*at, "url")
        url = self._word(place, value).strip()
        try:
            parts = urlsplit(url)
            host, _port = (parts.hostname or "").lower(), parts.port
        except ValueError as error:
            self._fail(place, f"cannot be read: {error}", "an http or https URL")
        if parts.scheme not in {"http", "https"} or not host or " " in url:
            self._fail(place, "is no web address", "an http or https URL")
        if parts.username is not None or parts.password is not None:
            self._fail(place, "holds a user name or password", "a URL without them", fix="name the secret in 'headers'")
        if self._allowed_hosts is not None and host not in self._allowed_hosts:
            told = ", ".join(sorted(self._allowed_hosts)) or "none"
            raise _error(
                f"host {host!r} is not allowed in this run",
                self._place(place),
                f"one of HARNESS_ALLOWED_HOSTS: {told}",
                code="ENDPOINT_REFUSED",
            )
        return url

    def _env(self, at: tuple[str, ...], table: Mapping[str, object]) -> dict[str, str]:
        return self._pairs((*at, "env"), table.get("env", {}), _VARIABLE_NAME, "a variable", forbidden="\0")

    def _headers(self, at: tuple[str, ...], table: Mapping[str, object]) -> dict[str, str]:
        return self._pairs((*at, "headers"), table.get("headers", {}), _HEADER_NAME, "a header", forbidden="\0\r\n")

    def _pairs(
        self, at: tuple[str, ...], value: object, names: re.Pattern[str], what: str, *, forbidden: str
    ) -> dict[str, str]:
        if not isinstance(value, dict):
            self._fail(at, f"is a {type(value).__name__}", "a table of name and text")
        found: dict[str, str] = {}
        for name, text in value.items():
            if not names.fullmatch(name):
                self._fail((*at, name), f"{name!r:.80} cannot name {what}", f"the name of {what}")
            if not isinstance(text, str):  # the value is not shown here or below: it may be a secret
                self._fail((*at, name), f"the value is a {type(text).__name__}", "a text")
            found[name] = self._filled((*at, name), text)
            if any(character in forbidden for character in found[name]):
                self._fail((*at, name), f"the value holds a character {what} cannot hold", "a text on one line")
        return found

    def _filled(self, at: tuple[str, ...], text: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            name = match.group(1)
            if name not in self._environ:
                told = f"variable {name!r:.80} is not set{_near(name, tuple(self._environ))}"
                self._fail(at, told, "${NAME} of a variable that is set", fix=f"export {name}=..., or take it out")
            value = self._environ[name]
            if name not in INHERITED and not os.path.lexists(value):
                self._filled_in.append(value)
            return value

        return _REFERENCE.sub(value_of, text)

    def _fail(self, at: tuple[str, ...], what: str, expected: str, fix: str = "") -> NoReturn:
        raise _error(what, self._place(at), expected, fix)

    def _place(self, at: tuple[str, ...]) -> str:
        """File, line and field. The line is found by looking for the names, one after the other."""
        lines = self._text.splitlines()
        found, start = 0, 0
        for name in at:
            number = next((n for n in range(start, len(lines)) if self._names(lines[n], name)), None)
            if number is None:
                break
            found, start = number + 1, number
        line = f":{found}" if found else ""
        return f"{self._where}{line}, {'.'.join(at)}"

    def _names(self, line: str, name: str) -> bool:
        word = re.escape(name)
        if self._is_json:
            return re.search(rf'"{word}"\s*:', line) is not None
        return re.search(rf'(?:^|[\[.{{,\s"]){word}"?\s*(?:=|\.|\])', line) is not None
