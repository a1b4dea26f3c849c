"""Several processes behind one port, with a real Redis server that these tests start themselves."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import mock_provider
from mock_provider.cli import main
from mock_provider.json_values import JsonObject
from mock_provider.script import load_script

PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
CLIENTS = 64
TALKS = {f"c{at}": [f"c{at} first", f"c{at} second"] for at in range(CLIENTS)}
AUTHORIZED = {"authorization": "Bearer x"}


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis server of our own, with nothing in it."""
    server = shutil.which("redis-server")
    if server is None or not importlib.util.find_spec("redis"):
        pytest.skip("redis-server or the package redis is not installed: workers that share a port are NOT tested")
    with redis_server(server, tmp_path_factory.mktemp("redis")) as (_, url):
        yield url


@contextlib.contextmanager
def redis_server(server: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                assert process.poll() is None
            yield process, f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


def keys_left(url: str) -> set[str]:
    import redis

    with contextlib.closing(redis.Redis.from_url(url, decode_responses=True)) as client:
        return set(client.keys("*")) - {"mock-provider:plays"}


@contextlib.contextmanager
def serving(script: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], JsonObject]]:
    command = [sys.executable, "-m", "mock_provider", "serve", str(script), *options]
    environment = {**os.environ, "PYTHONPATH": PATH_OF_CHILDREN}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.terminate()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "talks.json"
    talks = {name: {"steps": [{"reply": [{"text": text}]} for text in texts]} for name, texts in TALKS.items()}
    held = {"steps": [{"reply": [{"text": "one "}, {"gate": "g"}, {"text": "two"}], "optional": True}]}
    path.write_text(json.dumps({"version": 1, "conversations": {**talks, "held": held}}), encoding="utf-8")
    return path


def body(words: str, *, is_stream: bool = False) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": words}], "stream": is_stream}


def asked(client: httpx.Client, root: str) -> list[tuple[int, list[tuple[str, str]], bytes]]:
    """Some requests of several conversations, and one that fits nothing. Shape: status, headers and body of each."""
    found = []
    for name in ("c0", "c1", "c0", "c2", "c0", "none"):
        with client.stream(
            "POST", f"{root}/c/{name}/v1/chat/completions", json=body("x", is_stream=name == "c1"), headers=AUTHORIZED
        ) as answer:
            found.append((answer.status_code, sorted(answer.headers.items()), answer.read()))
        client.cookies.clear()
    return found


def test_four_workers_two_servers_and_no_socket_at_all_send_the_same_bytes(redis_url: str, script: Path) -> None:
    face = mock_provider.transport(load_script(script))
    with httpx.Client(transport=face) as inside:
        expected = asked(inside, face.mock.root)
    limits = httpx.Limits(max_keepalive_connections=0)  # a connection for every request, so that all workers get some
    with httpx.Client(limits=limits) as client:
        for options in ([], ["--plain"], ["--workers", "4", "--redis", redis_url]):
            with serving(script, *options) as (_, ready):
                assert asked(client, str(ready["root"])) == expected
    assert [status for status, _, _ in expected] == [200, 200, 200, 200, 400, 400]


async def test_many_clients_at_once_each_get_their_own_steps_and_the_verdict_counts_them_all(
    redis_url: str, script: Path, tmp_path: Path
) -> None:
    async def talk(name: str, root: str) -> list[str]:
        said = []
        async with httpx.AsyncClient(headers={"authorization": f"Bearer sk-mock-{name}"}) as client:
            for _ in range(2):
                answer = await client.post(f"{root}/v1/chat/completions", json=body("x"))
                said.append(answer.json()["choices"][0]["message"]["content"])
        return said

    journal = tmp_path / "journal.jsonl"
    with serving(script, "--workers", "4", "--redis", redis_url, "--journal", str(journal)) as (process, ready):
        root = str(ready["root"])
        found = await asyncio.gather(*(talk(name, root) for name in TALKS))
        async with httpx.AsyncClient() as client:
            verdict = (await client.get(f"{root}/__mock__/verify")).json()
            seen = (await client.get(f"{root}/__mock__/journal")).json()["entries"]
        process.terminate()
        _, told = process.communicate(timeout=60)
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert found == list(TALKS.values())
    assert (verdict["ok"], verdict["used"], process.returncode) == (True, 2 * CLIENTS, 0)
    assert [entry["number"] for entry in seen] == list(range(1, 2 * CLIENTS + 1))
    assert sorted(line["number"] for line in lines) == list(range(1, 2 * CLIENTS + 1))
    assert {line["end"] for line in lines} == {"complete"}
    assert ("as scripted" in told, "Traceback" in told, keys_left(redis_url)) == (True, False, set())


async def test_a_gate_opened_at_one_worker_lets_the_answer_of_another_go_on(redis_url: str, script: Path) -> None:
    with serving(script, "--workers", "3", "--redis", redis_url) as (_, ready):
        root = str(ready["root"])
        async with httpx.AsyncClient() as client:
            waiting = asyncio.ensure_future(
                client.post(f"{root}/c/held/v1/chat/completions", json=body("x", is_stream=True), headers=AUTHORIZED)
            )
            while not (await once(f"{root}/__mock__/gates/g"))["reached"]:
                assert not waiting.done()
            assert (await once(f"{root}/__mock__/gates/g", "POST"))["open"] is True
            assert b"two" in (await waiting).content


async def once(url: str, method: str = "GET") -> JsonObject:
    """One request on a connection of its own, which any worker may get."""
    async with httpx.AsyncClient() as client:
        found: JsonObject = (await client.request(method, url)).json()
        return found


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def test_a_worker_that_dies_ends_the_server_and_is_named(redis_url: str, script: Path) -> None:
    with serving(script, "--workers", "2", "--redis", redis_url) as (process, _):
        children = children_of(process.pid)
        os.kill(children[0], signal.SIGKILL)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, "[WORKERS]" in told, "Traceback" in told) == (1, True, False)
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
    assert keys_left(redis_url) == set()


def test_workers_do_not_outlive_the_one_that_looks_after_them(redis_url: str, script: Path) -> None:
    with serving(script, "--workers", "2", "--redis", redis_url) as (process, _):
        children = children_of(process.pid)
        process.kill()
        process.wait()
        while any(Path(f"/proc/{pid}").exists() and "Z" not in state_of(pid) for pid in children):
            os.sched_yield()


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def test_a_redis_server_that_goes_away_ends_the_server(redis_url: str, script: Path, tmp_path: Path) -> None:
    del redis_url  # only whether there may be one
    with (
        redis_server(str(shutil.which("redis-server")), tmp_path) as (redis, url),
        serving(script, "--workers", "2", "--redis", url) as (process, ready),
    ):
        redis.kill()
        redis.wait()
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.post(f"{ready['root']}/c/c0/v1/chat/completions", json=body("x"), headers=AUTHORIZED)
            assert answer.status_code == 503
        _, told = process.communicate(timeout=60)
    assert (process.returncode, "the Redis server is lost" in told, "Traceback" in told) == (1, True, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--workers", "2"], "2 workers need a place where they agree on what happened", id="no-redis"),
        pytest.param(["--workers", "0", "--redis", "redis://x"], "0 workers", id="none"),
        pytest.param(["--workers", "65", "--redis", "redis://x"], "65 workers", id="too-many"),
        pytest.param(["--redis", "redis://x", "--watch"], "workers do not change their script", id="watch"),
        pytest.param(
            ["--workers", "2", "--redis", "redis://:pass-word@127.0.0.1:1"], "no Redis server answers", id="down"
        ),
        pytest.param(["--workers", "2", "--redis", "http://x"], "no Redis server answers", id="no-url"),
    ],
)
def test_workers_that_cannot_agree_are_refused_at_once(
    script: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["serve", str(script), *options]) == 2
    told = capsys.readouterr().err
    assert (said in told, "pass-word" in told) == (True, False)
