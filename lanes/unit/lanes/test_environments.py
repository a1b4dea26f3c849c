"""Two environments that fill one lane leave their evidence apart."""

from __future__ import annotations

import pytest

TEST = "def test_{name}() -> None:\n    pass\n"


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"LANE_MARK": "offline-clients", "TOX_ENV_NAME": "offline-clients"}, id="started-by-tox"),
        pytest.param({}, id="started-by-hand"),
    ],
)
def test_the_run_of_a_part_leaves_the_bundle_of_the_whole_lane_alone(project, variables: dict[str, str]) -> None:
    project.write("lanes/offline/test_whole.py", TEST.format(name="whole"))
    project.write("lanes/offline/clients/test_part.py", TEST.format(name="part"))

    whole = project.run("run", "offline")
    part = project.run("run", "offline-clients", "lanes/offline/clients", **variables)

    assert (whole.exit_code, part.exit_code) == (0, 0), whole.stderr + part.stderr
    assert sorted(project.records("offline")) == ["test_part", "test_whole"]
    assert sorted(project.records("offline-clients")) == ["test_part"]
    assert project.run("report", "--require", "offline").exit_code == 0
    header = project.bundle("offline-clients").header
    assert (header.lane, header.lane_mark, header.extra.get("filtered")) == ("offline", "offline-clients", True)


def test_a_report_that_requires_a_lane_is_not_content_with_a_part_of_it(project) -> None:
    project.write("lanes/offline/test_whole.py", TEST.format(name="whole"))
    project.write("lanes/offline/clients/test_part.py", TEST.format(name="part"))

    project.run("run", "offline-clients", "lanes/offline/clients")
    ended = project.run("report", "--require", "offline")

    assert ended.exit_code == 1
    assert "lane 'offline' left only evidence of a part of it about this subject" in ended.stderr
