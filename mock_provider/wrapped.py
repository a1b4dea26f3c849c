"""`mock-provider run`: a command with the provider's address in its environment, and the verdict afterwards.

Room: environment; the command comes in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mock_provider.dialects.table import BASES
from mock_provider.mock import Mock
from mock_provider.server import ServerThread
from mock_provider.serving import warn_about_host
from mock_provider.standard_streams import tell
from mock_provider.wrapped_child import GRACE_S, WrappedChild

DUMMY_KEY = "sk-mock"  # no conversation behind it: `sk-mock-NAME` would name one


def child_environment(mock: Mock, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the command: real keys covered by dummies, base URLs set, the proxy told to keep out."""
    host = mock.root.removeprefix("http://").rpartition(":")[0].strip("[]")
    spared = ",".join(part for part in (given.get("no_proxy", given.get("NO_PROXY", "")), host, "localhost") if part)
    key = mock.script.api_key or DUMMY_KEY
    return {
        **given,
        **{name: mock.base_url(base.name) for base in BASES for name in base.variables},
        **{name: key for base in BASES for name in base.keys},
        "NO_PROXY": spared,
        "no_proxy": spared,
    }


def run_command(
    mock: Mock, command: Sequence[str], *, host: str, port: int, grace_s: float = GRACE_S, is_fast: bool = True
) -> int:
    """Run a command against a play.

    Shape: the command's exit code (128 + n when signal n ended it), or 3 when the verdict is bad.
    Units: grace_s is the time a command has to end after a signal that asks it to.
    Raises: UsageError when the command cannot be started.
    """
    warn_about_host(host)
    with ServerThread(mock, host, port, is_fast=is_fast):
        code = WrappedChild(grace_s).run(command, child_environment(mock, os.environ))
        verdict = mock.verify()
    tell(f"mock-provider: {verdict}\n")
    return code if verdict.ok else 3
