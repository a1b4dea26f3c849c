"""Which children a guard cannot look into, by the arguments of their audit events."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lanes.guard import GUARD_VARIABLE
from lanes.guard_children import ISOLATED, NO_PYTHON, STARTUP_FOLDER, WITHOUT_ENVIRONMENT, why_unseen

GUARDED = {GUARD_VARIABLE: "unit;loopback;;", "PYTHONPATH": os.pathsep.join([STARTUP_FOLDER, "/elsewhere"])}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param([sys.executable, "-c", "pass"], "", id="python"),
        pytest.param(["/usr/bin/python3", "-m", "-I"], "", id="a-module-of-that-name"),
        pytest.param([sys.executable, "-c", "pass", "-I"], "", id="an-argument-of-the-program"),
        pytest.param([sys.executable, "-"], "", id="from-its-input"),
        pytest.param([sys.executable, "--check-hash-based-pycs", "-I"], ISOLATED, id="long-option-first"),
        pytest.param([sys.executable, "-I", "-c", "pass"], ISOLATED, id="isolated"),
        pytest.param([sys.executable, "-uS", "-c", "pass"], ISOLATED, id="without-site"),
        pytest.param([sys.executable, "-W", "error", "-E", "x.py"], ISOLATED, id="after-an-option-with-a-value"),
        pytest.param([sys.executable, "-Werror", "-E", "x.py"], ISOLATED, id="after-a-joined-value"),
        pytest.param(["/bin/sh", "-c", "true"], NO_PYTHON, id="shell"),
        pytest.param([b"/bin/sh"], NO_PYTHON, id="bytes"),
        pytest.param(["no-program-of-that-name"], NO_PYTHON, id="not-there"),
    ],
)
@pytest.mark.parametrize("event", ["subprocess.Popen", "os.exec"])
def test_a_child_is_seen_when_it_is_python_and_loads_the_guard(event: str, words: list[str], why: str) -> None:
    between = (None,) if event == "subprocess.Popen" else ()

    assert why_unseen((words[0], words, *between, GUARDED)) == why


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="empty"),
        pytest.param({**GUARDED, GUARD_VARIABLE: ""}, id="no-rule"),
        pytest.param({**GUARDED, "PYTHONPATH": "/elsewhere"}, id="no-start-up-folder"),
        pytest.param({b"PATH": b"/bin"}, id="bytes"),
    ],
)
def test_a_child_without_the_variables_of_the_guard_is_not_seen(environment: dict[object, object]) -> None:
    assert why_unseen((sys.executable, [sys.executable, "-c", ""], None, environment)) == WITHOUT_ENVIRONMENT


def test_a_child_without_an_environment_of_its_own_has_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for value in (GUARDED[GUARD_VARIABLE], ""):
        monkeypatch.setenv(GUARD_VARIABLE, value)
        monkeypatch.setenv("PYTHONPATH", STARTUP_FOLDER)
        found.append(why_unseen((sys.executable, [sys.executable], None, None)))

    assert found == ["", WITHOUT_ENVIRONMENT]


def test_a_command_for_a_shell_is_not_seen() -> None:
    assert why_unseen((b"true",)) == NO_PYTHON


@pytest.mark.parametrize(
    ("first_line", "why"),
    [
        pytest.param(f"#!{sys.executable}", "", id="python"),
        pytest.param("#!/usr/bin/env python3", "", id="found-on-the-path"),
        pytest.param("#!/usr/bin/env -S python3 -I", ISOLATED, id="isolated"),
        pytest.param("#!/bin/sh", NO_PYTHON, id="shell"),
        pytest.param("no first line of a script", NO_PYTHON, id="no-script"),
    ],
)
@pytest.mark.parametrize("by", ["path", "name"])
def test_a_script_is_what_its_first_line_says(tmp_path: Path, first_line: str, why: str, by: str) -> None:
    script = tmp_path / "command"
    script.write_text(f"{first_line}\nmore\n", "utf-8")
    name = str(script) if by == "path" else script.name

    assert why_unseen((name, [name], None, {**GUARDED, "PATH": str(tmp_path)})) == why
