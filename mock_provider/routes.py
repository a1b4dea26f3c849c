"""Which dialect and conversation an address means: versioned and root paths alike, one port for all.

Room: pure; the engine comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

from mock_provider.match import Naming

Operation: TypeAlias = Literal["answer", "models", "model", "count", "alive", "wrong_method", "unknown"]
CONTROL_PREFIX = "/__mock__/"
CONVERSATION_HEADER = "x-mock-conversation"
KEY_PREFIX = "sk-mock-"
SUPPORTED = (
    "POST /v1/chat/completions, POST /v1/messages, POST /v1/messages/count_tokens, GET /v1/models, GET /v1/models/{id}"
)
_POSTS: dict[str, tuple[Operation, str]] = {
    "/chat/completions": ("answer", "openai_chat"),
    "/messages": ("answer", "anthropic_messages"),
    "/messages/count_tokens": ("count", "anthropic_messages"),
}
_VERSIONS = ("/v1", "/beta", "/anthropic/v1", "/anthropic")


@dataclass(frozen=True, slots=True)
class Route:
    """What a request line asks for. Shape: path is without conversation prefix; argument is the rest of it."""

    operation: Operation
    dialect: str
    path: str
    argument: str = ""


def find_route(method: str, path: str, headers: Mapping[str, str]) -> Route:
    """Read method and path; an unknown path keeps the dialect the headers speak, for its error form."""
    dialect = guess_dialect(headers)
    bare = path.rstrip("/") or "/"
    if bare == "/" and method == "HEAD":
        return Route("alive", dialect, bare)
    for version in _VERSIONS:
        if bare == version or bare.startswith(f"{version}/"):
            bare = bare.removeprefix(version) or "/"
            break
    if bare in _POSTS:
        operation, dialect = _POSTS[bare]
        return Route(operation if method == "POST" else "wrong_method", dialect, bare)
    if bare == "/models":
        return Route("models" if method in {"GET", "HEAD"} else "wrong_method", dialect, bare)
    if bare.startswith("/models/"):
        name = unquote(bare.removeprefix("/models/"))
        return Route("model" if method in {"GET", "HEAD"} else "wrong_method", dialect, bare, name)
    return Route("unknown", dialect, path)


def guess_dialect(headers: Mapping[str, str]) -> str:
    """The dialect whose error form a client understands, judged by what it sends along."""
    return "anthropic_messages" if "anthropic-version" in headers else "openai_chat"


def split_prefix(path: str) -> tuple[str, str]:
    """Take a conversation prefix `/c/NAME/…` off a path. Shape: (name or "", path)."""
    if not path.startswith("/c/"):
        return "", path
    name, _, rest = path.removeprefix("/c/").partition("/")
    return unquote(name), f"/{rest}"


def find_naming(prefix: str, headers: Mapping[str, str], query: str) -> Naming | None:
    """The conversation a client named by header, path prefix or key, in this order.

    Shape: the name is spelled `NAME` or `NAME@CLIENT`, which tells parallel players apart.
    """
    named = headers.get(CONVERSATION_HEADER, "")
    if named:
        return _naming(named, f"header {CONVERSATION_HEADER}")
    if prefix:
        return _naming(prefix, "path prefix /c/")
    for key in _keys(headers, query):
        if key.startswith(KEY_PREFIX) and len(key) > len(KEY_PREFIX):
            return _naming(key.removeprefix(KEY_PREFIX), "the key")
    return None


def _naming(spelled: str, how: str) -> Naming:
    conversation, _, client = spelled.partition("@")
    return Naming(conversation, client, how)


def _keys(headers: Mapping[str, str], query: str) -> list[str]:
    keys = [headers.get("authorization", "").partition(" ")[2].strip()]
    keys += [headers.get(name, "") for name in ("x-api-key", "api-key", "x-goog-api-key")]
    keys += [value for name, value in parse_qsl(query) if name == "key"]
    return keys
