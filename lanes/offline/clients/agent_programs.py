"""Agent programs as they are published: how each is started without a person, and what a model says to it.

Room: the test of the programs and the table in the documents come in. Each program is given a folder, an address and a
dummy key, by its own flags, files and variables; nothing of it is changed or stood in for.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lanes.offline.clients import node_clients
from lanes.offline.clients.asking import KEY, MODEL
from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import step, text, tool_call

TASK = "check.py fails. Find the mistake in prices.py, correct it, and see that check.py passes."
BROKEN = "def total(prices, discount):\n    return sum(prices) + discount\n"
MENDED = "def total(prices, discount):\n    return sum(prices) - discount\n"
CHECK = (
    "from prices import total\n\nassert total([3, 4], 2) == 5, 'the discount is not taken off'\nprint('all is well')\n"
)
FAILS = "the discount is not taken off"
PASSES = "all is well"
SAID_AT_THE_END = "The discount is taken off now, and check.py passes."
RUN_CHECK = f"{sys.executable} check.py"
MEND = "sed -i 's/+ discount/- discount/' prices.py"


@dataclass(frozen=True, slots=True)
class Start:
    """How a program is started. Shape: `files` go into its home before."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """One program.

    Shape: `steps` is what the model says, given the folder; `start` how it is started with an address, given its home.
    `tools` are words of the table for how it changed the file.
    """

    name: str
    package: str
    language: str
    dialect: str
    tools: str
    why_missing: Callable[[], str]
    start: Callable[[str, Path], Start]
    steps: Callable[[Path], tuple[JsonObject, ...]]


def _shell_steps(tool: str, argument: str, last: JsonObject) -> tuple[JsonObject, ...]:
    """See the check fail, mend, see it pass, and end."""

    def run(command: str) -> JsonObject:
        return tool_call(tool, {argument: command})

    return (
        step(text("I run the check."), run(RUN_CHECK), expect={"tools": [tool]}),
        step(text("I mend it."), run(MEND), expect={"tool_result": {"contains": FAILS}}),
        step(text("I run it again."), run(RUN_CHECK)),
        last,
    )


def _mini_start(url: str, home: Path) -> Start:
    variables = {
        "OPENAI_API_BASE": url,
        "OPENAI_API_KEY": KEY,
        "MSWEA_GLOBAL_CONFIG_DIR": str(home),
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",  # it knows no price for a model it has not heard of
        "MSWEA_SILENT_STARTUP": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    command = (
        sys.executable,
        "-m",
        "minisweagent.run.mini",
        "--yolo",
        "--exit-immediately",
        "--model",
        f"openai/{MODEL}",
        "--output",
        str(home / "trajectory.json"),
        "--task",
        TASK,
    )
    return Start(command, variables, {})


def _mini_steps(_folder: Path) -> tuple[JsonObject, ...]:
    # It has no last word of its own: it ends when a command prints this line.
    end = tool_call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})
    return _shell_steps(
        "bash", "command", step(text(SAID_AT_THE_END), end, expect={"tool_result": {"contains": PASSES}})
    )


def _codex_start(url: str, home: Path) -> Start:
    settings = f"""\
model = "{MODEL}"
model_provider = "mock"

[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
env_key = "MOCK_KEY"
"""
    command = (
        "node",
        str(node_clients.FOLDER / "node_modules/@openai/codex/bin/codex.js"),
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",  # the lane's wall is around it, and it has no network anyway
        TASK,
    )
    return Start(command, {"MOCK_KEY": KEY, "CODEX_HOME": str(home)}, {"config.toml": settings})


def _codex_steps(_folder: Path) -> tuple[JsonObject, ...]:
    last = step(text(SAID_AT_THE_END), expect={"tool_result": {"contains": PASSES}})
    return _shell_steps("exec_command", "cmd", last)


def _claude_start(url: str, home: Path) -> Start:
    variables = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CONFIG_DIR": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    command = (
        "node",
        str(node_clients.FOLDER / "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"),
        "--print",
        "--model",
        MODEL,
        "--allowedTools",
        "Read,Edit,Bash",
        "--",
        TASK,
    )
    return Start(command, variables, {})


def _claude_steps(folder: Path) -> tuple[JsonObject, ...]:
    file: Json = str(folder / "prices.py")
    edit = {"file_path": file, "old_string": "+ discount", "new_string": "- discount"}
    return (
        step(
            text("I look and run the check."),
            tool_call("Read", {"file_path": file}),
            tool_call("Bash", {"command": RUN_CHECK, "description": "Run the check"}),
            expect={"tools": ["Read", "Edit", "Bash"]},
        ),
        step(
            text("I mend it."),
            tool_call("Edit", edit),
            expect={"tool_result": [{"contains": "sum(prices) + discount"}, {"contains": FAILS}]},
        ),
        step(text("I run it again."), tool_call("Bash", {"command": RUN_CHECK, "description": "Run the check again"})),
        step(text(SAID_AT_THE_END), expect={"tool_result": {"contains": PASSES}}),
    )


def _mini_missing() -> str:
    return "" if importlib.util.find_spec("minisweagent") else "mini-swe-agent"


PROGRAMS: tuple[AgentProgram, ...] = (
    AgentProgram(
        "mini-swe-agent",
        "mini-swe-agent",
        "Python",
        "openai_chat",
        "its shell tool",
        _mini_missing,
        _mini_start,
        _mini_steps,
    ),
    AgentProgram(
        "Codex",
        "@openai/codex",
        "Node",
        "openai_responses",
        "its shell tool",
        lambda: node_clients.why_missing("@openai/codex"),
        _codex_start,
        _codex_steps,
    ),
    AgentProgram(
        "Claude Code",
        "@anthropic-ai/claude-code",
        "Node",
        "anthropic",
        "its file tools and its shell tool",
        lambda: node_clients.why_missing("@anthropic-ai/claude-code"),
        _claude_start,
        _claude_steps,
    ),
)
