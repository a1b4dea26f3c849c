"""What must not suspend is a plain function, and the driver is never cancelled as a task; read from the source."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from harness.log.attachments import AttachmentStore

HARNESS = Path(__file__).parents[3] / "harness"
PLAIN = {
    "loop/agent.py": {
        "Agent": ["followup", "steer", "inject", "send", "wake", "cancel", "cancel_message", "replace_message"],
    },
    "log/session_log.py": {"SessionLog": ["append", "restore"]},
    "loop/scope.py": {"CancelScope": ["cancel"]},
}


def functions(path: Path, class_name: str) -> dict[str, ast.AST]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (found,) = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == class_name]
    return {node.name: node for node in found.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(
    ("file", "class_name", "name"),
    [(file, owner, name) for file, classes in PLAIN.items() for owner, names in classes.items() for name in names],
)
def test_C10_it_is_a_plain_function_and_awaits_nothing(file: str, class_name: str, name: str) -> None:
    node = functions(HARNESS / file, class_name)[name]
    assert isinstance(node, ast.FunctionDef)
    assert not [inner for inner in ast.walk(node) if isinstance(inner, ast.Await | ast.Yield | ast.YieldFrom)]


def test_C10_the_check_can_tell_a_coroutine() -> None:
    assert isinstance(functions(HARNESS / "loop/agent.py", "Agent")["when_idle"], ast.AsyncFunctionDef)


def test_A04_C10_nothing_suspends_between_the_last_look_at_the_cancel_and_the_message() -> None:
    lines = inspect.getsource(AttachmentStore.admit_and_queue).splitlines()
    last_await = max(at for at, line in enumerate(lines) if "await" in line)
    first_look = min(at for at, line in enumerate(lines) if "is_cancelled()" in line)
    assert last_await < first_look


def test_the_loop_cancels_no_task_but_its_timers_and_the_reader() -> None:
    """Task.cancel may land on any await; only what holds no part of a turn's closing may be ended that way."""
    found = []
    for path in sorted((HARNESS / "loop").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "cancel":
                found.append(f"{path.name}: {ast.unparse(node)}")
    assert sorted(set(found)) == [
        "agent.py: scope.cancel",
        "agent.py: self.cancel",
        "dispatch.py: self._scope.cancel",
        "driver.py: scope.cancel",
        "driver.py: timer.cancel",
        "reader.py: self._task.cancel",
        "scope.py: scope.cancel",
        "scope.py: sleeping.cancel",
        "tools.py: inner.cancel",
        "tools.py: timer.cancel",
    ]


@pytest.mark.parametrize(
    "room",
    [
        "arguments", "assembly", "decide", "failure", "projection", "prompt", "request", "retry",
        "schedule",
    ],
)  # fmt: skip
def test_a_pure_room_imports_nothing_that_waits_or_looks_outside(room: str) -> None:
    outside = {
        "asyncio", "socket", "subprocess", "threading", "time", "random", "uuid", "os", "pathlib", "sys", "httpx",
    }  # fmt: skip
    imported = set()
    for node in ast.walk(ast.parse((HARNESS / "loop" / f"{room}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported & outside == set()
