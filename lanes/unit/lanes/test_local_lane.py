"""The environment `real-local` of a tiny project, as far as it can be tried without the model."""

from __future__ import annotations

TEST = "def test_{name}() -> None:\n    pass\n"


def test_without_the_extra_the_lane_says_so_and_runs_nothing(project) -> None:
    project.write("lanes/real/local/test_small.py", TEST.format(name="small"))

    ended = project.run("run", "real-local")

    header = project.bundle("real-local").header
    assert (ended.exit_code, header.not_run_code, project.records("real-local")) == (2, "missing-dependency", {})
    assert "not run: a dependency is missing: llama-cpp-python [LOCAL_MODEL_MISSING]" in ended.stderr
    assert "tox -e real-local installs it" in ended.stderr
    assert ("Traceback" in ended.stderr, (header.lane, header.lane_mark)) == (False, ("real", "real-local"))


def test_a_project_without_small_journeys_has_nothing_to_run_there(project) -> None:
    project.write("lanes/real/test_hosted.py", TEST.format(name="hosted"))

    ended = project.run("run", "real-local")

    assert (ended.exit_code, "there is no folder lanes/real/local here" in ended.stderr) == (2, True)


def test_the_lane_with_hosted_models_leaves_the_small_journeys_alone(project) -> None:
    project.write("lanes/real/local/test_small.py", TEST.format(name="small"))
    project.write("lanes/real/test_hosted.py", TEST.format(name="hosted"))

    project.run("run", "real", OPENAI_API_KEY="sk-opens-nothing-0417")

    header = project.bundle("real").header
    assert [item.node_id for item in header.expected] == ["lanes/real/test_hosted.py::test_hosted"]
    assert "filtered" not in header.extra
