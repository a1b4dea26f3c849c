"""The command `mock-provider`: serve, run, check, explain, new, schema, record.

Room: the outermost; nobody comes in but the console and `python -m mock_provider`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mock_provider.checking import check_scripts
from mock_provider.cli_arguments import COMMANDS, build_parser
from mock_provider.doorkeeper import allow_many_files
from mock_provider.errors import MockError, UsageError
from mock_provider.limit_words import read_limits
from mock_provider.limits import Limits
from mock_provider.mock import Mock
from mock_provider.named_files import TooLargeError, UnreadableError, read_named
from mock_provider.random_faults import say_seeds, with_seed
from mock_provider.ready_file import ReadyFile
from mock_provider.request_log import RequestLog
from mock_provider.script import load_script
from mock_provider.script_fields import near_miss
from mock_provider.script_schema import script_schema
from mock_provider.serving import ready_line, serve_until_stopped, warn_about_host
from mock_provider.sharing.log import EventLog
from mock_provider.speed import PLAIN_VARIABLE, settle_memory
from mock_provider.standard_streams import fill_gaps, say, tell
from mock_provider.starter import starter
from mock_provider.steps import Script
from mock_provider.watching import Watch
from mock_provider.wrapped import run_command

STARTER_NAME = "script.yaml"
TAKES_COMMAND = ("run", "record")
MAX_GRACE_S = 86_400.0  # a day: more is a slip of the unit
EXIT_INTERRUPTED = 130  # as a shell gives it for a command that SIGINT ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code."""
    if argv is None:  # the process is ours
        fill_gaps()
        settle_memory()
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(given)
    except MockError as error:
        tell(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _is_fast(arguments: argparse.Namespace) -> bool:
    """Whether the speed extra may be used: not when the person or the surroundings ask for the plain loop."""
    return not arguments.plain and not os.environ.get(PLAIN_VARIABLE)


def _dispatch(given: list[str]) -> int:
    wrapped: list[str] | None = None
    if given[:1] and given[0] in TAKES_COMMAND and "--" in given:
        at = given.index("--")
        given, wrapped = given[:at], given[at + 1 :]
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        what = f"command '{given[0]}' is unknown{near_miss(given[0], COMMANDS)}"
        raise UsageError(what, where="mock-provider", expected=f"one of {', '.join(COMMANDS)}")
    arguments = build_parser().parse_args(given)
    command = arguments.command
    if command == "check":
        limits = read_limits(arguments.limit)
        as_json = arguments.format == "json"
        return check_scripts(arguments.scripts, limits, as_json=as_json, dialects=arguments.dialect)
    if command == "explain":
        return _explain(arguments)
    if command == "new":
        return _new(arguments.file)
    if command == "schema":
        say(json.dumps(script_schema(), indent=1) + "\n")
        return 0
    if command == "serve":
        return _serve(arguments)
    if command == "record":
        return _record(arguments, wrapped or [])
    return _run(arguments, wrapped or [])


def _serve(arguments: argparse.Namespace) -> int:
    if arguments.workers != 1 or arguments.redis is not None:
        return _serve_in_company(arguments)
    mock, log = _make_mock(arguments, may_change=arguments.watch)
    watch = None
    if arguments.watch:
        load = partial(_load, limits=mock.limits, seed=arguments.seed, is_strict=arguments.strict_fields)
        watch = Watch(arguments.script, load, mock.replace, log)
    return serve_until_stopped(
        mock,
        host=arguments.host,
        port=arguments.port,
        ready_file=arguments.ready_file,
        watch=watch,
        is_fast=_is_fast(arguments),
    )


def _serve_in_company(arguments: argparse.Namespace) -> int:
    from mock_provider.sharing.workers import Company, check_count, serve_in_company  # few need several processes

    check_count(arguments.workers, arguments.redis, is_watching=arguments.watch)
    script, limits, log = _read_play(arguments)

    def make(events: EventLog, is_watcher: bool) -> Mock:
        journal = arguments.journal if is_watcher else None
        told = log if is_watcher and arguments.log else None
        return Mock(script, limits=limits, journal_path=journal, log=told, shared=events)

    company = Company(
        count=arguments.workers,
        host=arguments.host,
        port=arguments.port,
        redis_url=arguments.redis,
        make=make,
        is_fast=_is_fast(arguments),
    )
    warn_about_host(arguments.host)
    allow_many_files()
    ready = None if arguments.ready_file is None else ReadyFile(arguments.ready_file)
    return serve_in_company(company, ready, ready_line)


def _run(arguments: argparse.Namespace, wrapped: list[str]) -> int:
    grace_s = _grace(arguments.grace)
    if not wrapped:
        raise UsageError(
            "no command to run", where="mock-provider run", expected="mock-provider run SCRIPT -- COMMAND …"
        )
    mock, _ = _make_mock(arguments)
    return run_command(
        mock,
        wrapped,
        host=arguments.host,
        port=arguments.port,
        grace_s=grace_s,
        is_fast=_is_fast(arguments),
    )


def _grace(seconds: float) -> float:
    if not 0 < seconds <= MAX_GRACE_S:  # a number that is none is not, either
        what = f"--grace {seconds:g} is no time to wait"
        raise UsageError(what, where="mock-provider run", expected=f"more than 0, at most {MAX_GRACE_S:g} seconds")
    return seconds


def _keep_apart(arguments: argparse.Namespace) -> None:
    """See that what is written does not overwrite what is read. Raises: UsageError."""
    named = {"the script": arguments.script}
    for name, path in (("the journal", arguments.journal), ("the ready file", getattr(arguments, "ready_file", None))):
        for other, known in named.items():
            if path is not None and os.path.realpath(path) == os.path.realpath(known):
                raise UsageError(f"{name} and {other} are one file", where=str(path), fix="choose another name")
        if path is not None:
            named[name] = path


def _record(arguments: argparse.Namespace, wrapped: list[str]) -> int:
    from mock_provider.recording.session import Wish, record  # its client takes longer to load than a server to start

    wish = Wish(
        upstream=arguments.upstream,
        folder=arguments.out,
        host=arguments.host,
        port=arguments.port,
        names=tuple(arguments.secret),
        may_replace=arguments.replace,
        keeps_transient=arguments.keep_transient,
        ready_file=arguments.ready_file,
        command=tuple(wrapped),
    )
    return record(wish)


def _load(path: Path, limits: Limits, seed: int | None, *, is_strict: bool) -> Script:
    script = load_script(path, limits)
    if is_strict:
        script = replace(script, refuses_extra_fields=True)
    return script if seed is None else with_seed(script, seed)


def _read_play(arguments: argparse.Namespace) -> tuple[Script, Limits, RequestLog]:
    _keep_apart(arguments)
    limits = read_limits(arguments.limit)
    script = _load(arguments.script, limits, arguments.seed, is_strict=arguments.strict_fields)
    log = RequestLog(arguments.log or "text", tell)
    if say_seeds(script):
        log.event("seed", say_seeds(script))
    return script, limits, log


def _make_mock(arguments: argparse.Namespace, *, may_change: bool = False) -> tuple[Mock, RequestLog]:
    script, limits, log = _read_play(arguments)
    mock = Mock(
        script,
        journal_path=arguments.journal,
        limits=limits,
        log=log if arguments.log else None,
        may_change=may_change,
    )
    return mock, log


def _explain(arguments: argparse.Namespace) -> int:
    from mock_provider.explaining import explain, explanation_json, explanation_text, read_request

    limits = read_limits(arguments.limit)
    script = load_script(arguments.script, limits)
    try:
        text = read_named(arguments.request, limits.body_bytes)
    except TooLargeError as error:
        fix = "raise the limit: --limit body=SIZE"
        raise UsageError(str(error), where=str(arguments.request), fix=fix) from None
    except UnreadableError as error:
        place = f"{arguments.request}:{error.line}:{error.column}" if error.line else str(arguments.request)
        raise UsageError(error.what, where=place, expected=error.expected, fix=error.fix) from None
    found = explain(script, read_request(text, str(arguments.request), script, arguments.dialect))
    if arguments.format == "json":
        say(json.dumps(explanation_json(found), indent=2) + "\n")
    else:
        say(explanation_text(found))
    return 0 if found.ok else 3


def _new(path: Path | None) -> int:
    if path is None:
        say(starter(STARTER_NAME))
        return 0
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise UsageError("the file is there already", where=str(path), fix="choose another name") from None
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(starter(path.name))
    except OSError as error:
        path.unlink(missing_ok=True)  # half a script is none
        raise _unwritable(path, error) from None
    return 0


def _unwritable(path: Path, error: OSError) -> UsageError:
    what = f"the file cannot be written: {error.strerror or error}"
    return UsageError(what, where=str(path), fix="check the path")
