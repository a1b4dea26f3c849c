"""Fixtures for pytest: scripts played in the process or over loopback, judged at the end of each test.

Room: pytest comes in through its entry point, in every project where this package is installed; so nothing is
imported or done before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mock_provider.httpx_face import MockTransport
    from mock_provider.mock import Mock
    from mock_provider.script import ScriptLike


@pytest.fixture(name="mock_provider")
def mock_provider_fixture() -> Iterator[Callable[[ScriptLike], MockTransport]]:
    """A function that makes an httpx transport from a script; a play that goes wrong fails the test."""
    from mock_provider import transport

    made: list[Mock] = []

    def make(script: ScriptLike) -> MockTransport:
        face = transport(script)
        made.append(face.mock)
        return face

    yield make
    for mock in made:
        mock.close()
    _judge(made)


@pytest.fixture(name="mock_provider_server")
def mock_provider_server_fixture() -> Iterator[Callable[[ScriptLike], Mock]]:
    """A function that serves a script on a loopback port of its own; a play that goes wrong fails the test."""
    from mock_provider.server import ServerThread

    made: list[Mock] = []
    with ExitStack() as running:

        def start(script: ScriptLike) -> Mock:
            mock = running.enter_context(ServerThread(script))
            made.append(mock)
            return mock

        yield start
    _judge(made)


def _judge(mocks: list[Mock]) -> None:
    texts = [
        f"{verdict}\njournal:\n{mock.journal.text()}" for mock in mocks for verdict in [mock.verify()] if not verdict.ok
    ]
    if texts:
        pytest.fail("\n\n".join(texts), pytrace=False)
