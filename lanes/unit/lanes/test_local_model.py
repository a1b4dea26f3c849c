"""The model server's life, with a stand-in program in its place: started, waited for, told apart, ended for sure."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from lanes.errors import LocalModelError
from lanes.local_model import Installed, ModelServer, digest_weights, find_installed, running_from_json, serving
from lanes.local_table import load_local_row

ROW = replace(load_local_row(), model="m-tiny")
IDENTITY = ("sha256:" + "a" * 64, "stand-in 1.0")
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of no bytes at all
STAND_IN = """
import json, os, signal, socket, subprocess, sys
document = json.loads(sys.argv[-1])
mode = document["mode"]
if mode == "dies":
    sys.exit("no such weights: " + ", ".join(sorted(os.environ)))
listener = socket.socket(fileno=document["descriptor"])
if mode == "lets go":
    listener.close()
    os.close(2)
    sys.exit(3)
if mode == "silent":
    signal.pause()
if mode == "forks":
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    print(child.pid, flush=True)
names = {"other": ["m-other"], "none": []}.get(mode, [document["model"]])
if mode == "forks":
    names = [document["model"]]
body = json.dumps({"data": [{"id": name} for name in names], "child": child.pid if mode == "forks" else 0}).encode()
if mode == "no JSON":
    body = b"<html>"
while True:
    connection, _ = listener.accept()
    with connection.makefile("rb") as wire:
        while wire.readline().strip():
            pass
    head = b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
    connection.sendall(head + body)
    connection.close()
"""
COMMAND = (sys.executable, "-c", STAND_IN)

Serve = Callable[..., ModelServer]


@pytest.fixture
def told() -> list[str]:
    """What was shown to whoever waits."""
    return []


@pytest.fixture
def serve(told: list[str]):
    """Serve the stand-in in one of its modes, as a block."""

    def start(mode: str, **changes: object):
        document = {"mode": mode, "model": ROW.model}
        environ = {**os.environ, "ACME_API_KEY": "sk-planted-secret", "HTTPS_PROXY": "http://proxy.example"}
        return serving(COMMAND, document, replace(ROW, **changes), IDENTITY, environ, told.append)

    return start


def is_alive(process_id: int) -> bool:
    """Whether a process exists and has not ended; one that waits to be buried has."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_server_that_answers_is_handed_over_with_its_identity(serve, told: list[str]) -> None:
    with serve("ready") as server:
        running = server.running
        listed = httpx.get(f"{running.base_url}/models", trust_env=False).json()
        alive, ended = is_alive(running.process_id), server.how_it_ended()

    assert listed["data"] == [{"id": "m-tiny"}]
    assert (running.model, running.model_digest, running.server) == ("m-tiny", *IDENTITY)
    assert (alive, ended, running_from_json(running.to_json())) == (True, None, running)
    assert "process_id" not in running.facts()
    assert ("".join(told).startswith("starting m-tiny on this machine"), told[-1][:11]) == (True, "ready after")


def test_the_server_is_gone_with_the_block(serve) -> None:
    with serve("ready") as server:
        running = server.running

    with socket.socket() as late:
        refused = late.connect_ex(("127.0.0.1", running.port))
    assert (is_alive(running.process_id), refused) == (False, errno.ECONNREFUSED)


def test_the_server_is_gone_with_a_block_that_fails(serve) -> None:
    seen: list[int] = []

    def run() -> None:
        with serve("ready") as server:
            seen.append(server.running.process_id)
            raise RuntimeError("the tests broke")

    with pytest.raises(RuntimeError, match="the tests broke"):
        run()
    assert [is_alive(each) for each in seen] == [False]


def test_what_the_server_started_is_gone_with_it(serve) -> None:
    with serve("forks") as server:
        child = int(httpx.get(f"{server.running.base_url}/models", trust_env=False).json()["child"])
        before, end = is_alive(child), os.pidfd_open(child)

    try:
        ended, _, _ = select.select([end], [], [], 30)  # readable once the process has ended
    finally:
        os.close(end)
    assert (before, ended) == (True, [end])


def test_nobody_else_can_take_the_port_while_the_server_lives(serve) -> None:
    with serve("ready") as server, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match=f"Errno {errno.EADDRINUSE}"):
            other.bind(("127.0.0.1", server.running.port))


def test_two_servers_have_two_ports(serve) -> None:
    with serve("ready") as one, serve("ready") as other:
        assert one.running.port != other.running.port


def test_a_server_that_is_killed_says_how_it_ended(serve) -> None:
    with serve("ready") as server:
        os.kill(server.running.process_id, signal.SIGKILL)
        os.waitid(os.P_PID, server.running.process_id, os.WEXITED | os.WNOWAIT)
        ended = server.how_it_ended()

    assert ended == "signal SIGKILL"


@pytest.mark.parametrize(
    ("mode", "changes", "code", "words"),
    [
        pytest.param("dies", {}, "LOCAL_MODEL_ENDED", "exit code 1, it said: no such weights", id="dies"),
        pytest.param("lets go", {}, "LOCAL_MODEL_ENDED", "exit code 3", id="lets-go-of-its-port"),
        pytest.param(
            "silent", {"ready_within_s": 0}, "LOCAL_MODEL_SLOW", "did not answer within 0 s", id="never-ready"
        ),
        pytest.param("other", {}, "LOCAL_MODEL_OTHER", "the server offers m-other", id="another-model"),
        pytest.param("none", {}, "LOCAL_MODEL_OTHER", "the server offers no model", id="no-model"),
        pytest.param("no JSON", {}, "LOCAL_MODEL_OTHER", "the server offers no model", id="no-list"),
    ],
)
def test_a_server_that_does_not_get_ready_is_one_clear_error_and_is_ended(
    serve, mode: str, changes: dict[str, object], code: str, words: str
) -> None:
    with pytest.raises(LocalModelError) as refused, serve(mode, **changes):
        pytest.fail("it was handed over")

    assert (refused.value.error_code, words in refused.value.what) == (code, True), refused.value.what
    assert "Traceback" not in str(refused.value)


def test_no_key_and_no_proxy_reaches_the_server(serve) -> None:
    with pytest.raises(LocalModelError) as refused, serve("dies"):
        pass

    names = refused.value.what.partition("no such weights: ")[2].split(", ")
    assert ("PATH" in names, {"ACME_API_KEY", "HTTPS_PROXY"} & set(names)) == (True, set())


def test_a_waiting_person_sees_that_it_goes_on(serve, told: list[str]) -> None:
    with pytest.raises(LocalModelError), serve("silent", ready_within_s=1):
        pass

    assert told[1:] == [".", "\n"]


@pytest.mark.parametrize("missing", ["package", "server"])
def test_an_interpreter_without_the_extra_is_said_to_lack_it_by_name(missing: str) -> None:
    row = replace(ROW, **{"package": "pytest", "server": "pytest", missing: "no-such-distribution-anywhere"})

    with pytest.raises(LocalModelError) as refused:
        find_installed(row, [sys.executable])

    assert refused.value.what == "not run: a dependency is missing: no-such-distribution-anywhere"
    assert (refused.value.error_code, refused.value.exit_code) == ("LOCAL_MODEL_MISSING", 2)


def test_an_interpreter_that_is_not_there_lacks_it_too(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="a dependency is missing"):
        find_installed(ROW, [str(tmp_path / "python")])


def test_a_distribution_without_weights_is_not_the_one_that_is_meant() -> None:
    row = replace(ROW, package="pytest", server="pluggy")

    with pytest.raises(LocalModelError, match="one file of weights in pytest"):
        find_installed(row, [sys.executable])


def test_the_weights_are_known_by_their_digest(tmp_path: Path) -> None:
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"")

    found = digest_weights(Installed(sys.executable, weights, "stand-in 1.0"), replace(ROW, sha256=EMPTY))

    assert found == f"sha256:{EMPTY}"


@pytest.mark.parametrize("content", [pytest.param(b"x", id="another-file"), pytest.param(None, id="no-file")])
def test_other_weights_are_refused_before_anything_is_started(tmp_path: Path, content: bytes | None) -> None:
    weights = tmp_path / "tiny.gguf"
    if content is not None:
        weights.write_bytes(content)

    with pytest.raises(LocalModelError) as refused:
        digest_weights(Installed(sys.executable, weights, "stand-in 1.0"), replace(ROW, sha256=EMPTY))

    assert refused.value.error_code == "LOCAL_MODEL_DIGEST"
