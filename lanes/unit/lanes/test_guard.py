"""The rule of the guard, event by event, without installing it: an installed one stays for good."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lanes import guard
from lanes.errors import GuardRefused
from lanes.guard import NOT_SHOWN, REFUSED, Guard
from lanes.spool import UnseenReader

HOSTS = ("api.example.com",)


def refusals(spool: Path) -> list[dict[str, object]]:
    path = spool / guard.REFUSALS_FILE
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def is_refused(rule: Guard, event: str, *arguments: object) -> bool:
    try:
        rule.hook(event, arguments)
    except GuardRefused:
        return True
    return False


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        pytest.param(("127.0.0.1", 80), False, id="loopback-v4"),
        pytest.param(("127.9.9.9", 80), False, id="all-of-127"),
        pytest.param(("localhost", 80), False, id="localhost"),
        pytest.param(("localhost.example.com", 80), True, id="starts-with-localhost"),
        pytest.param(("localhost.", 80), True, id="localhost-with-dot"),
        pytest.param(("93.184.216.34", 80), True, id="public"),
        pytest.param(("10.0.0.1", 80), True, id="private"),
        pytest.param(("0.0.0.0", 80), True, id="any"),
        pytest.param(("", 80), True, id="empty"),
        pytest.param(("127.1", 80), True, id="short-form"),
        pytest.param((b"localhost", 80), False, id="bytes"),
    ],
)
def test_guard_09_loopback_reaches_this_machine_only(address: tuple[object, int], refused: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        assert is_refused(Guard("offline", "loopback"), "socket.connect", end, address) is refused


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        pytest.param(("::1", 80, 0, 0), False, id="loopback"),
        pytest.param(("0:0:0:0:0:0:0:1", 80, 0, 0), False, id="loopback-long-form"),
        pytest.param(("2606:2800:220:1::1", 80, 0, 0), True, id="public"),
        pytest.param(("::ffff:93.184.216.34", 80, 0, 0), True, id="mapped-public"),
        pytest.param(("fe80::1%lo", 80, 0, 0), True, id="link-local"),
    ],
)
def test_guard_09_loopback_holds_for_ipv6_too(address: tuple[object, ...], refused: bool) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as end:
        assert is_refused(Guard("offline", "loopback"), "socket.connect", end, address) is refused


@pytest.mark.parametrize("event", ["socket.connect", "socket.sendto", "socket.sendmsg"])
def test_every_way_to_send_is_judged(event: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        assert is_refused(Guard("unit", "loopback"), event, end, ("93.184.216.34", 53))


def test_a_message_on_a_connected_socket_is_judged_by_its_connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        assert not is_refused(Guard("snapshot", "none"), "socket.sendmsg", end, None)


def test_a_lane_without_network_keeps_unix_sockets() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
        assert not is_refused(Guard("snapshot", "none"), "socket.connect", end, "/run/some.sock")


def test_a_lane_without_network_refuses_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        assert is_refused(Guard("snapshot", "none"), "socket.connect", end, ("127.0.0.1", 80))


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        pytest.param("socket.getaddrinfo", ("example.com", 80, 0, 0, 0), id="getaddrinfo"),
        pytest.param("socket.gethostbyname", ("example.com",), id="gethostbyname"),
        pytest.param("socket.gethostbyaddr", ("93.184.216.34",), id="gethostbyaddr"),
        pytest.param("socket.getnameinfo", (("93.184.216.34", 80),), id="getnameinfo"),
    ],
)
def test_every_way_to_look_up_is_judged(event: str, arguments: tuple[object, ...]) -> None:
    assert is_refused(Guard("unit", "loopback"), event, *arguments)


def test_a_passive_look_up_is_for_listening_and_passes() -> None:
    assert not is_refused(Guard("unit", "loopback"), "socket.getaddrinfo", None, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        pytest.param("api.example.com", False, id="listed-host"),
        pytest.param("API.example.com", False, id="listed-host-in-capitals"),
        pytest.param("93.184.216.34", False, id="its-address"),
        pytest.param("other.example.com", True, id="unlisted-host"),
        pytest.param("127.0.0.1", True, id="loopback"),
        pytest.param("localhost", True, id="localhost"),
        pytest.param("10.0.0.1", True, id="private"),
        pytest.param("169.254.169.254", True, id="link-local"),
        pytest.param("192.0.2.1", True, id="canary"),
    ],
)
def test_real_is_the_mirror_image(host: str, refused: bool) -> None:
    rule = Guard("real", "providers", hosts=HOSTS)

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        assert is_refused(rule, "socket.connect", end, (host, 443)) is refused


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        pytest.param(("127.0.0.1", 4711), False, id="the-port-it-started"),
        pytest.param(("127.0.0.1", 4712), True, id="another-port"),
        pytest.param(("127.0.0.1", 47110), True, id="a-longer-port"),
        pytest.param(("127.0.0.2", 4711), True, id="another-loopback-address"),
        pytest.param(("localhost", 4711), True, id="localhost"),
        pytest.param(("93.184.216.34", 4711), True, id="public"),
        pytest.param(("api.example.com", 443), True, id="a-provider"),
    ],
)
def test_the_lane_with_its_own_model_reaches_the_one_port_that_it_started(
    address: tuple[str, int], refused: bool
) -> None:
    rule = Guard("real", "local", hosts=("127.0.0.1:4711",))

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        assert is_refused(rule, "socket.connect", end, address) is refused


@pytest.mark.parametrize("host", ["api.example.com", "localhost", "127.0.0.1"])
def test_the_lane_with_its_own_model_looks_no_name_up(host: str) -> None:
    rule = Guard("real", "local", hosts=("127.0.0.1:4711",))

    assert is_refused(rule, "socket.getaddrinfo", host, 4711, 0, 0, 0)


@pytest.mark.parametrize(
    ("module", "refused"),
    [
        pytest.param("uvloop", True, id="module"),
        pytest.param("uvloop.loop", True, id="its-part"),
        pytest.param("uvloop_extras", False, id="another-name"),
        pytest.param("asyncio", False, id="another-module"),
    ],
)
def test_guard_07_a_module_with_sockets_of_its_own_is_refused(module: str, refused: bool) -> None:
    assert is_refused(Guard("unit", "loopback", modules=("uvloop",)), "import", module, None, [], [], []) is refused


def test_guard_07_the_refused_import_says_why() -> None:
    with pytest.raises(GuardRefused) as caught:
        Guard("unit", "loopback", modules=("uvloop",)).hook("import", ("uvloop", None, [], [], []))

    assert "it opens sockets of its own, where the guard cannot see them [GUARD_IMPORT]" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        pytest.param("connect", True, id="connect"),
        pytest.param(b"getaddrinfo", True, id="look-up"),
        pytest.param("setns", True, id="another-namespace"),
        pytest.param("getpid", False, id="harmless"),
        pytest.param(7, False, id="by-number"),
    ],
)
@pytest.mark.parametrize("network", ["loopback", "none", "providers"])
def test_a_native_call_that_reaches_outside_past_the_interpreter_is_refused(
    network: str, name: object, refused: bool
) -> None:
    assert is_refused(Guard("unit", network), "ctypes.dlsym", object(), name) is refused


def test_what_the_guard_cannot_look_into_is_noted_once_an_item_and_goes_on(tmp_path: Path) -> None:
    rule = Guard("unit", "loopback", spool=str(tmp_path))
    reader = UnseenReader(tmp_path)
    rule.item = "one"
    rule.hook("os.system", (b"true",))
    early = reader.of_item("one")
    rule.hook("os.system", (b"false",))
    rule.hook("ctypes.dlopen", ("libc.so.6",))
    rule.hook("ctypes.dlopen", (None,))
    rule.item = "two"
    rule.hook("os.system", (b"true",))

    lines = (tmp_path / guard.UNSEEN_FILE).read_text("utf-8").splitlines()
    assert (early, reader.of_item("one"), reader.of_item("two"), reader.of_item("three"), len(lines)) == (
        ("a child that is not Python",),
        ("a child that is not Python", "a native library"),
        ("a child that is not Python",),
        (),
        3,
    )


def test_a_refusal_names_item_lane_and_address_and_how_to_mend_it(tmp_path: Path) -> None:
    rule = Guard("unit", "loopback", spool=str(tmp_path))
    rule.item = "lanes/unit/test_a.py::test_b"

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end, pytest.raises(GuardRefused) as caught:
        rule.hook("socket.connect", (end, ("93.184.216.34", 80)))

    assert str(caught.value) == (
        "lanes/unit/test_a.py::test_b: lane 'unit' reaches loopback only, connect to 93.184.216.34:80 refused "
        "[GUARD_NETWORK]\n"
        "  fix: give the client mock_provider.transport, or a mock provider on 127.0.0.1"
    )


def test_a_refusal_leaves_a_line_even_when_nobody_looks(tmp_path: Path) -> None:
    rule = Guard("unit", "loopback", spool=str(tmp_path))
    rule.item = 'lanes/unit/test_ä.py::test["\\\U0001f600\ud800"]'

    is_refused(rule, "socket.getaddrinfo", "example.com", 80, 0, 0, 0)

    (line,) = refusals(tmp_path)
    assert (line["item"], line["what"], line["code"]) == (rule.item, "look-up of example.com", "GUARD_NETWORK")


def test_a_refusal_outside_any_test_names_the_file_that_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(guard.ITEM_VARIABLE, raising=False)

    is_refused(Guard("unit", "loopback", spool=str(tmp_path)), "socket.getaddrinfo", "example.com", 80, 0, 0, 0)

    (line,) = refusals(tmp_path)
    assert str(line["module"]).rpartition(":")[0].endswith("lanes/unit/lanes/test_guard.py")


def test_the_error_is_no_connection_error_that_a_client_would_retry() -> None:
    assert not issubclass(GuardRefused, OSError)


def test_guard_08_a_probe_that_meets_a_dead_network_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def dead() -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(guard, "_connect_to_canary", dead)
    monkeypatch.setattr(guard, "_look_up_canary", dead)

    assert Guard("unit", "loopback").probe() == NOT_SHOWN


PROGRAM = """
import sys
from lanes import guard
guard.install(guard.Guard("unit", "loopback", spool=sys.argv[1]))
sys.stdout.write(guard.installed().start + " " + guard.installed().probe())
"""


def test_an_installed_guard_is_shown_by_its_canaries_at_start_and_end(tmp_path: Path) -> None:
    unguarded = {name: value for name, value in os.environ.items() if name != guard.GUARD_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=unguarded,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    lines = [json.loads(line) for line in (tmp_path / guard.CANARIES_FILE).read_text("utf-8").splitlines()]
    assert done.stdout == f"{REFUSED} {REFUSED}"
    assert [(line["when"], line["outcome"]) for line in lines] == [("start", REFUSED), ("end", REFUSED)]
    assert refusals(tmp_path) == []
