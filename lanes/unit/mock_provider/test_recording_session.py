"""`mock-provider record` as a command: a whole session, its files, and nothing when it ends badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from mock_provider.cli import main
from mock_provider.json_values import JsonObject
from mock_provider.recording.session import child_environment
from mock_provider.replies import http_error, script, step
from mock_provider.script import load_script
from mock_provider.server import ServerThread

# Children find the packages where nothing is installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
HEADERS = {"authorization": "Bearer sk-real-canary-0001"}
ASK = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
request.add_header("Authorization", "Bearer " + os.environ["OPENAI_API_KEY"])
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
sys.exit(int(sys.argv[1]))
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mock_provider", "record", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN, "OPENAI_API_KEY": "sk-real-canary-0001"},
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=["term", "int", "hup"])
def test_a_session_that_is_stopped_leaves_both_files(tmp_path: Path, number: signal.Signals) -> None:
    out, ready = tmp_path / "out", tmp_path / "ready.json"
    with (
        ServerThread(script(step("hi"), http_error(503))) as mock,
        started("--upstream", mock.root, "--out", str(out), "--ready-file", str(ready)) as process,
    ):
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert json.loads(ready.read_text(encoding="utf-8")) == line
        url = f"{line['base_urls']['openai']}/chat/completions"
        assert [httpx.post(url, json=BODY, headers=HEADERS).status_code for _ in range(2)] == [200, 503]
        process.send_signal(number)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, ready.exists()) == (0, False)
    assert "cassette.yaml, script.yaml: 1 answer recorded; 1 answer left out: may pass at another time" in error
    written = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert (sorted(written), "canary" in str(written)) == (["cassette.yaml", "script.yaml"], False)
    assert len(load_script(out / "script.yaml").conversations[0].steps()) == 1


def test_a_session_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        ServerThread(script(step("hi"))) as mock,
        started("--upstream", mock.root, "--out", str(out)) as process,
    ):
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        httpx.post(f"{line['base_urls']['openai']}/chat/completions", json=BODY, headers=HEADERS)
        process.kill()
        process.communicate(timeout=30)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [0, 7])
def test_a_command_is_recorded_and_gives_the_exit_code(tmp_path: Path, code: int) -> None:
    out = tmp_path / "out"
    with (
        ServerThread(script(step("hi"))) as mock,
        started("--upstream", mock.root, "--out", str(out), "--", sys.executable, "-c", ASK, str(code)) as process,
    ):
        said, error = process.communicate(timeout=60)
    assert (process.returncode, said, "Traceback" in error) == (code, "hi\n", False)
    interactions = yaml.safe_load((out / "cassette.yaml").read_text(encoding="utf-8"))["interactions"]
    assert [one["request"]["uri"] for one in interactions] == ["http://127.0.0.1/v1/chat/completions"]


@pytest.mark.parametrize(
    ("program", "before"),
    [
        pytest.param("", "", id="success"),
        pytest.param("raise SystemExit(7)", "mock-provider: the command ended with exit code 7\n", id="failure"),
    ],
)
def test_a_session_without_requests_writes_nothing_and_says_what_was_expected_and_how_to_mend_it(
    tmp_path: Path, program: str, before: str
) -> None:
    out = tmp_path / "out"
    with started("--upstream", "http://127.0.0.1:1", "--out", str(out), "--", sys.executable, "-c", program) as process:
        _, error = process.communicate(timeout=60)
    assert (process.returncode, out.exists()) == (1, False)
    assert error == (
        f"{before}{out}: nothing was recorded: no request came in [RECORDING]\n"
        "  expected: one request at least, to the address of this recording\n"
        "  fix: let the program take its base URL from the variable that the recording sets (OPENAI_BASE_URL, "
        "DEEPSEEK_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_HOST, AWS_ENDPOINT_URL_BEDROCK_RUNTIME)"
        ", or give it the address that the recording prints\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--upstream", "nowhere", "--out", "{new}"], "'nowhere' is no address", id="address"),
        pytest.param(["--out", "{new}"], "the following arguments are required: --upstream", id="no-upstream"),
        pytest.param(["--upstream", "http://127.0.0.1:1", "--out", "{full}"], "the folder is not empty", id="folder"),
        pytest.param(
            ["--upstream", "http://127.0.0.1:1", "--out", "{new}", "--port", "99999", "--", "true"],
            "cannot listen on 127.0.0.1:99999",
            id="port",
        ),
        pytest.param(
            ["--upstream", "http://127.0.0.1:1", "--out", "{new}", "--", "no-such-program"],
            "cannot start 'no-such-program'",
            id="command",
        ),
    ],
)
def test_a_mistake_exits_2_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine", encoding="utf-8")
    given = [one.replace("{new}", str(tmp_path / "new")).replace("{full}", str(full)) for one in arguments]
    assert main(["record", *given]) == 2
    error = capsys.readouterr().err
    assert (said in error, "Traceback" in error, (tmp_path / "new").exists()) == (True, False, False)


def test_the_environment_of_a_command_has_the_address_and_the_persons_own_keys() -> None:
    environment = child_environment("http://127.0.0.1:5", {"OPENAI_API_KEY": "sk-real", "no_proxy": "a.b"})
    wanted = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "NO_PROXY")
    assert [environment[name] for name in wanted] == [
        "http://127.0.0.1:5/v1",
        "http://127.0.0.1:5",
        "sk-real",
        "a.b,127.0.0.1,localhost",
    ]
