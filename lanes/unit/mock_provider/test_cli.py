"""The command: scripts checked, served, and commands run against them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from mock_provider.cli import main
from mock_provider.serving import warn_about_host

# Children find the packages where nothing is installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
GOOD = "version: 1\nmodel: m\nsteps:\n  - {reply: hi, gate: g}\n"
PLAIN = "version: 1\nsteps:\n  - reply: hi\n"
ASK = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
for _ in range(int(sys.argv[1])):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    request.add_header("Authorization", "Bearer " + os.environ["OPENAI_API_KEY"])
    try:
        print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
    except urllib.error.HTTPError as error:
        print(json.load(error)["error"]["code"])
"""


def run(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mock_provider", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN, **(environment or {})},
        check=False,
        timeout=60,
    )


@pytest.fixture
def plain(tmp_path: Path) -> str:
    path = tmp_path / "plain.yaml"
    path.write_text(PLAIN, encoding="utf-8")
    return str(path)


def test_check_prints_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert main(["check", str(path)]) == 0
    assert (
        capsys.readouterr().out
        == f"{path}: ok: 1 conversation, 1 step\n  (single): 1 step, takes any request\n  gates: g\n"
    )


def test_check_reports_every_problem_of_every_file_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nsteps:\n  - {rply: hi}\n  - {reply: 3}\n", encoding="utf-8")
    assert main(["check", "--format", "json", str(path), str(tmp_path / "none.yaml")]) == 2
    found = json.loads(capsys.readouterr().out)
    assert [
        [(one["line"], one["column"], one["code"]) for one in script["problems"]] for script in found["scripts"]
    ] == [
        [(3, 5, "SCRIPT_MISSING"), (3, 6, "SCRIPT_KEY"), (4, 13, "SCRIPT_TYPE")],
        [(0, 0, "SCRIPT_UNREADABLE")],
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["srve", "x"], "command 'srve' is unknown; did you mean 'serve'? [USAGE]", id="command"),
        pytest.param([], "arguments are required: serve|run|check|explain|new|schema|record [USAGE]", id="nothing"),
        pytest.param(["run", "{script}"], "no command to run [USAGE]", id="no-command"),
        pytest.param(["run", "{script}", "--", "no-such-program"], "cannot start 'no-such-program'", id="not-found"),
        pytest.param(
            ["serve", "{script}", "--port", "x"], "argument --port: invalid int value: 'x' [USAGE]", id="port"
        ),
        pytest.param(
            ["run", "{script}", "--port", "99999", "--", "true"], "cannot listen on 127.0.0.1:99999", id="range"
        ),
        pytest.param(["run", "none.yaml", "--", "true"], "none.yaml: cannot be read", id="no-script"),
        pytest.param(["serve", "{script}", "--journal", "none/none/j"], "the journal cannot be written", id="journal"),
        pytest.param(
            ["serve", "{script}", "--ready-file", "none/none/r"], "the ready file cannot be written", id="ready"
        ),
        pytest.param(["run", "{script}", "--grace", "-1", "--", "true"], "--grace -1 is no time", id="grace-negative"),
        pytest.param(["run", "{script}", "--grace", "0", "--", "true"], "--grace 0 is no time", id="grace-zero"),
        pytest.param(["run", "{script}", "--grace", "nan", "--", "true"], "--grace nan is no time", id="grace-nan"),
        pytest.param(["run", "{script}", "--grace", "inf", "--", "true"], "--grace inf is no time", id="grace-inf"),
        pytest.param(
            ["serve", "{script}", "--journal", "{script}"], "the journal and the script are one file", id="one-file"
        ),
        pytest.param(
            ["serve", "{script}", "--ready-file", "{script}"],
            "the ready file and the script are one file",
            id="ready-is-script",
        ),
        pytest.param(
            ["serve", "{script}", "--journal", "j", "--ready-file", "./j"],
            "the ready file and the journal are one file",
            id="ready-is-journal",
        ),
        pytest.param(["explain", "{script}", "/dev/zero", "--limit", "body=9"], "10 bytes are more than 9", id="zero"),
        pytest.param(["explain", "{script}", "{script}"], "not JSON", id="request-not-json"),
    ],
)
def test_a_mistake_on_the_command_line_exits_2_without_a_traceback(
    plain: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main([one.replace("{script}", plain) for one in arguments]) == 2
    error = capsys.readouterr().err
    assert (said in error, "Traceback" in error) == (True, False)


def test_a_request_nested_without_end_is_told(plain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000, encoding="utf-8")
    assert main(["explain", plain, str(deep)]) == 2
    assert f"{deep}: nested too deep [USAGE]" in capsys.readouterr().err


def test_a_request_with_a_byte_order_mark_is_read(plain: str, tmp_path: Path) -> None:
    marked = tmp_path / "marked.json"
    marked.write_bytes(b'\xef\xbb\xbf{"model": "m", "messages": [{"role": "user", "content": "x"}]}')
    assert main(["explain", plain, str(marked)]) == 0


def test_new_leaves_no_half_a_script_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def starter_of_no_room(name: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mock_provider.cli.starter", starter_of_no_room)
    assert main(["new", str(tmp_path / "x.yaml")]) == 2
    assert (list(tmp_path.iterdir()), "No space left on device" in capsys.readouterr().err) == ([], True)


def test_a_command_that_is_interrupted_says_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "script.yaml"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [sys.executable, "-m", "mock_provider", "check", str(pipe)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN},
        ) as process,
        pipe.open("wb"),
    ):  # opens when the command does, which then reads
        process.send_signal(signal.SIGINT)
        ended = process.communicate(timeout=60)
    assert (process.returncode, *ended) == (130, b"", b"")


@pytest.mark.parametrize(
    ("times", "code", "verdict"),
    [
        pytest.param(1, 0, "as scripted: steps used 1, left over 0, unmatched 0, invalid 0", id="as-scripted"),
        pytest.param(2, 3, "not as scripted: steps used 1, left over 0, unmatched 1, invalid 0", id="one-too-many"),
        pytest.param(0, 3, "not as scripted: steps used 0, left over 1, unmatched 0, invalid 0", id="left-over"),
    ],
)
def test_run_judges_the_play(plain: str, times: int, code: int, verdict: str) -> None:
    ended = run("run", plain, "--", sys.executable, "-c", ASK, str(times))
    assert (ended.returncode, f"{plain}: {verdict}" in ended.stderr) == (code, True)
    assert ended.stdout.split() == ["hi", "mock_unmatched"][:times]


@pytest.mark.parametrize(
    ("more", "seed"), [pytest.param([], 5, id="of-the-script"), pytest.param(["--seed", "9"], 9, id="of-the-person")]
)
def test_the_seed_of_faults_by_lot_is_printed_and_can_be_chosen(tmp_path: Path, more: list[str], seed: int) -> None:
    path = tmp_path / "lots.yaml"
    path.write_text(
        "version: 1\nfault: {random: {weights: {none: 1}, seed: 5}}\nsteps: [{reply: hi}]\n", encoding="utf-8"
    )
    ended = run("run", str(path), *more, "--", sys.executable, "-c", ASK, "1")
    told = f"random faults, seed {seed}"
    counts = "steps used 1, left over 0, unmatched 0, invalid 0"
    assert ended.stderr.splitlines() == [
        f"mock-provider: {told}",
        f"mock-provider: {path}: as scripted: {counts}; {told}",
    ]


def test_run_logs_requests_and_keeps_limits_when_told(plain: str) -> None:
    ended = run("run", plain, "--log", "text", "--limit", "body=10", "--", sys.executable, "-c", ASK, "1")
    assert "#1 POST /v1/chat/completions → 413, complete: the request body of " in ended.stderr
    assert "is over the limit of 10 bytes" in ended.stderr


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [pytest.param([], 0, "hi", id="as-they-come"), pytest.param(["--strict-fields"], 3, "None", id="strict")],
)
def test_fields_that_the_provider_does_not_know_are_refused_when_told(
    plain: str, more: list[str], code: int, said: str
) -> None:
    ask = ASK.replace('"model": "m"', '"model": "m", "colour": "red"')
    ended = run("run", plain, *more, "--", sys.executable, "-c", ask, "1")
    assert (ended.returncode, ended.stdout.split()) == (code, [said])
    assert ("rule extra_field" in ended.stderr) is (code == 3)


def test_run_gives_the_exit_code_of_the_command(plain: str) -> None:
    ended = run("run", plain, "--", sys.executable, "-c", ASK + "\nsys.exit(7)", "1")
    assert ended.returncode == 7


def test_run_covers_real_keys_and_keeps_proxies_out(plain: str) -> None:
    names = "OPENAI_API_KEY ANTHROPIC_API_KEY DEEPSEEK_API_KEY GEMINI_API_KEY OLLAMA_HOST ANTHROPIC_BASE_URL NO_PROXY"
    show = f"import os; print(*[os.environ[name] for name in '{names}'.split()])"
    ended = run(
        "run", plain, "--", sys.executable, "-c", show, environment={"OPENAI_API_KEY": "sk-real", "NO_PROXY": "a.b"}
    )
    words = ended.stdout.split()
    assert words[:4] == ["sk-mock"] * 4
    assert words[4] == words[5]
    assert (words[4].startswith("http://127.0.0.1:"), words[6]) == (True, "a.b,127.0.0.1,localhost")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_run_passes_signals_on(plain: str, number: signal.Signals) -> None:
    wait = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\nsignal.pause()\n"
    )
    with started("run", plain, "--", sys.executable, "-c", wait) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, "left over 1" in error) == (3, True)


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mock_provider", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN},
    )


@pytest.mark.parametrize(("asks", "code"), [pytest.param(1, 0, id="as-scripted"), pytest.param(0, 3, id="left-over")])
def test_serve_says_when_it_is_ready_and_judges_at_the_end(tmp_path: Path, plain: str, asks: int, code: int) -> None:
    ready, journal = tmp_path / "ready.json", tmp_path / "journal.jsonl"
    with started("serve", plain, "--ready-file", str(ready), "--journal", str(journal)) as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert json.loads(ready.read_text(encoding="utf-8")) == line
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        for _ in range(asks):
            url = f"{line['base_urls']['openai_chat']}/chat/completions"
            assert httpx.post(url, json=body, headers={"authorization": "Bearer x"}).status_code == 200
        process.send_signal(signal.SIGHUP if asks else signal.SIGTERM)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in error, ready.exists()) == (code, False, False)
    assert len(journal.read_text(encoding="utf-8").splitlines()) == asks


def test_a_host_that_others_can_reach_warns(capsys: pytest.CaptureFixture[str]) -> None:
    for host in ("127.0.0.1", "localhost", "0.0.0.0"):
        warn_about_host(host)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "0.0.0.0 is not loopback, other machines can reach this provider" in said[0]
