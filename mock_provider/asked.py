"""What a client asked, without the spelling of any provider, and how a provider refuses it.

Room: pure; the dialects make these values, matching and playback read them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from mock_provider.json_values import Json, JsonObject, canonical_json
from mock_provider.values import value

_NOWHERE = (b"", b"", "")
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@value
class AskedCall:
    """A tool call in the history; arguments is the text as sent."""

    id: str
    name: str
    arguments: str


@value
class AskedResult:
    """A tool result in the history; name is the tool's, found through the call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


@value
class AskedMessage:
    """One message of the history.

    Shape: texts are its text parts in order; images counts its pictures. digest is kept for message_digest alone, place
    for history_digests: what stood before, and with it.
    """

    role: Role
    texts: tuple[str, ...] = ()
    calls: tuple[AskedCall, ...] = ()
    results: tuple[AskedResult, ...] = ()
    images: int = 0
    digest: bytes = field(default=b"", compare=False, repr=False)
    place: tuple[bytes, bytes, str] = field(default=_NOWHERE, compare=False, repr=False)

    @property
    def text(self) -> str:
        """All text parts as one."""
        return "\n".join(self.texts)

    def said(self) -> list[str]:
        """Everything in it that counts as tokens."""
        texts = [*self.texts]
        for call in self.calls:
            texts += (call.name, call.arguments)
        texts += [result.text for result in self.results]
        return texts


@value
class Asked:
    """One checked model request.

    Shape: messages holds system prompts too, wherever the dialect keeps them. headers have lower-case names.
    form tells which of the dialect's addresses was used. said_bytes is the size of all that messages say, where it is
    known already, else None. has_call_ids False: calls of the answer will come back without their ids.
    """

    dialect: str
    model: str
    messages: tuple[AskedMessage, ...]
    tools: tuple[str, ...]
    is_stream: bool
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict)
    wants_usage: bool = True
    choices: int = 1
    extra_fields: tuple[str, ...] = ()
    form: str = ""
    said_bytes: int | None = None
    has_call_ids: bool = True

    @property
    def last_user(self) -> AskedMessage | None:
        """The last message of the user, if any."""
        return next((message for message in reversed(self.messages) if message.role == "user"), None)


@value
class Refusal:
    """How the provider turns a request down.

    Shape: rule is our stable name of the broken rule; kind, code and param are the provider's own words.
    """

    status: int
    rule: str
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def same_arguments(text: str) -> str:
    """Spell tool arguments so that formatting does not count; text that is not JSON stays as it is."""
    try:
        value: Json = json.loads(text or "{}")
        return canonical_json(value)
    except (ValueError, RecursionError):
        return text


def message_digest(message: AskedMessage) -> bytes:
    """Tell messages apart by what they say, whatever the client's spelling of it."""
    if message.digest:
        return message.digest
    parts: Json = [
        message.role,
        "".join(message.texts).strip(),
        [[call.id, call.name, same_arguments(call.arguments)] for call in message.calls],
        [[result.call_id, result.text] for result in message.results],
        message.images,
    ]
    digest = hashlib.sha256(canonical_json(parts).encode("ascii")).digest()
    object.__setattr__(message, "digest", digest)  # noted beside the fields; what they say does not change
    return digest


def history_digests(messages: Iterable[AskedMessage], start: str = "") -> list[str]:
    """Digest every prefix of a history, system prompts left out: entry n stands for the first n + 1 messages.

    Shape: start is the digest of what stands before these messages.
    """
    running = bytes.fromhex(start)
    digests: list[str] = []
    for message in messages:
        if message.role != "system":
            before, after, spelled = message.place
            if before != running or not after:
                after = hashlib.sha256(running + message_digest(message)).digest()
                spelled = after.hex()
                object.__setattr__(message, "place", (running, after, spelled))  # as the digest of a message is
            running = after
            digests.append(spelled)
    return digests
