"""The wall, tried in children: a process that entered it never comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lanes import namespace
from lanes.namespace import Entry, measure_depth, namespace_id

PROGRAM = """
import ctypes, json, os, socket, sys
from lanes.namespace import enter_namespace, interfaces, measure_depth, namespace_id
loopback = sys.argv[1] == "loopback"
before = namespace_id()
way_back = os.open("/proc/self/ns/net", os.O_RDONLY) if before else -1
entry = enter_namespace(loopback=loopback)
found = {
    "outside": entry.outside == before,
    "problem": entry.problem,
    "moved": namespace_id() != before,
    "interfaces": interfaces(),
    "depth": measure_depth(entry.outside, guarded=False),
    "owner": [os.getuid(), os.getgid()],
    "reaches": [],
}
server = socket.socket()
try:
    server.bind(("127.0.0.1", 0))
    server.listen()
    socket.socket().connect(server.getsockname())
    found["reaches"].append("loopback")
except OSError:
    pass
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("93.184.216.34", 53))
    found["reaches"].append("outside")
except OSError:
    pass
libc = ctypes.CDLL(None)
if before:
    powers = [line.split() for line in open("/proc/self/status") if line.startswith("Cap")]
    found["powers"] = {name: int(value, 16) for name, value in powers}
    found["back"] = libc.setns(way_back, 0) == 0 or namespace_id() == before
sys.stdout.write(json.dumps(found))
"""


def enter(kind: str) -> dict[str, object]:
    unguarded = {name: value for name, value in os.environ.items() if name != "LANES_GUARD"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], env=unguarded, capture_output=True, text=True, check=True, timeout=30
    )
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def walled() -> dict[str, object]:
    return enter("loopback")


def test_the_wall_is_a_namespace_of_its_own_or_the_machine_says_why_not(walled: dict[str, object]) -> None:
    if walled["problem"] is None:
        assert (walled["moved"], walled["interfaces"], walled["depth"]) == (True, ["lo"], "D3")
    else:
        assert walled["depth"] == "D1"


def test_inside_the_wall_loopback_answers_and_nothing_else(walled: dict[str, object]) -> None:
    assert walled["reaches"] == ["loopback"] or walled["problem"] is not None


def test_nobody_leaves_the_wall_again_root_included(walled: dict[str, object]) -> None:
    powers = walled.get("powers", {})
    left = {name for held in powers.values() for name, number in namespace._WAYS_OUT.items() if held >> number & 1}

    assert (left, walled.get("back", False)) == (set(), False) or walled["problem"] is not None


def test_a_lane_without_network_has_no_loopback_either() -> None:
    shut = enter("none")

    assert shut["reaches"] == [] or shut["problem"] is not None


def test_the_ids_inside_are_the_ids_outside(walled: dict[str, object]) -> None:
    assert walled["owner"] == [os.getuid(), os.getgid()]


def test_a_machine_that_refuses_is_answered_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "_unshare", lambda flags: "the machine refused")

    assert namespace.enter_namespace(loopback=True) == Entry(namespace_id(), "the machine refused")


def test_a_wall_whose_ways_out_stay_open_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_unshare", "_check_dead"):
        monkeypatch.setattr(namespace, name, lambda *arguments: None)
    monkeypatch.setattr(namespace, "_give_up_ways_out", lambda: "the ways out stayed open")

    assert namespace.enter_namespace(loopback=False) == Entry(namespace_id(), "the ways out stayed open")


@pytest.mark.parametrize(
    ("outside", "inside", "interfaces", "guarded", "depth"),
    [
        pytest.param("1", "2", ("lo",), True, "D3", id="walled"),
        pytest.param("1", "1", ("lo",), True, "D2", id="same-namespace"),
        pytest.param("1", "2", ("lo", "eth0"), True, "D2", id="another-interface"),
        pytest.param("", "2", ("lo",), True, "D2", id="nobody-knows-the-outside"),
        pytest.param("1", "1", ("lo",), False, "D1", id="no-guard"),
    ],
)
def test_depth_is_measured_by_identity_and_interfaces(
    monkeypatch: pytest.MonkeyPatch, outside: str, inside: str, interfaces: tuple[str, ...], guarded: bool, depth: str
) -> None:
    monkeypatch.setattr(namespace, "namespace_id", lambda: inside)
    monkeypatch.setattr(namespace, "interfaces", lambda: interfaces)

    assert measure_depth(outside, guarded=guarded) == depth
