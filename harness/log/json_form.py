"""Events and headers as JSON objects, the way a log spells them, and the lines they make.

Room: pure; the store writes and reads lines with it, surfaces show the same objects to their clients.
"""

from __future__ import annotations

import json

from harness.errors import InvalidEventError, LogDamagedError, LogUnsupportedError
from harness.log.events import (
    LOG_VERSION,
    Event,
    ForeignPayload,
    Replace,
    SessionHeader,
    SurfaceOp,
)
from harness.log.frozen import freeze_object
from harness.log.model_checks import refuse
from harness.log.model_form import (
    JsonDict,
    present,
    take,
    take_list,
    with_optional,
)
from harness.log.payload_form import READERS, WRITERS
from harness.log.validate import check_header

# ASCII escapes: lone surrogates stay what they were, and no reader takes an exotic separator for a line end.
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def encode_line(value: JsonDict) -> bytes:
    """One object as one line, newline included."""
    return _encode(value).encode("ascii") + b"\n"


def parse_line(line: bytes) -> JsonDict:
    """The object on one line.

    Raises: InvalidEventError when the bytes are not UTF-8, not JSON, not an object, or hold a number JSON has not.
    """
    try:
        text = line.decode("utf-8")
        value, end = _decode(text)
        if end != len(text) and not text[end:].isspace():
            raise ValueError(f"more follows behind character {end}")
    except (ValueError, RecursionError) as error:
        raise InvalidEventError(f"is not JSON: {error}", where="line") from error
    if type(value) is not dict:
        raise InvalidEventError("is not a JSON object", where="line")
    return value


def _reject_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


_decode = json.JSONDecoder(parse_constant=_reject_constant).raw_decode


def header_to_json(header: SessionHeader) -> JsonDict:
    """The first line of a log, as an object."""
    return with_optional(
        {"type": "session", "version": header.version, "id": header.id, "createdAt": header.created_at},
        cwd=header.cwd,
        parentSession=header.parent_session,
        seedLength=header.seed_length,
        origin=header.origin,
        delegationDepth=header.delegation_depth or None,
        agentPreset=header.agent_preset,
    )


_HEADER = frozenset({"type", "version", "id", "createdAt"})
_HEADER_MORE = frozenset({"cwd", "parentSession", "seedLength", "origin", "delegationDepth", "agentPreset"})


def header_from_json(value: JsonDict) -> SessionHeader:
    """The header a first line stands for.

    Raises: LogUnsupportedError for another version, whatever the rest looks like; LogDamagedError otherwise.
    """
    version = value.get("version")
    if type(version) is int and version != LOG_VERSION:
        newer = version > LOG_VERSION
        raise LogUnsupportedError(
            f"log version {version} was written by {'a newer' if newer else 'an older'} build",
            expected=f"version {LOG_VERSION}",
            fix="upgrade this program" if newer else "there is no upgrade path; open it with the build that wrote it",
        )
    try:
        data = take(value, "header", _HEADER, _HEADER_MORE)
        if data["type"] != "session" or type(version) is not int:
            refuse("header", "does not say type 'session' and a version")
        header = SessionHeader(
            data["id"],
            data["createdAt"],
            present(data, "cwd", "header"),
            present(data, "parentSession", "header"),
            present(data, "seedLength", "header"),
            present(data, "origin", "header"),
            data.get("delegationDepth", 0),
            present(data, "agentPreset", "header"),
        )
        check_header(header)
    except InvalidEventError as error:
        raise LogDamagedError(f"the first line is not a session header: {error.where}: {error.what}") from error
    return header


def event_to_json(event: Event) -> JsonDict:
    """One event as an object."""
    payload = event.payload
    kind: type[object] = type(payload)
    value: JsonDict = {
        "type": event.type,
        "seq": event.seq,
        "time": event.time,
        "data": WRITERS[kind](payload),
    }
    operation = event.surface_op
    if operation is not None:
        value["surfaceOp"] = (
            {"op": "replace", "start": operation.start, "end": operation.end}
            if isinstance(operation, Replace)
            else operation
        )
    if event.source_event_seqs is not None:
        value["sourceEventSeqs"] = list(event.source_event_seqs)
    if event.ignorable:
        value["ignorable"] = True
    return value


_EVENT = frozenset({"type", "seq", "time", "data"})
_EVENT_MORE = frozenset({"surfaceOp", "sourceEventSeqs", "ignorable"})
_REPLACE = frozenset({"op", "start", "end"})


def event_from_json(value: JsonDict) -> Event:
    """The event an object stands for.

    Raises: LogUnsupportedError for a type this version does not know and may not skip; InvalidEventError otherwise.
    """
    data = take(value, "event", _EVENT, _EVENT_MORE)
    kind = data["type"]
    ignorable = False
    operation: SurfaceOp | None = None
    sources: tuple[int, ...] | None = None
    if len(data) > len(_EVENT):
        if "ignorable" in data:
            if data["ignorable"] is not True:
                refuse("ignorable", f"{data['ignorable']!r} where true or nothing belongs")
            ignorable = True
        if "surfaceOp" in data:
            operation = _operation_from_json(data["surfaceOp"])
        if "sourceEventSeqs" in data:
            sources = tuple(take_list(data["sourceEventSeqs"], "sourceEventSeqs"))
    if type(kind) is not str:
        refuse("type", f"{kind!r} is not a string")
    read = READERS.get(kind)
    if read is not None:
        payload = read(data["data"])
    elif ignorable:
        payload = ForeignPayload(kind, freeze_object(data["data"]))
    else:
        raise LogUnsupportedError(
            f"event {data['seq']} has the type {kind!r}, which this build does not know and may not skip",
            expected="a known type, or one marked ignorable",
            fix="open the session with the build that wrote it, or a newer one",
        )
    return Event(data["seq"], data["time"], payload, operation, sources, ignorable)


def _operation_from_json(value: object) -> SurfaceOp:
    if value == "append":
        return "append"
    data = take(value, "surfaceOp", _REPLACE)
    if data["op"] != "replace":
        refuse("surfaceOp", f"{data['op']!r} is neither 'append' nor 'replace'")
    return Replace(data["start"], data["end"])
