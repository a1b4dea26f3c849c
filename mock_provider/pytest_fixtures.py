"""Fixtures for pytest: scripts played in the process or over loopback, judged at the end of each test.

Room: pytest comes in through its entry point, in every project where this package is installed; so nothing is
imported or done before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal, Protocol, overload

import pytest

if TYPE_CHECKING:
    from mock_provider.httpx2_face import Mock2Transport
    from mock_provider.httpx_face import MockTransport
    from mock_provider.mock import Mock
    from mock_provider.script import ScriptLike


class MakeTransport(Protocol):
    """What the fixture `mock_provider` gives: a maker of transports, for httpx unless httpx2 is asked for."""

    @overload
    def __call__(
        self, script: ScriptLike, *, library: Literal["httpx"] = "httpx", virtual_time: bool = False
    ) -> MockTransport: ...
    @overload
    def __call__(
        self, script: ScriptLike, *, library: Literal["httpx2"], virtual_time: bool = False
    ) -> Mock2Transport: ...


@pytest.fixture(name="mock_provider")
def mock_provider_fixture() -> Iterator[MakeTransport]:
    """A function that makes a transport from a script, in the process; a play that goes wrong fails the test."""
    from mock_provider import transport

    made: list[Mock] = []

    @overload
    def make(
        script: ScriptLike, *, library: Literal["httpx"] = "httpx", virtual_time: bool = False
    ) -> MockTransport: ...
    @overload
    def make(script: ScriptLike, *, library: Literal["httpx2"], virtual_time: bool = False) -> Mock2Transport: ...
    def make(
        script: ScriptLike, *, library: Literal["httpx", "httpx2"] = "httpx", virtual_time: bool = False
    ) -> MockTransport | Mock2Transport:
        face: MockTransport | Mock2Transport
        if library == "httpx2":
            face = transport(script, library="httpx2", virtual_time=virtual_time)
        else:
            face = transport(script, virtual_time=virtual_time)
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
