"""A deterministic model server that knows the providers' wire and nothing of the harness.

Room: anyone may come in. `transport` and `Mock` for tests in the process, `serve` and `ServerThread` for a
server on loopback, `load_script`, `parse_script` and the builders of `mock_provider.replies` for scripts.
Names are loaded when they are first used: pytest imports this package at every start, for its fixtures.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from mock_provider.errors import MockError, ScriptError, UsageError, VerdictError
    from mock_provider.httpx2_face import Mock2Transport
    from mock_provider.httpx_face import MockTransport
    from mock_provider.mock import Mock
    from mock_provider.script import ScriptLike, build_script, load_script, parse_script
    from mock_provider.server import ServerThread, serve
    from mock_provider.steps import Script
    from mock_provider.verdict import Verdict

_ROOMS = {
    "Mock": "mock",
    "MockError": "errors",
    "Script": "steps",
    "ScriptError": "errors",
    "ServerThread": "server",
    "UsageError": "errors",
    "Verdict": "verdict",
    "VerdictError": "errors",
    "build_script": "script",
    "load_script": "script",
    "parse_script": "script",
    "serve": "server",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'mock_provider' has no attribute '{name}'")
    found: object = getattr(importlib.import_module(f"mock_provider.{_ROOMS[name]}"), name)
    return found


@overload
def transport(
    script: ScriptLike | Mock, *, library: Literal["httpx"] = "httpx", virtual_time: bool = False
) -> MockTransport: ...
@overload
def transport(
    script: ScriptLike | Mock, *, library: Literal["httpx2"], virtual_time: bool = False
) -> Mock2Transport: ...
def transport(
    script: ScriptLike | Mock, *, library: Literal["httpx", "httpx2"] = "httpx", virtual_time: bool = False
) -> MockTransport | Mock2Transport:
    """Make a transport without a socket for clients of httpx or httpx2; its `mock` is the control object.

    Raises: ScriptError for a script that cannot be played.
    """
    from mock_provider.mock import Mock

    mock = script if isinstance(script, Mock) else Mock(script)
    if library == "httpx2":
        from mock_provider.httpx2_face import Mock2Transport

        return Mock2Transport(mock, virtual_time=virtual_time)
    from mock_provider.httpx_face import MockTransport

    return MockTransport(mock, virtual_time=virtual_time)


__all__ = [
    "Mock",
    "MockError",
    "Script",
    "ScriptError",
    "ServerThread",
    "UsageError",
    "Verdict",
    "VerdictError",
    "build_script",
    "load_script",
    "parse_script",
    "serve",
    "transport",
]
