"""What happens to items of a tiny project when the real command runs it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lanes.record import Record

REFUSALS = """
import socket
import subprocess
import sys

import pytest

CHILD = '''
import socket
try:
    socket.create_connection(("93.184.216.34", 80), 1)
except Exception:
    pass
'''


def test_loopback():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    server.close()


def test_public():
    socket.create_connection(("93.184.216.34", 80), 1)


def test_swallowed():
    for _ in range(3):
        try:
            socket.socket().connect(("93.184.216.34", 80))
        except Exception:
            pass


def test_child():
    subprocess.run([sys.executable, "-c", CHILD], check=True)


def test_skips_after():
    try:
        socket.getaddrinfo("example.com", 80)
    except Exception:
        pytest.skip("no network here")


@pytest.mark.xfail(reason="https://example.com/1 until 2999-01-01", strict=True)
def test_expects_to_fail():
    socket.getaddrinfo("example.com", 80)


@pytest.fixture
def connects_late():
    yield
    try:
        socket.getaddrinfo("example.com", 80)
    except Exception:
        pass


def test_teardown(connects_late):
    pass


def test_uvloop():
    import uvloop


def test_native():
    import ctypes
    try:
        ctypes.CDLL(None).connect
    except Exception:
        pass


def test_blind_children():
    subprocess.run([sys.executable, "-I", "-c", ""], check=True)
    subprocess.run([sys.executable, "-c", ""], env={}, check=True)
    subprocess.run(["true"], check=True)


def test_neighbour():
    pass
"""


@pytest.fixture(scope="module")
def refused(make_project: Callable[[str], object]) -> tuple[object, dict[str, Record]]:
    project = make_project("refused")
    project.write("lanes/unit/test_network.py", REFUSALS)
    return project.run("run", "unit"), project.records("unit")


def facts(record: Record) -> tuple[str, str | None, list[object]]:
    return record.verdict, record.reason_code, [dict(each) for each in record.guard["refusals"]]


@pytest.mark.parametrize(
    ("name", "what", "tries"),
    [
        pytest.param("test_public", "look-up of 93.184.216.34", 1, id="connects"),
        pytest.param("test_swallowed", "connect to 93.184.216.34:80", 3, id="swallows-and-retries"),
        pytest.param("test_child", "look-up of 93.184.216.34", 1, id="python-child-swallows"),
        pytest.param("test_skips_after", "look-up of example.com", 1, id="skips-afterwards"),
        pytest.param("test_expects_to_fail", "look-up of example.com", 1, id="expects-to-fail"),
        pytest.param("test_teardown", "look-up of example.com", 1, id="in-a-teardown"),
        pytest.param("test_uvloop", "import of uvloop", 1, id="native-event-loop"),
        pytest.param("test_native", "native call of connect", 1, id="native-call"),
    ],
)
def test_guard_05_06_a_refusal_fails_the_item_that_made_it_whatever_became_of_the_error(
    refused: tuple[object, dict[str, Record]], name: str, what: str, tries: int
) -> None:
    assert facts(refused[1][name]) == ("failed", "guard-refusal", [{"what": what, "tries": tries}])


def test_children_that_the_guard_cannot_look_into_stand_in_the_record_of_their_item(
    refused: tuple[object, dict[str, Record]],
) -> None:
    found = {name: list(record.guard["unseen"]) for name, record in refused[1].items() if record.guard["unseen"]}

    assert found == {
        "test_blind_children": [
            "a Python child in isolated mode",
            "a child that is not Python",
            "a child without the guard's environment",
        ]
    }


@pytest.mark.parametrize("name", ["test_loopback", "test_neighbour", "test_blind_children"])
def test_an_item_that_stays_inside_its_lane_passes(refused: tuple[object, dict[str, Record]], name: str) -> None:
    assert facts(refused[1][name]) == ("passed", None, [])


def test_a_refused_item_is_a_failed_test_and_says_so(refused: tuple[object, dict[str, Record]]) -> None:
    ended = refused[0]

    assert ended.exit_code == 1
    assert (
        "lanes/unit/test_network.py::test_swallowed: lane 'unit' refused 3 tries: connect to 93.184.216.34:80 "
        "[GUARD_NETWORK]"
    ) in ended.stdout


OUTCOMES = """
import pytest

from lanes.plugin import not_run


def test_passes():
    print("seen by nobody")


def test_fails():
    print("seen in the record")
    assert 41 == 42


def test_fails_in_setup(broken):
    pass


@pytest.fixture
def broken():
    raise ValueError("no ground to stand on")


def test_todo():
    pytest.skip("todo")


def test_elsewhere():
    not_run("platform", "needs a real Windows")


def test_unknown_code():
    not_run("platfrom", "a slip")


@pytest.mark.xfail(reason="https://example.com/1 until 2999-01-01", strict=True)
def test_known():
    assert False


@pytest.mark.xfail(reason="https://example.com/1 until 2999-01-01", strict=True)
def test_passes_unexpectedly():
    pass


@pytest.mark.xfail(reason="https://example.com/1 until 2001-01-01", strict=True)
def test_expired():
    assert False


@pytest.mark.parametrize("n", [1, 2], ids=["one", "two"])
def test_twice(n):
    pass
"""


@pytest.fixture(scope="module")
def outcomes(make_project: Callable[[str], object]) -> dict[str, Record]:
    project = make_project("outcomes")
    project.write("lanes/unit/test_outcomes.py", OUTCOMES)
    project.run("run", "unit")
    return project.records("unit")


@pytest.mark.parametrize(
    ("name", "verdict", "code", "text"),
    [
        pytest.param("test_passes", "passed", None, "", id="passes"),
        pytest.param("test_fails", "failed", None, "", id="fails"),
        pytest.param("test_fails_in_setup", "failed", None, "", id="fails-in-setup"),
        pytest.param("test_todo", "not run", "unclassified-skip", "todo", id="bare-skip"),
        pytest.param("test_elsewhere", "not run", "platform", "needs a real Windows", id="skip-with-code"),
        pytest.param("test_unknown_code", "failed", None, "", id="skip-with-unknown-code"),
        pytest.param(
            "test_known", "failed", "known-failure", "https://example.com/1 until 2999-01-01", id="known-failure"
        ),
        pytest.param(
            "test_passes_unexpectedly", "failed", "unexpected-pass", "expected to fail, passed", id="unexpected-pass"
        ),
        pytest.param(
            "test_expired",
            "failed",
            "failure-expired",
            "the last day of the expected failure is past",
            id="expired-failure",
        ),
    ],
)
def test_status_32_36_every_outcome_has_one_word_and_one_code(
    outcomes: dict[str, Record], name: str, verdict: str, code: str | None, text: str
) -> None:
    record = outcomes[name]

    assert (record.verdict, record.reason_code, record.reason_text) == (verdict, code, text)


def test_a_failed_item_keeps_its_failure_and_its_output(outcomes: dict[str, Record]) -> None:
    record = outcomes["test_fails"]

    assert "assert 41 == 42" in (record.failure or "")
    assert record.captured_stdout == "seen in the record\n"


def test_a_passed_item_keeps_no_output_because_it_may_differ_from_run_to_run(outcomes: dict[str, Record]) -> None:
    assert outcomes["test_passes"].captured_stdout == ""


def test_parameters_tell_two_items_of_one_test_apart(outcomes: dict[str, Record]) -> None:
    one, two = outcomes["test_twice[one]"], outcomes["test_twice[two]"]

    assert one.test_digest == two.test_digest != ""
    assert one.params_digest != two.params_digest


def test_every_record_says_how_deep_it_was_guarded_and_that_the_canaries_were_refused(
    outcomes: dict[str, Record],
) -> None:
    assert {(each.guard["canary_start"], each.guard["canary_end"]) for each in outcomes.values()} == {
        ("refused", "refused")
    }
    assert {each.guard["depth"] for each in outcomes.values()} <= {"D2", "D3"}


def test_a_test_that_ends_the_run_in_success_is_no_success(project) -> None:
    project.write("lanes/unit/test_a.py", "def test_passes():\n    pass\n")
    project.write("lanes/unit/test_b.py", "import pytest\ndef test_leaves():\n    pytest.exit('done', returncode=0)\n")
    project.write("lanes/unit/test_c.py", "def test_fails():\n    assert False\n")

    ended = project.run("run", "unit")

    found = {name: (record.verdict, record.reason_code) for name, record in project.records("unit").items()}
    assert (ended.exit_code, found) == (
        1,
        {
            "test_passes": ("passed", None),
            "test_leaves": ("blocked", "unjudged"),
            "test_fails": ("blocked", "unjudged"),
        },
    )
