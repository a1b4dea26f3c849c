"""Who asks for what: all that the line and the headers of a request say, worked out once for those that are alike.

Room: pure; the engine comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Dialect
from mock_provider.dialects.table import DIALECTS
from mock_provider.match import Naming
from mock_provider.redaction import Redactor, redactor_for, secrets_of_caller
from mock_provider.routes import CONTROL_PREFIX, Route, find_naming, find_route, split_prefix, split_target
from mock_provider.steps import Script

LENGTH = "content-length"
MAX_CALLERS = (
    1024  # each some KB; more than the clients of any test, and those who send a new header every time start over
)
_Key: TypeAlias = "tuple[str, str, tuple[tuple[str, str], ...]]"


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """The line and the headers of a request.

    Shape: path is the whole one, route knows the path behind the conversation prefix. headers hold the length of some
    request, with_length puts in the one of this. refused is how the dialect turns such headers down. is_player False is
    a control request, or one that only asks whether anybody is there. tells_length: the headers hold a length.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    encoding: str
    route: Route
    dialect: Dialect
    naming: Naming | None
    refused: Refusal | None
    secret_values: tuple[str, ...]
    secrets: Redactor
    shown_path: str
    shown_headers: Mapping[str, str]
    is_player: bool
    tells_length: bool

    def with_length(self, headers: Mapping[str, str], size_bytes: int) -> dict[str, str]:
        """These headers, `headers` or `shown_headers`, with the length of one request."""
        return {**headers, LENGTH: str(size_bytes)} if self.tells_length else dict(headers)


def read_caller(method: str, target: str, headers: Mapping[str, str], script: Script) -> Caller:
    """Work everything out."""
    whole_path, query = split_target(target)
    prefix, path = split_prefix(whole_path)
    route = find_route(method, path, headers)
    dialect = DIALECTS[route.dialect]
    values = secrets_of_caller(headers, query)
    secrets = redactor_for(values)
    return Caller(
        method=method,
        path=whole_path,
        query=query,
        headers=headers,
        encoding=headers.get("content-encoding", "identity").lower(),
        route=route,
        dialect=dialect,
        naming=find_naming(prefix, headers, query),
        refused=dialect.check_access(headers, query, script),
        secret_values=tuple(values),
        secrets=secrets,
        shown_path=secrets.target(whole_path, query),
        shown_headers=secrets.headers(headers),
        is_player=not whole_path.startswith(CONTROL_PREFIX) and route.operation != "alive",
        tells_length=LENGTH in headers,
    )


class Callers:
    """Callers by what they sent. Limits: MAX_CALLERS, then all are forgotten; not safe for threads."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._known: dict[_Key, Caller] = {}

    def of(self, method: str, target: str, headers: Mapping[str, str]) -> Caller:
        """The caller of these headers; two that differ in the length of their bodies alone are one."""
        key = (method, target, tuple(item for item in headers.items() if item[0] != LENGTH))
        caller = self._known.get(key)
        if caller is None or (LENGTH in headers) != (LENGTH in caller.headers):
            if len(self._known) >= MAX_CALLERS:
                self._known.clear()
            caller = self._known[key] = read_caller(method, target, headers, self._script)
        return caller
