"""The field cases of long lines and of bad lines, through the real servers and the clients of both languages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.client import HarnessClient, Launch
from lanes.channels import Channels
from lanes.offline.surfaces.wire import MODEL, PROVIDER, RealServer, events
from lanes.plugin import not_run
from lanes.policy import DUMMY_KEY
from lanes.program import Program, console_command
from mock_provider.json_values import JsonObject
from mock_provider.replies import script, step, text, tool_call

CASES = Path(__file__).parents[2] / "cases" / "rpc"
NODE_CLIENT = Path(__file__).parents[3] / "clients" / "node" / "harness_client.mjs"
FILES = {
    "B26-long-lines.json": "1b9bf019500cd59a96c2fa5d62d8e908da7ee8f24b493bab811f07a0235481fa",
    "B27-stray-output.json": "ebaeab2fddec4626c4b655999ca9c342a53b26d332a990dc11f1df7d2a11207c",
    "B28-bad-lines.ndjson": "63876aa1217e67717efc1352d27859c4dc2f0005dc00da1522b3eaa2f93f4101",
    "B28-expected.json": "1e138c80ac2e3b9769696b32a070175fff7c51446334c6de744497fcbc505b1d",
    "B29-cancel-races.json": "7594cb1c2e3611d90b4a3a14b6ca3d26d88ffcdf6124a7c897d509fb1353d049",
}
WIRES = ("sdk", "acp")
SIZES: list[int] = json.loads((CASES / "B26-long-lines.json").read_text("utf-8"))["line_bytes"]
RAIN = "雨"  # three bytes in UTF-8
LIMIT_BYTES = 128 << 20  # the documented one
OWN_BYTES = 400 << 20  # what a server may hold beside the line it reads: it is decoded, parsed and taken apart
EXIT_S = 2.0  # the bound of the case for leaving at the end of the input
BUSY_S = 20.0  # what a machine with much else to do may add to it: the start of the program stands before it
SAID = script(*(step(f"Read {number}.") for number in range(1, 3)))


@pytest.mark.parametrize("name", FILES)
def test_the_case_files_of_the_wires_are_byte_exact(name: str) -> None:
    assert hashlib.sha256((CASES / name).read_bytes()).hexdigest() == FILES[name]


def line_of(server: RealServer, session: str, size: int, padding: str) -> tuple[int, bytes, str]:
    """A prompt whose line has exactly that many bytes without its end: its id, the line, its text."""
    blocks: list[Any] = [{"type": "text", "text": ""}]
    name = "prompt" if server.wire == "acp" else "contentBlocks"
    identity = server.next_id()
    frame = {"jsonrpc": "2.0", "id": identity, "method": "session/prompt"}

    def spelled(text: str) -> bytes:
        blocks[0]["text"] = text
        params = {"sessionId": session, name: blocks}
        return json.dumps({**frame, "params": params}, ensure_ascii=False).encode()

    room = size - len(spelled(""))
    text = padding * (room // len(padding.encode()))
    text += "x" * (room - len(text.encode()))
    line = spelled(text)
    assert len(line) == size
    return identity, line + b"\n", text


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("way", ["x", RAIN, "pieces"], ids=["x", "three-byte-characters", "in-pieces"])
@pytest.mark.parametrize("wire", WIRES)
def test_case_B26_a_line_of_each_size_arrives_whole_and_later_requests_are_answered(
    wire: str, way: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(script(*(step(f"Read {size}.") for size in SIZES), step("Still here.")))
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        session = server.open_session()
        texts = []
        for number, size in enumerate(SIZES, start=1):
            identity, line, padded = line_of(server, session, size, RAIN if way == RAIN else "x")
            (server.write_slowly if way == "pieces" else server.write)(line)
            server.answer(identity)
            server.ended(number)
            texts.append(padded)
        server.answer(server.prompt(session, "after"))
        endings = server.ended(len(SIZES) + 1)
        said = server.texts()
        assert server.leave() == 0

    assert set(endings) == {"completed"} if wire == "sdk" else {"end_turn"} == set(endings)
    assert said == [*(f"Read {size}." for size in SIZES), "Still here."]
    sent = mock.journal.entries[-1].body["messages"]
    assert [message["content"] for message in sent if message["role"] == "user"] == [*texts, "after"]


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B26_a_line_over_the_limit_is_dropped_with_one_message_and_framing_goes_on(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(SAID, is_judged=False)
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        server.write(b'{"jsonrpc":"2.0","id":"long","method":"no/such","params":{"a":"')
        for _ in range(LIMIT_BYTES // (1 << 20)):
            server.write(b"x" * (1 << 20))
        server.write(b'"}}\n')
        answer = server.ask("no/such/method", {})
        held = server.memory_peak_bytes
        assert server.leave() == 0

    assert answer["code"] == -32601
    assert [frame.get("id") for frame in server.frames].count("long") == 0
    (line,) = server.errors.decode().splitlines()
    assert str(LIMIT_BYTES) in line
    assert held < LIMIT_BYTES + OWN_BYTES


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B26_a_line_that_never_ends_holds_bounded_memory_and_the_process_leaves_at_the_end(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(SAID, is_judged=False)
    with RealServer(wire, tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        before = server.memory_peak_bytes
        for _ in range(64):
            server.write(b"x" * (1 << 20))
        server.drained()
        grown = server.memory_peak_bytes - before
        assert (server.leave(), server.errors) == (0, b"")

    assert grown < LIMIT_BYTES


@pytest.fixture
def long_answers() -> JsonObject:
    """An answer for each size, long enough that the line that tells of it passes that size."""
    cut = 1_000_000  # the longest piece that a script may hold
    pieces = [[text("x" * min(cut, size - at)) for at in range(0, size, cut)] for size in SIZES]
    return script(*(step(*parts) for parts in pieces), step("Still here."))


@pytest.mark.claim("wire.field-cases")
def test_case_B26_answers_of_each_size_reach_an_acp_client_whole(
    long_answers: JsonObject, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(long_answers)
    with RealServer("acp", tmp_path, mock.base_url("openai_chat")) as server:
        server.hello()
        session = server.open_session()
        for number in range(len(SIZES) + 1):
            server.answer(server.prompt(session, f"say {number}"))
        said = server.texts()
        assert server.leave() == 0

    assert [len(text) for text in said] == [*SIZES, len("Still here.")]
    assert set("".join(said[:-1])) == {"x"}


@pytest.mark.claim("wire.field-cases")
async def test_case_B26_answers_of_each_size_reach_the_python_client_whole(
    long_answers: JsonObject, channels: Channels, tmp_path: Path
) -> None:
    mock = channels.loopback(long_answers)
    async with HarnessClient(launch(tmp_path, mock.base_url("openai_chat"))) as client:
        said = [await client.run(f"say {n}", session_id="s", timeout_s=90) for n in range(len(SIZES) + 1)]

    assert [len(result.final_response) for result in said] == [*SIZES, len("Still here.")]
    assert {result.finish_reason for result in said} == {"completed"}


NODE_RUNS = """
import {{ HarnessClient }} from {client};
const client = new HarnessClient({launch});
const lengths = [];
for (let n = 0; n < {count}; n += 1) {{
  lengths.push((await client.run(`say ${{n}}`, {{ sessionId: "s", timeoutS: 90 }})).finalResponse.length);
}}
await client.close();
process.stdout.write(JSON.stringify(lengths));
"""


@pytest.mark.claim("wire.field-cases")
async def test_case_B26_answers_of_each_size_reach_the_node_client_whole(
    long_answers: JsonObject, channels: Channels, tmp_path: Path
) -> None:
    if shutil.which("node") is None:
        not_run("missing-dependency", "node")
    mock = channels.loopback(long_answers)
    asked = launch(tmp_path, mock.base_url("openai_chat"))
    spelled = {"cwd": str(asked.cwd), "provider": asked.provider, "model": asked.model, "command": list(asked.command)}
    words = {"client": json.dumps(NODE_CLIENT.as_uri()), "launch": json.dumps(spelled), "count": len(SIZES) + 1}
    program = tmp_path / "runs.mjs"
    program.write_text(NODE_RUNS.format(**words), "utf-8")

    done = await asyncio.to_thread(
        subprocess.run,
        ["node", str(program)],
        env=asked.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [*SIZES, len("Still here.")]


@pytest.mark.claim("wire.field-cases")
def test_case_B26_a_tool_result_past_the_usual_limit_reaches_the_client_whole(
    channels: Channels, tmp_path: Path
) -> None:
    read = tool_call("read_file", {"path": "rain.txt"})
    mock = channels.loopback(script(step(read), step("Read.", expect={"tool_result": {"contains": RAIN * 59_000}})))
    with RealServer("sdk", tmp_path, mock.base_url("openai_chat")) as server:
        (server.workspace / "rain.txt").write_text(RAIN * 59_000, "utf-8")
        server.hello()
        server.answer(server.prompt("s", "read it"))
        assert server.ended(1) == ["completed"]
        (result,) = [event for event in events(server.frames) if event["type"] == "tool/result"]
        assert server.leave() == 0

    (block,) = result["data"]["message"]["content"]
    assert block["content"][0]["text"].count(RAIN) == 59_000


def launch(folder: Path, base_url: str) -> Launch:
    """The program as a client starts it."""
    workspace, sessions = folder / "workspace", folder / "sessions"
    workspace.mkdir()
    own = {"OPENAI_API_KEY": DUMMY_KEY, "OPENAI_BASE_URL": base_url, "HARNESS_SESSION_ROOT": str(sessions)}
    return Launch(
        cwd=workspace,
        provider=PROVIDER,
        model=MODEL,
        command=[*console_command("harness"), "sdk"],
        environment={**Program(workspace, sessions, base_url).environment(), **own},
        request_timeout_s=60,
    )


# bad lines


def bad_lines() -> Iterator[tuple[bytes, str | None, int | None]]:
    """Each line of the case with the id and the code it is answered with, where it is."""
    lines = (CASES / "B28-bad-lines.ndjson").read_bytes().splitlines(keepends=True)
    replies = json.loads((CASES / "B28-expected.json").read_text("utf-8"))["replies"]
    for line, reply in zip(lines, replies, strict=True):
        yield line, reply.get("id"), reply.get("code")


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B28_good_lines_are_answered_and_bad_ones_not_and_the_process_leaves_at_the_end(
    wire: str, channels: Channels, tmp_path: Path
) -> None:
    base_url = channels.loopback(SAID, is_judged=False).base_url("openai_chat")
    with RealServer(wire, tmp_path, base_url) as server:
        server.write((CASES / "B28-bad-lines.ndjson").read_bytes())
        begin = time.monotonic()
        assert (server.leave(), server.errors) == (0, b"")
        took_s = time.monotonic() - begin

    assert took_s < EXIT_S + BUSY_S
    found = {frame["id"]: frame["error"]["code"] for frame in server.frames}
    assert found == {identity: code for _, identity, code in bad_lines() if identity is not None}


@pytest.mark.claim("wire.field-cases")
@pytest.mark.parametrize("wire", WIRES)
def test_case_B28_the_server_is_alive_after_every_line(wire: str, channels: Channels, tmp_path: Path) -> None:
    base_url = channels.loopback(SAID, is_judged=False).base_url("openai_chat")
    with RealServer(wire, tmp_path, base_url) as server:
        *whole, (unfinished, _, _) = bad_lines()
        for line, identity, code in whole:
            server.write(line)
            if identity is not None:
                assert server.answer(identity)["code"] == code
            assert server.hello()
        server.write(unfinished)
        assert (server.leave(), server.errors) == (0, b"")
    assert all("L" not in str(frame.get("id")) or frame["id"] in {"L1", "L9", "L12"} for frame in server.frames)
