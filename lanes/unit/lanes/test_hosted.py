"""A run against hosted models as its parent sees it, before anything is started."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from lanes.hosted import private_addresses
from lanes.live_run import LiveTarget
from lanes.providers import Provider, load_providers

ROW = load_providers()[0]
LAB = replace(ROW, name="lab", base_url="https://127.0.0.1:8000/v1", peers="private")


@pytest.mark.parametrize(
    ("row", "asked", "expected"),
    [
        pytest.param(LAB, "lab", ("127.0.0.1:8000",), id="private"),
        pytest.param(LAB, "other", (), id="private-and-not-asked"),
        pytest.param(replace(LAB, peers="global"), "lab", (), id="public"),
        pytest.param(replace(LAB, tunnel="127.0.0.1:3128"), "lab", ("127.0.0.1:3128",), id="behind-a-tunnel"),
        pytest.param(replace(ROW, tunnel="127.0.0.1:3128"), ROW.name, ("127.0.0.1:3128",), id="public-behind-a-tunnel"),
        pytest.param(replace(ROW, tunnel="127.0.0.1:3128"), "other", (), id="tunnel-and-not-asked"),
    ],
)
def test_the_guard_is_told_the_addresses_of_the_private_endpoints_that_are_asked(
    row: Provider, asked: str, expected: tuple[str, ...]
) -> None:
    assert private_addresses([LiveTarget(asked, "m")], [row]) == expected


def test_a_name_that_leads_nowhere_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_arguments: object, **_options: object) -> None:
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)

    assert private_addresses([LiveTarget("lab", "m")], [LAB]) == ()
