"""A story's session log as rows of JSON: read whole, and asked for the facts a story names.

Room: program and the suites may come in. It reads what stands on disk and knows nothing of the product's own readers,
so a fault in those cannot hide here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.errors import ScenarioError
from lanes.normalize import Json
from lanes.scenario import LogFacts

ROW_CHUNKS = {
    "text-chunks": ("text-delta", "text"),
    "reasoning-chunks": ("reasoning-delta", "text"),
    "tool-call-chunks": ("tool-call-delta", "argumentsDelta"),
}


def read_rows(path: Path) -> list[Json]:
    """The rows of a log file; every line must be JSON and end with a newline."""
    text = path.read_bytes().decode("utf-8")
    lines = text.split("\n")
    if lines[-1]:
        raise ScenarioError("the log's last line has no newline", where=path.name, expected="whole lines", fix="")
    return [json.loads(line) for line in lines[:-1]]


def unpack_rows(rows: Sequence[Json]) -> list[Json]:
    """One row an event: where the writer cut its batches, and so which runs it packed, is nobody's contract."""
    events: list[Json] = []
    for row in rows:
        kind = row.get("type") if isinstance(row, dict) else None
        if isinstance(row, dict) and kind in ROW_CHUNKS:
            events.extend(_unpack_row(row, str(kind)))
        else:
            events.append(row)
    return events


def _unpack_row(row: Mapping[str, Json], kind: str) -> list[Json]:
    data = inside(row, "data")
    pieces, gaps = data.get("args", data.get("texts")), data.get("dt")
    seq, time = row.get("seq0"), row.get("time0")
    if not (isinstance(pieces, list) and isinstance(gaps, list) and isinstance(seq, int) and isinstance(time, int)):
        raise ScenarioError(f"a packed row of kind {kind!r} is not whole", where="session log", expected="", fix="")
    type_of_chunk, name_of_text = ROW_CHUNKS[kind]
    common: dict[str, Json] = {"type": type_of_chunk, "index": data.get("index")}
    common |= {key: data[key] for key in ("id", "name") if key in data}
    events: list[Json] = []
    for number, piece in enumerate(pieces):
        gap = gaps[number - 1] if number else 0
        time += gap if isinstance(gap, int) else 0
        chunk: Json = {**common, name_of_text: piece}
        body: Json = {"turn": data.get("turn"), "step": data.get("step"), "chunk": chunk}
        events.append({"type": "assistant/chunk", "seq": seq + number, "time": time, "data": body})
    return events


def check_log(facts: LogFacts, rows: Sequence[Json]) -> list[str]:
    """How the log differs from what the story says of it, one line each."""
    found = log_facts(rows)
    problems: list[str] = []
    for name in ("turn_ends", "tools", "retries", "headers"):
        wanted: tuple[str, ...] | None = getattr(facts, name)
        is_so: tuple[str, ...] = getattr(found, name)
        if wanted is not None and wanted != is_so:
            problems.append(f"log, {name}: {list(is_so)}, expected {list(wanted)}")
    return problems


def log_facts(rows: Sequence[Json]) -> LogFacts:
    """Turn ends, calls and results, retried failures and logged headers, read off the rows of a log."""
    ends: list[str] = []
    tools: list[str] = []
    retries: list[str] = []
    headers: list[str] = []
    for row in rows:
        if not isinstance(row, dict):
            continue
        data = inside(row, "data")
        if row.get("type") == "turn/end":
            ends.append(str(inside(data, "reason").get("kind")))
        elif row.get("type") == "tool/call":
            tools.append(f"call {data.get('callId')}")
        elif row.get("type") == "tool/result":
            tools.append(_result_line(data))
        elif row.get("type") == "llm/retry":
            retries.append(_retry_line(data))
        elif row.get("type") == "request/header":
            headers.append(str(data.get("reason")))
    return LogFacts(turn_ends=tuple(ends), tools=tuple(tools), retries=tuple(retries), headers=tuple(headers))


def _retry_line(data: Mapping[str, Json]) -> str:
    """The code; where the provider had asked for a waiting time, with the milliseconds that were waited."""
    failure = inside(data, "failure")
    return str(failure.get("code")) + (f" {data.get('delayMs')}" if "providerRetryAfterMs" in failure else "")


def turn_failures(rows: Sequence[Json]) -> tuple[str, ...]:
    """Code and message of every turn that ended in an error, for messages to people."""
    ends = [inside(row, "data") for row in rows if isinstance(row, dict) and row.get("type") == "turn/end"]
    failures = [inside(inside(end, "reason"), "failure") for end in ends]
    return tuple(f"{failure.get('code')}: {failure.get('message')}" for failure in failures if failure)


def _result_line(data: Mapping[str, Json]) -> str:
    message = inside(data, "message")
    content = message.get("content")
    block = content[0] if isinstance(content, list) and content and isinstance(content[0], dict) else {}
    call_id = block.get("toolCallId")
    if not block.get("isError"):
        return f"result {call_id}"
    return f"error {call_id} {inside(data, 'error').get('code')}"


def inside(value: Mapping[str, Json], key: str) -> dict[str, Json]:
    """The object under a key; empty when there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}
