"""A provider behind the one proxy that its row names: TLS is verified from end to end, and the tunnel is told (A6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from lanes import providers
from lanes.local_channel import local_provider
from lanes.local_model import RunningModel
from lanes.providers import Provider
from lanes.sealed import SealedTransport
from lanes.unit.lanes.authority import make_authority
from lanes.unit.lanes.stand_in import KEY_VALUE, LiveCopy, StandIn, copy_project, open_stand_in
from lanes.unit.lanes.tunnel import Tunnel

BODY = {"model": "m-standard", "messages": [{"role": "user", "content": "Answer with this one word: canary"}]}
ROW = replace(
    local_provider(RunningModel(1, 0, "m-standard", "", "", {})),
    name="acme",
    base_url="https://api.acme.example/v1",
    key="ACME_API_KEY",
    id_pattern=".+",
    authority="authority.pem",
)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with open_stand_in(tmp_path) as server:
        (tmp_path / "authority.pem").write_bytes(server.authority.certificate.read_bytes())
        believe(tmp_path, monkeypatch)
        yield server


def believe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a provider's authority taken from a folder of the test."""
    monkeypatch.setattr("lanes.sealed.verified_context", lambda row: providers.verified_context(row, folder / "table"))


async def ask(row: Provider) -> SealedTransport:
    transport = SealedTransport(row)
    async with httpx.AsyncClient(transport=transport) as client:
        reply = await client.post(f"{row.base_url}/chat/completions", json=BODY, headers={"x-api-key": KEY_VALUE})
        assert reply.status_code == 200
    return transport


async def test_an_answer_through_the_tunnel_tells_of_it_and_of_the_tls_behind_it(stand_in: StandIn) -> None:
    with Tunnel(stand_in.port) as tunnel:
        transport = await ask(replace(ROW, tunnel=tunnel.place))

    facts = transport.proof_facts()
    assert (facts["proxy_used"], facts["tunnel"]) == (True, tunnel.place)
    tls = facts["tls"]
    assert isinstance(tls, dict)
    assert (tls["name_verified"], tls["chain_verified"], tls["trust_store"]) == (True, True, stand_in.authority.digest)
    assert transport.notes[0]["wire"]["stream"] is True


async def test_the_tunnel_sees_a_name_and_bytes_that_it_cannot_read(stand_in: StandIn) -> None:
    with Tunnel(stand_in.port) as tunnel:
        await ask(replace(ROW, tunnel=tunnel.place))

    passed = b"".join(tunnel.passed)
    assert tunnel.seen == ["CONNECT api.acme.example:443 HTTP/1.1"]
    assert (len(passed) > 100, b"canary" in passed, KEY_VALUE.encode() in passed) == (True, False, False)


async def test_a_tunnel_that_answers_itself_is_found_out_by_its_certificate(stand_in: StandIn, tmp_path: Path) -> None:
    with (
        StandIn(make_authority(tmp_path, "another")) as liar,
        Tunnel(liar.port) as tunnel,
        pytest.raises(httpx.ConnectError, match="certificate verify failed"),
    ):
        await ask(replace(ROW, tunnel=tunnel.place))

    assert liar.requests == []


def test_A6_a_run_through_the_tunnel_of_its_row_is_admitted_and_its_cell_names_it(tmp_path: Path) -> None:
    with open_stand_in(tmp_path) as stand_in, Tunnel(stand_in.port) as tunnel:
        live = LiveCopy(copy_project(tmp_path / "project", stand_in.authority, stand_in.port), stand_in)
        row = f'base_url = "https://127.0.0.1:{stand_in.port}/v1"\n'
        live.table.write_text(live.table.read_text("utf-8").replace(row, f'{row}tunnel = "{tunnel.place}"\n'), "utf-8")

        ended = live.run("-k", "fixes_the_failing")

    assert (ended.exit_code, live.board["voids"]) == (0, [])
    assert f"through the tunnel {tunnel.place}" in live.cell("journey.fix-test")["words"]
    assert set(tunnel.seen) == {f"CONNECT 127.0.0.1:{stand_in.port} HTTP/1.1"}
