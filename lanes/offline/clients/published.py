"""The published clients that are driven: by which package, in which language, on which address.

Room: pure; the tests and the table in the documents come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_MODULES = {"pydantic-ai-slim": "pydantic_ai", "openai-agents": "agents", "google-genai": "google.genai"}


@dataclass(frozen=True, slots=True)
class Lack:
    """What a client does not have, or has in another way.

    Shape: `why` is one sentence for the table. With `requests` the client does something else instead, which is tried
    like a feature; without, there is nothing to ask it for. `has_it` says that the other way is as good.
    """

    why: str
    said: Mapping[str, object] = field(default_factory=dict)
    requests: int = 0
    has_it: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """One column of the table.

    Shape: `driver` is the module that uses the client, here or in `node/`; `way` which of its addresses. `data_tool`
    is the tool by which it asks for data, empty when it asks for them as text. `notes` say by feature what the table
    adds to a cell that is filled. `vector_size` is how many numbers its embeddings have.
    `thinking_flavour` is the flavour that is played where thinking is asked for: OpenAI's own chat format shows none.
    """

    name: str
    package: str
    driver: str
    way: str
    dialect: Literal["openai_chat", "openai_responses", "anthropic", "gemini", "ollama", "bedrock"]
    language: Literal["Python", "Node"] = "Python"
    thinking_flavour: str = "openai"
    data_tool: str = ""
    lacks: Mapping[str, Lack] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    vector_size: int = 1536

    @property
    def error_dialect(self) -> str:
        """The dialect by the name that its errors are listed under."""
        return "anthropic_messages" if self.dialect == "anthropic" else self.dialect

    @property
    def module(self) -> str:
        """What is imported, in Python."""
        return _MODULES.get(self.package, self.package.replace("-", "_"))

    @property
    def id(self) -> str:
        """The name in the names of tests."""
        return f"{self.language.lower()}-{self.package}-{self.way}".replace("@", "").replace("/", "-")


_NO_VECTORS = {"embeddings": Lack("its provider has no embeddings")}
_NO_MONEY = {
    "out of quota": Lack("asks again: it looks at the status and not at the code", {"is_refused_for_quota": True}, 3),
}
_NO_THOUGHT = Lack("drops `reasoning_content`, which OpenAI itself does not send", {"thought": ""}, 1)
_DROPS_THOUGHT = {"reasoning": _NO_THOUGHT, "reasoning in a stream": _NO_THOUGHT}
_RUNS_AGENTS = {"embeddings": Lack("runs agents, and has none")}
_OWN_LIMIT = {"time-out in a stream": "with an `AbortSignal`: its own limit ends when the answer begins"}
_ONE_A_REQUEST = {"embeddings": Lack("asks for one text at a time", {"are_vectors": True}, 2, has_it=True)}
_TRIES_NO_MORE = Lack("has no retries of its own")
_NO_RETRIES = {"retry-after": _TRIES_NO_MORE, "server error": _TRIES_NO_MORE, "overloaded": _TRIES_NO_MORE}
_COUNTS_TWO = Lack(
    "its provider counts what it read and what it said, no more", {"usage": {"input": 210, "output": 31}}, 1
)
_COUNTS_THREE = Lack(
    "its provider counts thinking with the output", {"usage": {"input": 210, "output": 31, "cached": 128}}, 1
)


def _refused(status: int) -> Mapping[str, Lack]:
    """Another status for a wrong key."""
    said = {"trouble": {"kind": "status", "status": status}}
    return {"wrong key": Lack(f"its provider says {status}", said, 1, has_it=True)}


def _counted(lack: Lack) -> Mapping[str, Lack]:
    return {"usage": lack, "usage in a stream": lack}


CLIENTS: tuple[Client, ...] = (
    Client("openai", "openai", "drive_openai", "chat", "openai_chat", thinking_flavour="vllm", lacks=_NO_MONEY),
    Client("openai", "openai", "drive_openai", "responses", "openai_responses", lacks=_NO_MONEY),
    Client("anthropic", "anthropic", "drive_anthropic", "messages", "anthropic", lacks=_NO_VECTORS),
    Client("litellm", "litellm", "drive_litellm", "chat", "openai_chat", thinking_flavour="vllm", lacks=_NO_MONEY),
    Client("litellm", "litellm", "drive_litellm", "messages", "anthropic", lacks=_NO_VECTORS),
    Client(
        "pydantic-ai",
        "pydantic-ai-slim",
        "drive_pydantic_ai",
        "chat",
        "openai_chat",
        thinking_flavour="vllm",
        data_tool="final_result",
        lacks=_NO_MONEY,
    ),
    Client(
        "pydantic-ai",
        "pydantic-ai-slim",
        "drive_pydantic_ai",
        "responses",
        "openai_responses",
        data_tool="final_result",
        lacks=_NO_MONEY,
    ),
    Client(
        "pydantic-ai",
        "pydantic-ai-slim",
        "drive_pydantic_ai",
        "messages",
        "anthropic",
        data_tool="final_result",
        lacks=_NO_VECTORS,
    ),
    Client(
        "langchain-openai",
        "langchain-openai",
        "drive_langchain",
        "chat",
        "openai_chat",
        thinking_flavour="vllm",
        lacks=_NO_MONEY | _DROPS_THOUGHT,
    ),
    Client("langchain-openai", "langchain-openai", "drive_langchain", "responses", "openai_responses", lacks=_NO_MONEY),
    Client("langchain-anthropic", "langchain-anthropic", "drive_langchain", "messages", "anthropic", lacks=_NO_VECTORS),
    Client(
        "openai-agents",
        "openai-agents",
        "drive_openai_agents",
        "chat",
        "openai_chat",
        thinking_flavour="vllm",
        lacks=_NO_MONEY | _RUNS_AGENTS,
    ),
    Client(
        "openai-agents",
        "openai-agents",
        "drive_openai_agents",
        "responses",
        "openai_responses",
        lacks=_NO_MONEY | _RUNS_AGENTS,
    ),
    Client(
        "google-genai",
        "google-genai",
        "drive_google_genai",
        "content",
        "gemini",
        lacks={**_NO_MONEY, **_refused(400)},
        notes={"retry-after": "does not look at it: waits a second of its own"},
    ),
    Client(
        "ollama",
        "ollama",
        "drive_ollama",
        "chat",
        "ollama",
        lacks={**_NO_RETRIES, **_counted(_COUNTS_TWO)},
        vector_size=768,
    ),
    Client(
        "boto3",
        "boto3",
        "drive_boto3",
        "converse",
        "bedrock",
        lacks={**_NO_MONEY, **_refused(403), **_counted(_COUNTS_THREE), **_ONE_A_REQUEST},
        vector_size=1024,
    ),
    Client(
        "openai", "openai", "drive_openai", "chat", "openai_chat", "Node", "vllm", lacks=_NO_MONEY, notes=_OWN_LIMIT
    ),
    Client(
        "openai", "openai", "drive_openai", "responses", "openai_responses", "Node", lacks=_NO_MONEY, notes=_OWN_LIMIT
    ),
    Client(
        "@anthropic-ai/sdk",
        "@anthropic-ai/sdk",
        "drive_anthropic",
        "messages",
        "anthropic",
        "Node",
        lacks=_NO_VECTORS,
        notes=_OWN_LIMIT,
    ),
    Client("ai", "@ai-sdk/openai", "drive_ai", "chat", "openai_chat", "Node", "vllm", lacks=_NO_MONEY | _DROPS_THOUGHT),
    Client("ai", "@ai-sdk/openai", "drive_ai", "responses", "openai_responses", "Node", lacks=_NO_MONEY),
    Client("ai", "@ai-sdk/anthropic", "drive_ai", "messages", "anthropic", "Node", lacks=_NO_VECTORS),
)
