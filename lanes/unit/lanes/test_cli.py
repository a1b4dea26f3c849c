from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lanes.bundle import BundleHeader, BundleWriter
from lanes.cli import main
from lanes.namespace import Entry, namespace_id
from lanes.observation import not_run
from lanes.record import Subject

PASSING = "def test_passes():\n    pass\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]], ids=["long", "short", "word"])
def test_help_fits_a_screen_and_shows_an_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0

    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 24
    assert "lanes run offline -n 2 -k journeys" in shown


def test_without_a_command_the_overview_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2

    streams = capsys.readouterr()
    assert (streams.out, streams.err.startswith("usage: lanes COMMAND")) == ("", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["reprot"], "'reprot' is no command; did you mean report?", id="near-miss"),
        pytest.param(["offline"], "'offline' is no command; did you mean run offline?", id="a-lane"),
        pytest.param(["xyzzy"], "'xyzzy' is no command [USAGE]", id="nothing-near"),
        pytest.param(["report", "--requier"], "unrecognized arguments: --requier", id="unknown-option"),
        pytest.param(
            ["report", "--require", "unti"], "lane 'unti' is unknown; did you mean 'unit'?", id="unknown-lane"
        ),
        pytest.param(["run"], "the following arguments are required: LANE", id="no-lane"),
        pytest.param(["run", "unit", "-n", "many"], "-n is 'many'", id="workers"),
        pytest.param(["accept", "fixtest"], "story 'fixtest' is not pinned; did you mean 'fix-test'?", id="story"),
    ],
)
def test_a_mistake_is_said_in_words(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANE_MARK", "TOX_ENV_NAME", "CI", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)

    assert main(arguments) == 2

    streams = capsys.readouterr()
    assert (streams.out, message in streams.err) == ("", True)


def test_a_report_fails_when_a_required_lane_left_nothing(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    project.run("run", "unit")

    there = project.run("report", "--require", "unit")
    missing = project.run("report", "--require", "unit,offline")

    assert (there.exit_code, missing.exit_code) == (0, 1)
    assert "lane 'offline' left no evidence about this subject" in missing.stderr


def test_a_report_without_any_evidence_is_no_success(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    assert project.run("report").exit_code == 5


def test_a_record_edited_to_be_live_changes_nothing_but_a_void_line(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    project.run("run", "unit")
    records = project.root / "reports" / "out" / "bundles" / "unit" / "1-of-1" / "records.jsonl"
    text = records.read_text("utf-8")
    records.write_text(
        text.replace('"lane":"unit"', '"lane":"real"').replace('"class":"none"', '"class":"live"'), "utf-8"
    )

    ended = project.run("report")

    assert ended.exit_code == 3
    assert "No claim on this board has been observed against a real model." in ended.stdout
    assert "void (" in ended.stdout


def test_output_that_nobody_reads_ends_without_a_traceback(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    process = project.start("report")
    process.stdout.close()

    error = process.stderr.read()
    process.stderr.close()
    process.wait(60)

    assert "Traceback" not in error


def test_a_stopped_run_ends_its_tests_and_leaves_no_folder_behind(project) -> None:
    os.mkfifo(project.root / "started")
    project.write(
        "lanes/unit/test_a.py",
        "import os, signal\n"
        "def test_waits():\n"
        "    with open('started', 'w') as file:\n"
        "        file.write(f\"{os.getpid()} {os.environ['HOME']}\")\n"
        "    signal.pause()\n",
    )
    process = project.start("run", "unit")
    tests, home = (project.root / "started").read_text("utf-8").split()

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGTERM
    assert subprocess.run(["kill", "-0", tests], check=False, capture_output=True).returncode != 0
    assert not Path(home).exists()


def test_a_required_depth_that_the_machine_does_not_give_voids_the_lane(
    project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("LANE_MARK", "TOX_ENV_NAME", "CI", "LANE_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    project.write("lanes/unit/test_a.py", PASSING)
    monkeypatch.setattr("lanes.runner.enter_namespace", lambda *, loopback: Entry(namespace_id(), "it said no"))
    arguments = ["run", "unit", "--root", str(project.root)]

    shallow, required = main(arguments), main([*arguments, "--require-depth", "D3"])

    assert (shallow, required) == (0, 3)
    assert "guarded at D2 where D3 was required: it said no" in capsys.readouterr().err


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to stand in, outside tox and CI."""
    for name in ("LANE_MARK", "TOX_ENV_NAME", "CI", "LANE_WORKERS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["report"], "there is no folder lanes here", id="report-outside-a-project"),
        pytest.param(["report", "--root", "nowhere"], "there is no folder 'nowhere'", id="report-nowhere"),
        pytest.param(["proofs", "--root", "nowhere"], "there is no folder 'nowhere'", id="proofs-nowhere"),
        pytest.param(["ids", "--root", "nowhere"], "there is no folder 'nowhere'", id="ids-nowhere"),
        pytest.param(["run", "unit"], "there is no folder lanes/unit here", id="run-outside-a-project"),
        pytest.param(["accept"], "there is no folder lanes here", id="accept-outside-a-project"),
        pytest.param(["demo", "--out", ""], "--out names nothing", id="demo-into-nothing"),
    ],
)
def test_a_command_in_the_wrong_place_says_so_and_leaves_nothing(
    arguments: list[str], message: str, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments)

    streams = capsys.readouterr()
    assert (code, streams.out, message in streams.err, "Traceback" in streams.err) == (2, "", True, False)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("command", [["run", "unit"], ["report"]], ids=["run", "report"])
@pytest.mark.parametrize(
    ("out", "message"),
    [
        pytest.param("file", "is no folder", id="file"),
        pytest.param("file/below", "is no folder", id="below-a-file"),
        pytest.param("", "--out names nothing", id="nothing"),
        pytest.param("/proc/evidence", "/proc/evidence", id="where-nothing-can-be-made"),
    ],
)
def test_evidence_that_cannot_be_kept_is_refused_in_words(
    command: list[str], out: str, message: str, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if out.startswith("/proc") and not Path("/proc/self").exists():
        not_run("platform", "there is no /proc here")
    (outside / "lanes" / "unit").mkdir(parents=True)
    (outside / "file").write_text("", "utf-8")

    code = main([*command, "--out", out])

    streams = capsys.readouterr()
    assert (code, streams.out, message in streams.err, "Traceback" in streams.err) == (2, "", True, False)
    assert sorted(path.name for path in outside.iterdir()) == ["file", "lanes"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("header.json", "[" * 100_000),
        ("header.json", '{"schema": "bundle/1"}'),
        ("records.jsonl", "[" * 100_000 + "\n"),
        ("trailer.json", "[" * 100_000),
        ("trailer.json", "7"),
    ],
    ids=["deep-header", "bare-header", "deep-record", "deep-trailer", "no-object"],
)
def test_a_damaged_file_of_evidence_is_void_and_no_traceback(
    name: str, text: str, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (outside / "lanes").mkdir()
    bundle = BundleWriter(
        outside / "reports" / "out" / "bundles" / "unit" / "1-of-1", BundleHeader("unit", "1", Subject())
    )
    bundle.close(canary_end="refused")
    (outside / "reports" / "out" / "bundles" / "unit" / "1-of-1" / name).write_text(text, "ascii")

    code = main(["report"])

    streams = capsys.readouterr()
    assert (code, "void (" in streams.out, streams.err) == (3, True, "")


def test_a_command_whose_packages_are_not_installed_says_how_to_get_them(project) -> None:
    project.write("lanes/unit/test_a.py", "")
    code = "import sys\nsys.modules['_pytest'] = None\nfrom lanes.cli import main\nsys.exit(main(['accept']))\n"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        env=project.environ(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (
        2,
        "the package pytest is not installed here [USAGE]\n  fix: pip install 'five-lanes[lanes]'\n",
    )
