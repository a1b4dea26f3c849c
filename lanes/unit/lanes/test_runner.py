"""Whole runs of a tiny project by the real command."""

from __future__ import annotations

import pytest

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


def test_a_run_leaves_one_bundle_with_header_records_and_trailer(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit")

    bundle = project.bundle("unit")
    assert (ended.exit_code, bundle.problems) == (0, ())
    assert [item.node_id for item in bundle.header.expected] == ["lanes/unit/test_a.py::test_passes"]
    assert [(each.node_id, each.verdict) for each in bundle.records] == [
        ("lanes/unit/test_a.py::test_passes", "passed")
    ]
    assert (bundle.header.marker, bundle.header.canary_start) == ("self", "refused")
    assert (bundle.trailer.canary_end, bundle.trailer.exit_code, bundle.trailer.breaches) == ("refused", 0, ())


@pytest.mark.parametrize("workers", ["0", "2"])
def test_guard_03_a_refusal_while_a_test_module_loads_fails_the_lane_and_names_the_module(
    project, workers: str
) -> None:
    project.write("lanes/unit/test_early.py", SWALLOWED + PASSING)

    ended = project.run("run", "unit", "-n", workers)

    assert ended.exit_code == 3
    assert "lanes/unit/test_early.py: look-up of example.com refused [GUARD_NETWORK]" in ended.stderr
    assert project.bundle("unit").trailer.breaches[0].startswith("lanes/unit/test_early.py: look-up of example.com")


def test_guard_04_a_refusal_in_an_exit_handler_fails_the_lane_and_names_the_file(project) -> None:
    project.write(
        "lanes/unit/test_late.py",
        "import atexit, socket\n"
        "def late():\n"
        "    try:\n"
        "        socket.getaddrinfo('example.com', 80)\n"
        "    except Exception:\n"
        "        pass\n"
        "def test_registers():\n"
        "    atexit.register(late)\n",
    )

    ended = project.run("run", "unit")

    assert ended.exit_code == 3
    assert "lanes/unit/test_late.py:4: look-up of example.com refused [GUARD_NETWORK]" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [pytest.param((), 0, id="plain"), pytest.param(("--require-live",), 4, id="require-live")],
)
@pytest.mark.parametrize("key", ["", "   ", "changeme"], ids=["unset", "blanks", "placeholder"])
def test_status_28_29_real_without_a_key_says_so_and_starts_nothing(
    project, key: str, arguments: tuple[str, ...], exit_code: int
) -> None:
    project.write("lanes/real/test_a.py", "raise SystemExit('this file must not be loaded')\n")
    project.write("lanes/claims.toml", CLAIM.replace("LANE", "real"))

    ended = project.run("run", "real", *arguments, DEEPSEEK_API_KEY=key, OPENAI_API_KEY="", ANTHROPIC_API_KEY="")

    header = project.bundle("real").header
    assert (ended.exit_code, header.not_run_code, header.expected) == (exit_code, "no-key", ())
    assert "not run: no key" in next(line for line in ended.stdout.splitlines() if line.startswith("a.claim"))
    assert not any("passed 1" in line or "\u2713" in line for line in ended.stdout.splitlines())


def test_status_28_a_keyless_lane_says_that_real_was_not_run_for_want_of_a_key(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit")

    keys = "DEEPSEEK_API_KEY or OPENAI_API_KEY or ANTHROPIC_API_KEY"
    assert f"  Real API: not run: no key: set {keys}" in ended.stdout.splitlines()


def test_the_word_on_real_never_replaces_evidence_of_a_run_that_started(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    project.run("run", "unit")
    kept = project.root / "reports" / "out" / "bundles" / "real" / "1-of-1"
    started = (project.root / "reports" / "out" / "bundles" / "unit" / "1-of-1" / "header.json").read_text("utf-8")
    (kept / "header.json").write_text(started, "utf-8")

    project.run("run", "unit")

    assert (kept / "header.json").read_text("utf-8") == started
