"""How a whole run of a lane ends when nothing ran, or when a worker died in the middle."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        pytest.param(None, 5, id="no-test"),
        pytest.param("import pytest\ndef test_a():\n    pytest.skip('todo')\n", 5, id="everything-skipped"),
        pytest.param("import pytest\npytest.skip('todo', allow_module_level=True)\n", 5, id="module-skipped"),
        pytest.param(
            "import pytest\ndef test_a():\n    pytest.skip('todo')\ndef test_b():\n    pass\n", 0, id="one-ran"
        ),
        pytest.param("def test_a():\n    assert False\n", 1, id="failed"),
        pytest.param("import nothing_of_that_name\n", 2, id="cannot-be-loaded"),
    ],
)
def test_status_37_nothing_run_is_no_success(project, text: str | None, exit_code: int) -> None:
    project.write("lanes/unit/test_a.py" if text is not None else "lanes/unit/readme.txt", text or "")

    ended, trailer = project.run("run", "unit"), project.bundle("unit").trailer

    assert (ended.exit_code, trailer.exit_code) == (exit_code, exit_code)


def test_lane_49_a_worker_that_dies_fails_its_item_and_blocks_its_queue(project) -> None:
    project.write(
        "lanes/unit/test_a.py",
        "import os, pytest\n"
        "def test_dies():\n    os._exit(9)\n"
        "@pytest.mark.parametrize('n', range(9))\ndef test_queued(n): pass\n",
    )

    ended = project.run("run", "unit", "-n", "1")

    records = project.records("unit")
    codes = {name: (record.verdict, record.reason_code) for name, record in records.items()}
    assert ended.exit_code != 0
    assert codes.pop("test_dies") == ("failed", "worker-crashed")
    assert set(codes.values()) == {("blocked", "worker-lost")}
    assert len(codes) == 9
