"""The field case of long lines: each size arrives whole at the real servers and at the clients of both languages."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
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
WIRES = ("sdk", "acp")
SIZES: list[int] = json.loads((CASES / "B26-long-lines.json").read_text("utf-8"))["line_bytes"]
RAIN = "雨"  # three bytes in UTF-8


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
