"""The arguments of the command `mock-provider`.

Room: the command comes in; nothing is done here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from mock_provider.errors import UsageError
from mock_provider.request_log import FORMS
from mock_provider.wrapped_child import GRACE_S

COMMANDS = ("serve", "run", "check", "explain", "new", "schema", "record")
EPILOG = """example:
  mock-provider run script.yaml -- python client.py
  (starts the provider, sets OPENAI_BASE_URL and friends for the command, judges the play: exit 3 when it is bad)
"""


class Parser(argparse.ArgumentParser):
    """Says what was expected, in the form of all our errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, where=self.prog, expected=self.format_usage().removeprefix("usage: ").strip())


def build_parser() -> argparse.ArgumentParser:
    """The arguments of all commands; for `run` and `record`, what follows `--` is not among them."""
    parser = Parser(
        prog="mock-provider",
        description="A scripted model behind real provider wire formats.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    names = "|".join(COMMANDS)
    commands = parser.add_subparsers(dest="command", required=True, metavar=names, parser_class=Parser)
    _serve(commands.add_parser("serve", help="serve a script until stopped", description="Serve a script."))
    _run(commands)
    check = commands.add_parser("check", help="check scripts", description="Check scripts; exit 2 when one is wrong.")
    check.add_argument("scripts", nargs="+", type=Path, metavar="SCRIPT")
    dialect_help = "a dialect that the scripts have to fit, beside those they name; may be given again"
    check.add_argument("--dialect", action="append", default=[], metavar="NAME", help=dialect_help)
    _add_format(check)
    _add_limits(check)
    _explain(commands)
    new = commands.add_parser("new", help="begin a script", description="Write a script to begin with, with comments.")
    new.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a new file (default: standard output)")
    commands.add_parser("schema", help="print the JSON Schema of scripts", description="Print the schema of scripts.")
    _record(commands)
    return parser


def _serve(serve: argparse.ArgumentParser) -> None:
    _add_server_arguments(serve)
    serve.add_argument("--ready-file", type=Path, metavar="FILE", help="write the address here once it is served")
    serve.add_argument("--watch", action="store_true", help="read the script again when its file changes")
    serve.add_argument("--workers", type=int, default=1, metavar="N", help="serve in N processes; needs --redis")
    serve.add_argument(
        "--redis", metavar="URL", help="where workers agree on the play, such as redis://127.0.0.1:6379/0"
    )


def _run(commands: argparse._SubParsersAction[Parser]) -> None:
    run = commands.add_parser(
        "run",
        help="run a command against a script",
        description="Run a command against a script; exit code of the command, or 3 when the play went wrong.",
        usage="mock-provider run [--host HOST] [--port PORT] [--journal FILE] [--log text|json] [--seed N] "
        "[--strict-fields] [--limit NAME=SIZE] [--grace SECONDS] [--plain] SCRIPT -- COMMAND …",
    )
    _add_server_arguments(run)
    grace = f"time to end after a signal, before the command is killed (default {GRACE_S:g} s)"
    run.add_argument("--grace", type=float, default=GRACE_S, metavar="SECONDS", help=grace)


def _explain(commands: argparse._SubParsersAction[Parser]) -> None:
    explain = commands.add_parser(
        "explain",
        help="say which step takes a request",
        description="Say which step of a script takes a request, and why not the others; exit 3 when none does.",
    )
    explain.add_argument("script", type=Path, metavar="SCRIPT")
    explain.add_argument("request", type=Path, metavar="REQUEST.json", help="a request body, or a line of the journal")
    explain.add_argument("--dialect", metavar="NAME", help="of a bare body (default: guessed from its fields)")
    _add_format(explain)
    _add_limits(explain)


def _record(commands: argparse._SubParsersAction[Parser]) -> None:
    record = commands.add_parser(
        "record",
        help="record a provider's answers",
        description="Pass requests on to a provider, and write a cassette and a script of the answers when stopped.",
        usage="mock-provider record --upstream URL --out DIR [--replace] [--keep-transient] [--secret NAME] "
        "[--host HOST] [--port PORT] [--ready-file FILE] [-- COMMAND …]",
    )
    record.add_argument("--upstream", required=True, metavar="URL", help="the provider, such as https://api.openai.com")
    record.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder for the two files")
    record.add_argument("--replace", action="store_true", help="replace what is in the folder")
    record.add_argument("--keep-transient", action="store_true", help="keep answers such as 429 and 503, too")
    record.add_argument("--secret", action="append", default=[], metavar="NAME", help="a header or field to hide, too")
    record.add_argument("--ready-file", type=Path, metavar="FILE", help="write the address here once it is served")
    _add_address(record)


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=SIZE", help="change a limit, such as body=64MiB"
    )


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")


def _add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", type=Path, metavar="SCRIPT")
    _add_address(parser)
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write every request here, one JSON line each")
    parser.add_argument("--log", choices=FORMS, help="write a line for every request to standard error")
    parser.add_argument("--seed", type=int, metavar="N", help="draw faults by lot with this seed")
    strict_help = "refuse requests with fields that the provider does not know, as `strict_fields` of a script does"
    parser.add_argument("--strict-fields", action="store_true", help=strict_help)
    parser.add_argument("--plain", action="store_true", help="do without the faster parts of the extra 'speed'")
    _add_limits(parser)
