"""Whole runs of a tiny project by the real command: what they hide, refuse, share and leave."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lanes.record import comparable

PASSING = "def test_passes():\n    pass\n"
CLAIM = """
schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "It holds."
surface = "none"
required = ["LANE"]
owner = "us"
"""
SWALLOWED = "import socket\ntry:\n    socket.getaddrinfo('example.com', 80)\nexcept Exception:\n    pass\n"


def test_lane_01_keys_are_absent_inside_and_counted_and_written_nowhere(project) -> None:
    project.write(
        "lanes/offline/test_keys.py",
        "import os\n"
        "def test_no_key():\n"
        "    assert [name for name in os.environ if 'KEY' in name or 'TOKEN' in name] == []\n",
    )

    ended = project.run("run", "offline", DEEPSEEK_API_KEY="sk-canary-0f3e9b", FORGE_TOKEN="tok-canary-456")

    written = b"".join(path.read_bytes() for path in project.root.rglob("*") if path.is_file())
    assert (ended.exit_code, project.bundle("offline").header.keys_removed) == (0, 2)
    assert b"-canary-" not in written
    assert "-canary-" not in ended.stdout + ended.stderr


def test_lane_72_a_key_that_reaches_the_output_is_removed_with_its_file(project) -> None:
    key = project.write("key.txt", "sk-canary-0f3e9b")
    project.write("lanes/unit/test_leak.py", f"def test_leak():\n    assert open({str(key)!r}).read() == ''\n")

    ended = project.run("run", "unit", OPENAI_API_KEY="sk-canary-0f3e9b")

    out = project.root / "reports" / "out"
    assert ended.exit_code == 3
    assert "records.jsonl held the value of a key and was removed" in ended.stderr
    assert not any(b"sk-canary-0f3e9b" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_lane_72_evidence_of_another_lane_is_not_touched_by_the_search_for_a_key(project) -> None:
    project.write("lanes/unit/test_word.py", "def test_a_word_like_sk_canary_0f3e9b(): pass\n")
    project.write("lanes/replay/test_a.py", PASSING)
    project.run("run", "unit")
    bundle = project.root / "reports" / "out" / "bundles" / "unit"
    before = {path.name: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}

    ended = project.run("run", "replay", OPENAI_API_KEY="sk_canary_0f3e9b")

    after = {path.name: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    assert (ended.exit_code, after) == (0, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("ofline",), "lane 'ofline' is unknown; did you mean 'offline'? [USAGE]", id="near-miss"),
        pytest.param(("replay",), "lane 'replay': there is no folder lanes/replay here [USAGE]", id="no-folder"),
        pytest.param(("unit", "-p", "no:lanes.plugin"), "option '-p' could change what a lane is", id="plugin-off"),
        pytest.param(("unit", "-pno:lanes.plugin"), "option '-pno:lanes.plugin' could change", id="plugin-off-joined"),
        pytest.param(("unit", "--rootdir=/"), "option '--rootdir=/' could change what a lane is", id="another-root"),
        pytest.param(("unit", "-vo", "python_files=a.py"), "ignored explicit argument 'o'", id="options-in-one-word"),
        pytest.param(("unit", "@arguments.txt"), "option '@arguments.txt' could change", id="arguments-in-a-file"),
        pytest.param(("unit", "--shard", "3/2"), "--shard is '3/2' [USAGE]", id="shard-out-of-range"),
        pytest.param(("unit", "--run-id", "../x"), "--run-id is '../x' [USAGE]", id="run-id"),
    ],
)
def test_a_mistake_on_the_command_line_is_said_in_words_and_starts_nothing(
    project, arguments: tuple[str, ...], message: str
) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", *arguments)

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (project.root / "reports").exists()


def test_marker_and_argument_that_disagree_start_nothing(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit", LANE_MARK="offline", TOX_ENV_NAME="unit")

    assert (ended.exit_code, "[LANE_MARK]" in ended.stderr) == (2, True)


def test_a_test_of_another_lane_is_refused_by_its_folder(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    project.write("lanes/offline/test_b.py", PASSING)

    ended = project.run("run", "unit", "lanes/offline")

    assert (ended.exit_code, project.records("unit")) == (2, {})
    assert "a test outside lanes/unit cannot run in lane 'unit'" in ended.stdout


def test_a_test_with_fewer_answers_than_its_claim_asks_for_fails(project) -> None:
    project.write("lanes/claims.toml", CLAIM.replace("LANE", "offline") + "min_answers = { offline = 1 }\n")
    project.write("lanes/offline/test_a.py", f"import pytest\n@pytest.mark.claim('a.claim')\n{PASSING}")

    ended = project.run("run", "offline")

    record = project.records("offline")["test_passes"]
    assert (ended.exit_code, record.verdict, record.reason_code) == (1, "failed", "too-few-answers")
    assert record.claim_ids == ("a.claim",)


def test_two_runs_write_equal_records_apart_from_times_also_with_workers_and_in_random_order(project) -> None:
    project.write(
        "lanes/unit/test_a.py", "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_a(n): pass\n"
    )
    project.write("lanes/unit/test_b.py", PASSING)
    seen = []
    for arguments in ((), ("-n", "2", "--random-order")):
        assert project.run("run", "unit", *arguments).exit_code == 0
        records = sorted(project.bundle("unit").records, key=lambda record: record.node_id)
        seen.append([comparable(record) for record in records])

    assert len(seen[0]) == 7
    assert seen[0] == seen[1]


def test_shards_split_the_items_and_agree_on_the_whole_list(project) -> None:
    project.write(
        "lanes/unit/test_a.py", "import pytest\n@pytest.mark.parametrize('n', range(12))\ndef test_a(n): pass\n"
    )
    for shard in ("1/2", "2/2"):
        assert project.run("run", "unit", "--shard", shard).exit_code == 0

    first, second = project.bundle("unit", 1, 2), project.bundle("unit", 2, 2)
    ran = [{record.node_id for record in bundle.records} for bundle in (first, second)]
    assert (ran[0] & ran[1], len(ran[0] | ran[1])) == (set(), 12)
    assert first.header.expected_digest == second.header.expected_digest
    assert len(first.header.expected) == 12


def test_a_run_without_a_board_leaves_its_evidence_and_its_own_exit_code_for_others_to_fold(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    passed = project.run("run", "unit", "--no-board")
    has_board = (project.root / "reports" / "out" / "board.json").exists()
    project.run("report")
    folded = (project.root / "reports" / "out" / "junit-unit.xml").read_text("utf-8")
    project.write("lanes/unit/test_b.py", "def test_fails(): assert not 1\n")
    failed = project.run("run", "unit", "--no-board")

    assert (passed.exit_code, has_board, failed.exit_code) == (0, False, 1)
    assert "Claims" not in passed.stdout
    assert "test_passes" in folded, "the report folds what was left"


@pytest.mark.parametrize("wish", ["--strict", "--require-live"])
def test_a_run_without_a_board_cannot_be_asked_to_judge_one(project, wish: str) -> None:
    refused = project.run("run", "unit", "--no-board", wish)

    assert (refused.exit_code, refused.stderr.count("[USAGE]")) == (2, 1)
    assert "--no-board leaves nothing that --strict or --require-live could judge" in refused.stderr


def test_a_shard_that_no_item_fell_to_is_no_failure_and_an_empty_lane_stays_one(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    (project.root / "lanes" / "replay").mkdir(parents=True)

    codes = [project.run("run", "unit", "--shard", f"{index}/2", "--run-id", "monday").exit_code for index in (1, 2)]
    empty = project.run("run", "replay", "--shard", "1/2", "--run-id", "monday").exit_code

    assert (codes, empty) == ([0, 0], 5)


def test_status_35_a_filter_names_what_it_took_out(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING + "def test_other():\n    pass\n")

    project.run("run", "unit", "-k", "other")

    header = project.bundle("unit").header
    assert [item.node_id for item in header.expected] == ["lanes/unit/test_a.py::test_other"]
    assert [item.node_id for item in header.deselected] == ["lanes/unit/test_a.py::test_passes"]


def test_two_runs_of_one_lane_into_one_place_are_refused(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    lock = project.write("reports/out/locks/unit-1-of-1", "")
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        during = project.run("run", "unit")
    after = project.run("run", "unit")

    assert (during.exit_code, "[LANE_BUSY]" in during.stderr, after.exit_code) == (2, True, 0)


def test_the_lane_says_on_its_first_lines_who_runs_how_deep(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit")

    depth = project.bundle("unit").header.guard_depth
    assert f"lane: unit, guard {depth}, keys removed: 0, marker: self" in ended.stdout


def test_the_home_of_a_lane_is_gone_after_the_run(project) -> None:
    project.write(
        "lanes/unit/test_a.py",
        "import os\ndef test_home(tmp_path_factory):\n    open('home.txt', 'w').write(os.environ['HOME'])\n",
    )

    project.run("run", "unit")

    home = Path((project.root / "home.txt").read_text("utf-8"))
    assert home != Path(os.environ["HOME"])
    assert not home.exists()


DEAF = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"


def test_tests_can_interrupt_their_children_also_in_a_lane_that_was_started_deaf_to_interrupts(project) -> None:
    project.write(
        "lanes/unit/test_interrupt.py",
        "import signal, subprocess, sys\n"
        "def test_a_child_hears_it():\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "    child.send_signal(signal.SIGINT)\n"
        "    assert child.wait(20) == -signal.SIGINT or child.returncode == 1\n",
    )
    ended = subprocess.run(
        [sys.executable, "-c", DEAF, sys.executable, "-m", "lanes", "run", "unit"],
        cwd=project.root,
        env=project.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_test_whose_body_did_not_run_is_not_a_pass(project) -> None:
    project.write("lanes/unit/test_a.py", "def test_fails():\n    assert 0\n")
    project.write("pytest.ini", "[pytest]\naddopts = --setup-plan\n")

    ended = project.run("run", "unit")

    verdicts = [record.verdict for record in project.bundle("unit").records]
    assert (ended.exit_code != 0, "passed" in verdicts) == (True, False)


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_an_option_that_keeps_tests_from_running_is_refused(project, option: str) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit", option)

    assert (ended.exit_code, option in ended.stderr) == (2, True)


def test_a_failure_tells_what_the_body_raised_and_which_law_its_end_found_broken(project) -> None:
    project.write(
        "lanes/unit/test_a.py",
        "def test_fails(channels):\n"
        "    channels.scripted({'version': 1, 'steps': [{'reply': 'never asked for'}]})\n"
        "    raise ValueError('of its own')\n",
    )

    ended = project.run("run", "unit")

    [record] = project.bundle("unit").records
    assert (ended.exit_code, record.failure.count("ValueError: of its own")) == (1, 1)
    assert record.failure.endswith("step 1 was never taken [CHANNEL]")
    assert "channel_fixture.py" not in ended.stdout


def test_a_test_cannot_write_what_only_a_witness_may_see(project) -> None:
    names = ("add_answer", "set_live_proof", "set_model", "set_script", "take_notes", "token")
    project.write(
        "lanes/unit/test_a.py",
        f"def test_a(observation):\n    assert [n for n in {names!r} if hasattr(observation, n)] == []\n",
    )

    ended = project.run("run", "unit")

    assert ended.exit_code == 0, ended.stdout


def test_a_run_that_dies_before_its_first_test_leaves_no_older_evidence_in_its_place(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    project.run("run", "unit")
    project.write("lanes/unit/conftest.py", "raise SystemExit('broken')\n")

    ended = project.run("run", "unit")

    assert (ended.exit_code != 0, project.bundle("unit").records) == (True, ())
