"""The command `mock-provider`: serve a script, run a command against it, check scripts.

Room: the outermost; nobody comes in but the console and `python -m mock_provider`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from mock_provider.errors import MockError, ScriptError, UsageError
from mock_provider.json_values import Json, JsonObject
from mock_provider.script import load_script
from mock_provider.script_fields import near_miss
from mock_provider.serving import serve_until_stopped
from mock_provider.steps import Script
from mock_provider.wrapped import run_command

COMMANDS = ("serve", "run", "check")
EPILOG = """example:
  mock-provider run script.yaml -- python client.py
  (starts the provider, sets OPENAI_BASE_URL and friends for the command, judges the play: exit 3 when it is bad)
"""


class _Parser(argparse.ArgumentParser):
    """Says what was expected, in the form of all our errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, where=self.prog, expected=self.format_usage().removeprefix("usage: ").strip())


def build_parser() -> argparse.ArgumentParser:
    """The arguments of all three commands; for `run`, what follows `--` is not among them."""
    parser = _Parser(
        prog="mock-provider",
        description="A scripted model behind real provider wire formats.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="serve|run|check", parser_class=_Parser)
    serve = commands.add_parser("serve", help="serve a script until stopped", description="Serve a script.")
    _add_server_arguments(serve)
    serve.add_argument("--ready-file", type=Path, metavar="FILE", help="write the address here once it is served")
    run = commands.add_parser(
        "run",
        help="run a command against a script",
        description="Run a command against a script; exit code of the command, or 3 when the play went wrong.",
        usage="mock-provider run [--host HOST] [--port PORT] [--journal FILE] SCRIPT -- COMMAND …",
    )
    _add_server_arguments(run)
    check = commands.add_parser("check", help="check scripts", description="Check scripts; exit 2 when one is wrong.")
    check.add_argument("scripts", nargs="+", type=Path, metavar="SCRIPT")
    check.add_argument("--format", choices=("text", "json"), default="text")
    return parser


def _add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", type=Path, metavar="SCRIPT")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write every request here, one JSON line each")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(given)
    except MockError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except BrokenPipeError:
        return 1


def _dispatch(given: list[str]) -> int:
    wrapped: list[str] | None = None
    if given[:1] == ["run"] and "--" in given:
        at = given.index("--")
        given, wrapped = given[:at], given[at + 1 :]
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        what = f"command '{given[0]}' is unknown{near_miss(given[0], COMMANDS)}"
        raise UsageError(what, where="mock-provider", expected=f"one of {', '.join(COMMANDS)}")
    arguments = build_parser().parse_args(given)
    if arguments.command == "check":
        return check_scripts(arguments.scripts, as_json=arguments.format == "json")
    script = load_script(arguments.script)
    if arguments.command == "serve":
        return serve_until_stopped(
            script,
            host=arguments.host,
            port=arguments.port,
            ready_file=arguments.ready_file,
            journal_path=arguments.journal,
        )
    if not wrapped:
        raise UsageError(
            "no command to run", where="mock-provider run", expected="mock-provider run SCRIPT -- COMMAND …"
        )
    return run_command(script, wrapped, host=arguments.host, port=arguments.port, journal_path=arguments.journal)


def check_scripts(paths: Sequence[Path], *, as_json: bool) -> int:
    """Check scripts and say what they hold, or everything that is wrong. Shape: exit code 0 or 2."""
    results: list[Json] = []
    exit_code = 0
    for path in paths:
        try:
            script = load_script(path)
        except ScriptError as error:
            exit_code = error.exit_code
            results.append({"file": str(path), "ok": False, "problems": _problems(error)})
            if not as_json:
                sys.stderr.write(f"{error}\n")
            continue
        results.append({"file": str(path), "ok": True, **_summary(script), "problems": []})
        if not as_json:
            sys.stdout.write(_summary_text(str(path), script))
    if as_json:
        sys.stdout.write(json.dumps({"ok": exit_code == 0, "scripts": results}, indent=2) + "\n")
    return exit_code


def _problems(error: ScriptError) -> list[Json]:
    return [
        {
            "line": problem.line,
            "column": problem.column,
            "field": problem.field,
            "code": problem.code,
            "what": problem.what,
            "expected": problem.expected,
            "fix": problem.fix,
        }
        for problem in error.problems
    ]


def _summary(script: Script) -> JsonObject:
    conversations: list[Json] = [
        {"name": conversation.name, "steps": len(conversation.steps()), "background": conversation.is_background}
        for conversation in script.conversations
    ]
    gates: list[Json] = list(script.gate_names())
    return {
        "digest": script.digest,
        "model": script.model,
        "flavour": script.flavour,
        "conversations": conversations,
        "gates": gates,
    }


def _summary_text(path: str, script: Script) -> str:
    steps = sum(len(conversation.steps()) for conversation in script.conversations)
    lines = [f"{path}: ok: {_count(len(script.conversations), 'conversation')}, {_count(steps, 'step')}"]
    for conversation in script.conversations:
        found = "by its 'when'" if conversation.when else "takes any request"
        name = f'"{conversation.name}"' if conversation.name else "(single)"
        lines.append(f"  {name}: {_count(len(conversation.steps()), 'step')}, {found}")
    if script.gate_names():
        lines.append(f"  gates: {', '.join(script.gate_names())}")
    return "\n".join(lines) + "\n"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
