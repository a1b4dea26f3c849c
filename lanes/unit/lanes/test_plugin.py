from __future__ import annotations

import subprocess
import sys

import pytest

PASSING = "def test_passes():\n    pass\n"


def plain_pytest(project, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as somebody does who has the plugin installed and named, with every other plugin loaded too."""
    ours = ("LANES_", "PYTEST_")
    environ = {name: value for name, value in project.environ().items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lanes.plugin", "-p", "no:cacheprovider", "lanes/unit"],
        cwd=project.root,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_a_lane_the_plugin_does_nothing(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    done = plain_pytest(project)

    assert (done.returncode, "lane:" in done.stdout, done.stderr) == (0, False, "")
    assert not (project.root / "reports").exists()


def test_put_in_place_twice_it_counts_once(project) -> None:
    project.write(
        "lanes/unit/conftest.py",
        "def pytest_configure(config):\n    from lanes.plugin import pytest_configure as again\n    again(config)\n",
    )
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit")

    assert (ended.exit_code, list(project.records("unit"))) == (0, ["test_passes"])


@pytest.mark.parametrize(
    "name",
    ["rerunfailures", "flaky", "pytest_retry"],
)
def test_attempts_40_a_plugin_that_repeats_tests_is_refused(project, name: str) -> None:
    project.write(f"{name}.py", "")
    project.write(
        "lanes/unit/conftest.py",
        f"import sys\nsys.path.insert(0, '.')\nimport {name}\n"
        f"def pytest_configure(config):\n    config.pluginmanager.register({name}, {name!r})\n",
    )
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit")

    assert ended.exit_code == 3
    assert f"plugin {name!r} repeats tests on its own" in ended.stdout + ended.stderr
    assert project.records("unit") == {}


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OPENAI_API_KEY", "sk-canary-0f3e9b"), ("HTTPS_PROXY", "http://proxy.invalid"), ("OPENAI_BASE_URL", "http://x")],
)
def test_lane_02_a_variable_smuggled_in_by_code_is_found_from_inside(project, variable: str, value: str) -> None:
    project.write(
        "lanes/unit/conftest.py",
        f"import os\nos.environ[{variable!r}] = {value!r}\n",
    )
    project.write("lanes/unit/test_a.py", PASSING)

    ended = project.run("run", "unit")

    assert ended.exit_code == 3
    assert f"variables that may not be set in lane 'unit': {variable}" in ended.stdout + ended.stderr
    assert value not in ended.stdout + ended.stderr


def test_a_process_that_no_run_prepared_is_no_lane(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)

    done = plain_pytest(project, LANES_LANE="unit")

    assert done.returncode == 3
    assert "no lane run prepared this process" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_spec_ids_in_a_name_select_by_their_hyphenated_spelling(project) -> None:
    project.write("lanes/unit/test_a.py", "def test_AC12_cancels():\n    pass\ndef test_B13_B14_other():\n    pass\n")

    ended = project.run("run", "unit", "-k", "AC-12 or B-14")

    assert (ended.exit_code, sorted(project.records("unit"))) == (0, ["test_AC12_cancels", "test_B13_B14_other"])
