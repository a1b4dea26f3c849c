"""Two whole runs of a tiny project at the same time: what they keep apart."""

from __future__ import annotations


def test_lane_12_two_lanes_at_once_do_not_see_each_other(project) -> None:
    text = (
        "import os, socket, pytest\n"
        "def test_own_place():\n"
        "    with open(os.environ['HOME'] + '/mark', 'x') as file:\n"
        "        file.write('here')\n"
        "def test_tries():\n"
        "    with pytest.raises(RuntimeError):\n"
        "        socket.getaddrinfo('LANE.example.com', 80)\n"
    )
    for lane in ("unit", "offline"):
        project.write(f"lanes/{lane}/test_a.py", text.replace("LANE", lane))

    running = [project.start("run", lane) for lane in ("unit", "offline")]
    told = [process.communicate() for process in running]

    assert [process.returncode for process in running] == [1, 1], told
    for lane in ("unit", "offline"):
        records = project.records(lane)
        assert records["test_own_place"].verdict == "passed"
        assert [dict(each) for each in records["test_tries"].guard["refusals"]] == [
            {"what": f"look-up of {lane}.example.com", "tries": 1}
        ]
