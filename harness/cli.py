"""The command `harness`: reads its arguments, settles the settings, hands over to a surface.

Room: the console command and `python -m harness` come in, and a lane that passes a channel. Surfaces are imported
only when they are asked for.
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from harness.cli_help import ACP_HELP, OVERVIEW, RUN_HELP, SDK_HELP, SWEEP_HELP
from harness.errors import HarnessError, InternalError, UsageError
from harness.settings import Flags, environment, from_environment, session_root_of
from harness.transport.stdio import OutputClosedError, StandardStreams, claimed_streams

if TYPE_CHECKING:
    import httpx

COMMANDS = ("run", "sdk", "acp", "sessions", "attachments")
EXIT_OUTPUT_CLOSED = 1
EXIT_INTERRUPTED = 130

_PROFILES = {"sdk": "sdk", "acp": "acp", "headless": "run"}


class _Parser(argparse.ArgumentParser):
    """Reports what is wrong as a usage error instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, where=self.prog, fix=f"{self.prog} --help shows the options")


def main(argv: Sequence[str] | None = None, *, transport: httpx.AsyncBaseTransport | None = None) -> int:
    """Run the command and give its exit code. transport stands in for the way to the model's service.

    Shape: without argv the process is this program, and its standard streams stay claimed until it ends.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    with claimed_streams() as streams:
        if argv is None:
            streams.keep()
        try:
            return _dispatch(arguments, streams, transport)
        except OutputClosedError as error:
            streams.write_error(f"harness: {error.what}\n")
            return EXIT_OUTPUT_CLOSED
        except HarnessError as error:
            text = str(error)
            streams.write_error(f"{text}\n" if text.startswith("harness ") else f"harness: {text}\n")
            return error.exit_code
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except Exception as error:  # noqa: BLE001 - whatever it was, a person gets one line and not our insides
            streams.write_error(f"harness: {type(error).__name__}: {error}\n")
            return InternalError.exit_code


def _dispatch(arguments: list[str], streams: StandardStreams, transport: httpx.AsyncBaseTransport | None) -> int:
    match arguments:
        case ["-h" | "--help" | "help", *_]:
            streams.write(OVERVIEW)
            return 0
        case ["--version", *_]:
            streams.write(f"harness {_version()}\n")
            return 0
        case ["run", *rest]:
            return _run(rest, streams, transport)
        case ["sdk", *rest]:
            return _sdk(rest, streams, transport)
        case ["acp", *rest]:
            return _acp(rest, streams, transport)
        case ["sessions", *rest]:
            return _sessions(rest, streams)
        case ["attachments", "sweep", *rest]:
            return _sweep(rest, streams)
        case ["attachments", *_]:
            raise UsageError("what is to be done with them?", where="harness attachments", expected="sweep")
        case ["--profile", name, *rest] if name in _PROFILES:
            return _dispatch([_PROFILES[name], *_without_patches(rest)], streams, transport)
        case ["--profile", *rest]:
            raise UsageError(
                f"profile {rest[0][:60]!r} is unknown" if rest else "which profile?",
                where="--profile",
                expected=f"one of {', '.join(_PROFILES)}",
            )
        case ["--patch", _, *rest]:
            return _dispatch(rest, streams, transport)
        case []:
            streams.write_error(OVERVIEW)
            return UsageError.exit_code
        case [word, *_]:
            near = difflib.get_close_matches(word, COMMANDS, n=1)
            raise UsageError(
                f"{word[:60]!r} is no command" + (f"; did you mean {near[0]!r}?" if near else ""),
                expected=f"one of {', '.join(COMMANDS)}",
                fix='a task is given as: harness run "TASK"',
            )
    raise AssertionError("a list of words is empty or has a first word")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("five-lanes")
    except PackageNotFoundError:
        return "(not installed)"


def _run(arguments: list[str], streams: StandardStreams, transport: httpx.AsyncBaseTransport | None) -> int:
    options, literal = _split(arguments)
    known = _parsed(_run_parser(), options, RUN_HELP, streams)
    if known is None:
        return 0
    _refuse_bytes("harness run", {"TASK": known.task + literal, "--resume": known.resume, **_names(known)})
    task = _task(known.task, literal, streams)
    settings = from_environment(flags=_flags(known))

    import asyncio  # a third of the start; help and usage errors do without

    from harness.surfaces.headless import HeadlessRun, run_headless

    run = HeadlessRun(
        task=task, as_json=known.json, verbose=known.verbose, timeout_s=known.timeout, resume=known.resume
    )
    return asyncio.run(run_headless(run, settings, streams, transport=transport))


def _sdk(arguments: list[str], streams: StandardStreams, transport: httpx.AsyncBaseTransport | None) -> int:
    parser = _Parser(prog="harness sdk", allow_abbrev=False, add_help=False)
    _add_settings(parser)
    parser.add_argument("--max-tokens-as-success", action="store_true")
    known = _parsed(parser, arguments, SDK_HELP, streams)
    if known is None:
        return 0
    import asyncio

    from harness.assemble import check_settings
    from harness.surfaces.connection import Say, serve_streams
    from harness.surfaces.sdk.server import SdkOptions, SdkServer

    _refuse_bytes("harness sdk", _names(known))
    flags, environ = _flags(known), environment()
    check_settings(from_environment(environ, flags))  # what cannot work is said before anything is served
    options = SdkOptions(max_tokens_as_success=known.max_tokens_as_success)

    def make(say: Say) -> SdkServer:
        return SdkServer(flags, environ, say=say, transport=transport, options=options)

    return asyncio.run(serve_streams(streams, "harness sdk", make))


def _acp(arguments: list[str], streams: StandardStreams, transport: httpx.AsyncBaseTransport | None) -> int:
    parser = _Parser(prog="harness acp", allow_abbrev=False, add_help=False)
    _add_settings(parser)
    for switch in ("--ask", "--live", "--stored-sessions", "--tell-max-tokens"):
        parser.add_argument(switch, action="store_true")
    known = _parsed(parser, arguments, ACP_HELP, streams)
    if known is None:
        return 0
    _refuse_bytes("harness acp", _names(known))
    settings = from_environment(flags=_flags(known))
    import asyncio

    from harness.assemble import check_settings
    from harness.surfaces.acp.bridge import AcpBridge, AcpOptions
    from harness.surfaces.connection import Say, serve_streams

    check_settings(settings)
    options = AcpOptions(_version(), known.ask, known.live, known.stored_sessions, known.tell_max_tokens)

    def make(say: Say) -> AcpBridge:
        return AcpBridge(settings, say=say, transport=transport, options=options)

    return asyncio.run(serve_streams(streams, "harness acp", make))


def _sweep(arguments: list[str], streams: StandardStreams) -> int:
    parser = _Parser(prog="harness attachments sweep", allow_abbrev=False, add_help=False)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--grace-hours", type=_at_least(0, float), default=24.0)
    parser.add_argument("--session-root")
    parser.add_argument("-h", "--help", action="store_true")
    known = _parsed(parser, arguments, SWEEP_HELP, streams)
    if known is None:
        return 0
    from harness.surfaces.attachments import run_sweep

    root = session_root_of(Flags(session_root=known.session_root))
    return run_sweep(root, known.grace_hours, streams, is_rehearsal=known.dry_run)


def _sessions(arguments: list[str], streams: StandardStreams) -> int:
    from harness.surfaces.sessions import HELP, add_options, read_options, run_sessions

    parser = _Parser(prog="harness sessions", allow_abbrev=False, add_help=False)
    add_options(parser)
    known = _parsed(parser, arguments, HELP, streams)
    if known is None:
        return 0
    return run_sessions(read_options(known), session_root_of(Flags(session_root=known.session_root)), streams)


def _parsed(parser: _Parser, arguments: list[str], text: str, streams: StandardStreams) -> argparse.Namespace | None:
    """The options, or None when all that was wanted is the help."""
    known, unknown = parser.parse_known_intermixed_args(arguments)
    if known.help:
        streams.write(text)
        return None
    if unknown:
        _refuse_option(unknown[0], parser, parser.prog)
    return known


def _flags(known: argparse.Namespace) -> Flags:
    return Flags(
        provider=known.provider,
        model=known.model,
        base_url=known.base_url,
        session_root=known.session_root,
        cwd=known.cwd,
        max_steps=known.max_steps,
        retry_base_ms=known.retry_base_ms,
        compact_at=known.compact_at,
        delegation_depth=known.delegation_depth,
        mcp=known.mcp,
    )


def _without_patches(arguments: list[str]) -> list[str]:
    """The arguments without `--patch FILE`, which published clients pass on and which changes nothing here."""
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--patch":
            next(rest, None)
        else:
            kept.append(argument)
    return kept


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and the words behind it, of which none is an option or stands for a pipe."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def _task(words: list[str], literal: list[str], streams: StandardStreams) -> str:
    if not literal and (words == ["-"] or (not words and not streams.is_input_terminal)):
        task = streams.read_input().rstrip("\r\n")
    elif "-" in words:
        raise UsageError(
            "a task in words and one from standard input",
            where="harness run",
            expected="either words or -",
            fix="leave out one of them",
        )
    else:
        task = " ".join(words + literal)
    if not task.strip():
        raise UsageError(
            "no task",
            where="harness run",
            expected="a task in words, or one piped to standard input",
            fix='harness run "TASK"; harness run --help shows the options',
        )
    return task


def _names(known: argparse.Namespace) -> dict[str, str | None]:
    return {"--model": known.model, "--provider": known.provider, "--base-url": known.base_url}


def _refuse_bytes(command: str, given: Mapping[str, str | list[str] | None]) -> None:
    """Refuse what is no text: Python hands bytes of the command line that are not UTF-8 on as half characters.

    Folders are left alone, for a file system may hold any bytes in a name.
    """
    for name, said in given.items():
        for word in said if isinstance(said, list) else [said or ""]:
            if any("\udc80" <= character <= "\udcff" for character in word):
                raise UsageError(
                    f"not UTF-8: {os.fsencode(word)[:60]!r}",
                    where=f"{command}: {name}",
                    expected="text",
                    fix="give it as UTF-8; material in other encodings belongs into a file of the workspace",
                )


_Number = TypeVar("_Number", int, float)


def _at_least(least: _Number, parse: Callable[[str], _Number]) -> Callable[[str], _Number]:
    def check(text: str) -> _Number:
        try:
            value = parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not math.isfinite(value) or value < least:
            raise argparse.ArgumentTypeError(f"{text} is out of range; expected: {least:g} or more")
        return value

    return check


def _run_parser() -> _Parser:
    parser = _Parser(prog="harness run", allow_abbrev=False, add_help=False)
    add = parser.add_argument
    add("task", nargs="*", metavar="TASK")
    _add_settings(parser)
    add("--resume", "--session-id", dest="resume")
    add("--timeout", type=_at_least(0.001, float))
    for switch in ("--json", "--verbose"):
        add(switch, action="store_true")
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for option in ("--model", "--provider", "--base-url", "--cwd", "--session-root", "--mcp"):
        add(option)
    add("--max-steps", type=_at_least(1, int))
    add("--retry-base-ms", type=_at_least(0, int))
    add("--compact-at", type=_at_least(1, int))
    add("--delegation-depth", type=_at_least(0, int))
    add("-h", "--help", action="store_true")


def _refuse_option(option: str, parser: argparse.ArgumentParser, command: str) -> NoReturn:
    known = [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001 - no public way
    near = difflib.get_close_matches(option.partition("=")[0], known, n=1)
    raise UsageError(
        f"{option!r} is no option" + (f"; did you mean {near[0]!r}?" if near else ""),
        where=command,
        fix=f"{command} --help shows the options"
        + ("; write -- before a task that begins with a dash" if command == "harness run" else ""),
    )
