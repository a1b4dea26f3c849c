"""From a taken step to the reply that a dialect renders: copies filled, ids derived, tokens counted.

Room: pure; the engine comes in.
"""

from __future__ import annotations

import functools
import hashlib
from binascii import hexlify

from mock_provider.asked import Asked, Refusal
from mock_provider.causes import form_of
from mock_provider.copying import CopyError, Source
from mock_provider.dialects.codec import Dialect, Reply, SaidCall, count_usage, finish_of
from mock_provider.filled import ID_BYTES
from mock_provider.json_values import encode_json
from mock_provider.playback import Taken
from mock_provider.steps import ErrorEvent, HttpError, Part, Reasoning, RefusalText, Script, Text, ToolCall


def derive_id(script: Script, taken: Taken, kind: str, number: int = 0) -> str:
    """An id from script, conversation, client, request and step alone; its prefix tells it from a live one."""
    mark = mark_of(taken.step.number, kind, number)
    return f"mock-{kind}-{derive_digits(script, taken, (mark,))[0].decode('ascii')}"


def mark_of(step: int, kind: str, number: int) -> bytes:
    """What tells one id of a request from the others."""
    return f"\x1f{step}\x1f{kind}\x1f{number}".encode("utf-8", "surrogatepass")


def derive_digits(script: Script, taken: Taken, marks: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The digits of the ids with these marks, as they are spelled."""
    cursor = taken.cursor
    return digits_of(seed_of(script.digest, cursor.conversation.name, cursor.client), taken.use, marks)


def digits_of(seed: hashlib._Hash, use: int, marks: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """As derive_digits, of a client's requests that was seeded before."""
    spelled = b"\x1f%d" % use
    found: list[bytes] = []
    for mark in marks:
        digest = seed.copy()
        digest.update(spelled + mark)
        found.append(hexlify(digest.digest()[:ID_BYTES]))
    return tuple(found)


@functools.lru_cache(maxsize=256)
def seed_of(*seed: str) -> hashlib._Hash:
    """What the ids of one client in one conversation have in common; nobody may add to it."""
    return hashlib.sha256("\x1f".join(seed).encode("utf-8", "surrogatepass"))


def compose_reply(script: Script, taken: Taken, asked: Asked, dialect: Dialect) -> Reply:
    """Fill a step's answer in. Raises: CopyError for a placeholder without a value."""
    step = taken.step
    source = Source(asked.body, taken.groups)
    parts: list[Part] = []
    calls: list[SaidCall] = []
    for part in step.parts:
        if isinstance(part, Text):
            parts.append(Text(source.text(part.text)))
        elif isinstance(part, Reasoning):
            parts.append(Reasoning(source.text(part.text)))
        elif isinstance(part, RefusalText):
            parts.append(RefusalText(source.text(part.text)))
        elif isinstance(part, ErrorEvent) and part.cause is not None:
            form = form_of(part.cause, dialect.name, script.flavour)
            parts.append(ErrorEvent(part.message or form.message, part.code or form.code, form.kind))
        else:
            if isinstance(part, ToolCall):
                calls.append(_call(script, taken, part, source, len(calls)))
            parts.append(part)
    return Reply(
        parts=tuple(parts),
        calls=tuple(calls),
        finish=finish_of(step.finish, parts),
        counts=count_usage(step.usage, asked, parts, calls),
        stream=step.stream,
        id=derive_id(script, taken, dialect.id_kind),
        model=step.model or script.model or asked.model,
        created=script.created,
        flavour=script.flavour,
        usage_times=step.usage.times,
    )


def _call(script: Script, taken: Taken, part: ToolCall, source: Source, number: int) -> SaidCall:
    if part.raw is not None:
        arguments = source.text(part.raw)
    else:
        arguments = encode_json(source.json(dict(part.arguments or {}))).decode("utf-8")
    call_id = part.id if part.own_id else derive_id(script, taken, "call", number)
    return SaidCall(call_id, part.name, arguments, number if part.index is None else part.index)


def compose_refusal(error: HttpError, source: Source, dialect: Dialect, flavour: str = "openai") -> Refusal:
    """Fill an error answer in: the script's words, else the provider's usual ones for this cause, code or status."""
    if error.cause is None:
        status = error.status
        kind, code, message = dialect.usual_error(status, error.code)
    else:
        form = form_of(error.cause, dialect.name, flavour)
        status, kind, code, message = error.status or form.status, form.kind, error.code or form.code, form.message
    headers = list(error.headers)
    if error.retry_after_s is not None:
        whole = error.retry_after_s == int(error.retry_after_s)
        headers.append(("retry-after", str(int(error.retry_after_s) if whole else error.retry_after_s)))
    if error.retry_after_ms is not None:
        headers.append(("retry-after-ms", str(error.retry_after_ms)))
    text = source.text(error.message) if error.message else message
    return Refusal(status, "scripted", text, error.kind or kind, code, None, tuple(headers))


__all__ = [
    "CopyError",
    "compose_refusal",
    "compose_reply",
    "derive_digits",
    "derive_id",
    "digits_of",
    "mark_of",
    "seed_of",
]
