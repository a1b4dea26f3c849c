"""`lanes script`: a script of the mock provider that says again what session logs say was answered.

Room: the command line comes in. It knows the product's logs and the mock provider's scripts, and sends nothing.

The requests are rebuilt from the logs as a replay does it, so that each step tells what it was asked; the script is
played before it is handed out. What a log does not tell, the exact pieces and how a request failed, it does not either.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import HarnessError
from harness.log.load import scan
from harness.model.chunks import ReasoningDelta, TextDelta, ToolCallDelta, UsageChunk
from lanes.errors import UsageError
from lanes.options import Parser
from lanes.recorded_calls import FINISH_WORDS, RecordedCall, derive_calls, line_of
from lanes.recorded_script import script_usage
from mock_provider.recording.decoding import Turn, read_turn
from mock_provider.recording.exchanges import Clean
from mock_provider.recording.playing_back import differences
from mock_provider.recording.said import Said, SaidCounts, SaidPart, merged
from mock_provider.recording.scripting import HEADER, compose_script

WHERE = "lanes script"
OWN_HEADER = """\
# Written by lanes script from session logs. It says again what was answered: edit it as you like.
# `expect` names what the requests looked like; take away what your program may change.
"""
MAX_LOG_BYTES = 256 << 20


def run_script(arguments: Sequence[str]) -> str:
    """Write a script from session logs. Shape: the text for standard output, empty when a file took it.

    Raises: UsageError for a log that cannot be read, or that no script can say again; CassetteError for a broken one.
    """
    parser = Parser(
        prog=WHERE,
        description="Write a script of the mock provider that says again what session logs say was answered.",
        epilog="example: lanes script session.jsonl --to script.yaml",
        allow_abbrev=False,
    )
    parser.add_argument("logs", nargs="+", metavar="LOG", help="a session log; those of subagents may follow")
    parser.add_argument("--to", metavar="FILE", help="a new file (default: standard output)")
    options = parser.parse_args(list(arguments))
    text = script_of_logs([Path(log) for log in options.logs])
    if options.to is None:
        return text
    try:
        with Path(options.to).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        what = f"the file cannot be written: {error.strerror or error}"
        raise UsageError(what, where=options.to, fix="choose another name") from None
    return ""


def script_of_logs(logs: Sequence[Path]) -> str:
    """The script of some logs, told apart by what was asked. Raises: as run_script."""
    turns = [turn for log in logs for turn in _turns(log)]
    problems: list[str] = []
    for as_they_came in (False, True):
        text = compose_script(turns, name="session", as_they_came=as_they_came)
        problems = differences(text, turns)
        if not problems:
            return text.replace(HEADER, OWN_HEADER, 1)
    fix = "; ".join(problems[:3])
    raise UsageError("no script would say this again", where=str(logs[0]), expected="what a script can say", fix=fix)


def _turns(log: Path) -> list[Turn]:
    try:
        with log.open("rb") as file:
            data = file.read(MAX_LOG_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=str(log), fix="check the path") from None
    if len(data) > MAX_LOG_BYTES:
        raise UsageError(f"more than {MAX_LOG_BYTES} bytes", where=str(log), expected="a session log")
    try:
        found = scan(data, clock=lambda: 0)
    except HarnessError as error:
        raise UsageError(error.what, where=str(log), expected="a session log") from None
    calls = derive_calls(tuple(found.log), found.log.header.seed_length or 0, str(log), data)
    if not calls:
        raise UsageError("no model call is in it", where=str(log), expected="a session that asked a model")
    for call in calls:
        if call.others:
            raise UsageError(
                f"what the {call.name} was to sum up is not in the log, for it came to nothing",
                where=f"{log}, line {line_of(data, call.seq)}, data.reason",
                expected="requests that follow from the log",
                fix="write the script of another session, or by hand",
            )
    return [_turn(number, call) for number, call in enumerate(calls, start=1)]


def _turn(number: int, call: RecordedCall) -> Turn:
    """A call as an exchange whose answer is understood already."""
    exchange = Clean(
        number=number,
        method="POST",
        uri="",
        target="/v1/chat/completions",
        headers={"content-type": ("application/json",)},
        body=json.dumps(call.body),
        status=200,
        reason="OK",
        answer_headers={},
        answer="",
        pieces=(),
    )
    return replace(read_turn(exchange), needs_step=True, said=_said(call))


def _said(call: RecordedCall) -> Said:
    parts: list[SaidPart] = []
    calls: dict[str, int] = {}
    finish: str | None = None
    counts: SaidCounts | None = None
    for chunk in call.chunks:
        if isinstance(chunk, TextDelta):
            parts.append(SaidPart("text", chunk.text))
        elif isinstance(chunk, ReasoningDelta):
            parts.append(SaidPart("reasoning", chunk.text))
        elif isinstance(chunk, ToolCallDelta):
            at = calls.setdefault(chunk.id, len(parts))
            if at == len(parts):
                parts.append(SaidPart("call", "", chunk.name or "", chunk.id))
            grown = parts[at]
            parts[at] = SaidPart("call", grown.text + chunk.arguments_delta, grown.name or chunk.name or "", grown.id)
        elif isinstance(chunk, UsageChunk):
            told = script_usage(chunk.usage)
            counts = SaidCounts(told["input"], told["output"], told.get("cached", 0), told.get("reasoning", 0))
        else:
            finish = FINISH_WORDS.get(getattr(chunk, "kind", ""), finish)
    failure = None if call.ending == "answered" else (call.said or "the answer broke off", "server_error", None)
    return Said(merged(parts), finish, counts, None, failure)
