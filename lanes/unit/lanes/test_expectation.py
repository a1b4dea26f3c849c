from __future__ import annotations

import pytest

DECLARED = "reason='https://example.com/1 until 2999-01-01'"


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        pytest.param(
            "strict=True, reason='later'", "an expected failure names its issue and its last day", id="no-issue"
        ),
        pytest.param("strict=True", "an expected failure names its issue and its last day", id="no-reason"),
        pytest.param(
            "strict=True, reason='https://example.com/1 until 2999-13-01'",
            "an expected failure names its issue and its last day",
            id="no-such-day",
        ),
        pytest.param(f"{DECLARED}, strict=False", "an expected failure is strict", id="loose"),
        pytest.param(DECLARED, "an expected failure is strict", id="as-strict-as-the-settings-say"),
        pytest.param(f"{DECLARED}, strict=True, run=False", "an expected failure is run", id="never-run"),
    ],
)
def test_status_36_an_expected_failure_is_strict_and_has_an_issue_and_a_last_day(
    project, mark: str, message: str
) -> None:
    project.write(
        "lanes/unit/test_a.py", f"import pytest\n@pytest.mark.xfail({mark})\ndef test_a():\n    assert False\n"
    )

    ended = project.run("run", "unit")

    assert (ended.exit_code, message in ended.stdout) == (2, True)
    assert project.records("unit") == {}


HOOK = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""
RAISING = """
import pytest

@pytest.fixture
def broken_before():
    raise ValueError("in its setup")

@pytest.fixture
def broken_after():
    yield
    raise ValueError("in its teardown")

def test_body(): raise ValueError("in its body")
def test_setup(broken_before): pass
def test_teardown(broken_after): pass
def test_passes(): pass
"""


@pytest.mark.parametrize("where", ["conftest.py", "lanes/unit/conftest.py"])
def test_a_failure_that_a_hook_calls_a_pass_stays_a_failure_in_every_phase(project, where: str) -> None:
    project.write(where, HOOK)
    project.write("lanes/unit/test_a.py", RAISING)

    ended = project.run("run", "unit")

    found = {name: (record.verdict, record.reason_code) for name, record in project.records("unit").items()}
    assert ended.exit_code == 1
    assert found == {
        "test_body": ("failed", "overruled"),
        "test_setup": ("failed", "overruled"),
        "test_teardown": ("failed", "overruled"),
        "test_passes": ("passed", None),
    }
    assert "its call raised ValueError: in its body, and a hook called that a pass [OVERRULED]" in ended.stdout


SWALLOWING = {
    "call": """
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    outcome.force_result(None)
""",
    "call-innermost": """
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except ValueError:
        return None
""",
    "function": """
@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    try:
        return (yield)
    except ValueError:
        return True
""",
    "function-innermost": """
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    outcome.force_result(True)
""",
    "again": """
@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    try:
        return (yield)
    except ValueError:
        pyfuncitem.obj = lambda: None
        return pyfuncitem.ihook.pytest_pyfunc_call(pyfuncitem=pyfuncitem)
""",
    "skip": """
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except ValueError:
        pytest.skip("not today")
""",
}
ASYNC = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

def test_raises(): raise ValueError("in its body")
@pytest.mark.anyio
async def test_raises_later(): raise ValueError("in its body")
def test_passes(): pass
def test_skips(): pytest.skip("honestly")
"""


@pytest.mark.parametrize("hook", SWALLOWING.values(), ids=SWALLOWING.keys())
def test_a_failure_that_a_hook_keeps_from_its_report_stays_a_failure(project, hook: str) -> None:
    """A hook that makes a result of everything hides what is skipped as well."""
    project.write("lanes/unit/conftest.py", f"import pytest\n{hook}")
    project.write("lanes/unit/test_a.py", ASYNC)

    ended = project.run("run", "unit")

    found = {name: (record.verdict, record.reason_code) for name, record in project.records("unit").items()}
    assert found["test_raises"] == found["test_raises_later"] == ("failed", "overruled")
    assert found["test_passes"] == ("passed", None)
    assert found["test_skips"][0] == ("failed" if "force_result" in hook else "not run")
    assert "its call raised ValueError: in its body, and a hook called that a" in ended.stdout


BY_NAME = "@pytest.mark.usefixtures('broken_before')\ndef test_setup()"
PHASES = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    try:
        return (yield)
    except ValueError:
        return None

@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    except ValueError:
        return None
"""


def test_a_failure_around_the_test_that_a_hook_keeps_from_its_report_stays_a_failure(project) -> None:
    project.write("lanes/unit/conftest.py", PHASES)
    project.write("lanes/unit/test_a.py", RAISING.replace("def test_setup(broken_before)", BY_NAME))

    project.run("run", "unit")

    found = {name: (record.verdict, record.reason_code) for name, record in project.records("unit").items()}
    assert found == {
        "test_body": ("failed", None),
        "test_setup": ("failed", "overruled"),
        "test_teardown": ("failed", "overruled"),
        "test_passes": ("passed", None),
    }


BODIES = f"""
import unittest

import pytest

MARK = pytest.mark.xfail({DECLARED}, strict=True)
LATE = pytest.mark.xfail(reason='https://example.com/1 until 2001-01-01', strict=True)


def test_says_so_itself():
    pytest.xfail('later')


def test_says_so_with_an_issue():
    pytest.xfail('https://example.com/1 until 2999-01-01')


@pytest.fixture
def gives_up():
    pytest.xfail('later')


def test_in_its_setup(gives_up):
    pass


@pytest.fixture
def gives_up_late():
    yield
    pytest.xfail('later')


def test_in_its_teardown(gives_up_late):
    pass


def test_marks_itself_without_an_issue(request):
    request.applymarker(pytest.mark.xfail(reason='later', strict=True))
    assert False


def test_marks_itself_loosely_and_passes(request):
    request.applymarker(pytest.mark.xfail({DECLARED}, strict=False))


def test_marks_itself_past_its_day(request):
    request.applymarker(LATE)
    assert False


class TestLate:
    pytestmark = LATE

    def test_of_a_class_past_its_day(self):
        assert False


class Old(unittest.TestCase):
    @unittest.expectedFailure
    def test_of_unittest(self):
        assert False


@MARK
def test_declared():
    assert False
"""


@pytest.fixture(scope="module")
def bodies(make_project):
    project = make_project("bodies")
    project.write("lanes/unit/test_bodies.py", BODIES)
    return project.run("run", "unit"), project.records("unit")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("test_says_so_itself", "undeclared-failure"),
        ("test_says_so_with_an_issue", "undeclared-failure"),
        ("test_in_its_setup", "undeclared-failure"),
        ("test_in_its_teardown", "undeclared-failure"),
        ("test_marks_itself_without_an_issue", "undeclared-failure"),
        ("test_marks_itself_loosely_and_passes", "unexpected-pass"),
        ("test_marks_itself_past_its_day", "failure-expired"),
        ("TestLate::test_of_a_class_past_its_day", "failure-expired"),
        ("Old::test_of_unittest", "undeclared-failure"),
        ("test_declared", "known-failure"),
    ],
)
def test_status_36_a_failure_is_known_only_when_it_was_declared_before_the_test_ran(
    bodies, name: str, code: str
) -> None:
    record = bodies[1][name]

    assert (record.verdict, record.reason_code) == ("failed", code)


def test_status_36_a_run_with_a_failure_that_nobody_declared_is_no_success(bodies) -> None:
    ended = bodies[0]

    assert ended.exit_code == 1
    assert "test_says_so_itself: it calls its failure expected while it runs: later [USAGE]" in ended.stdout
