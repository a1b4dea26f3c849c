"""Where each dialect is found: its addresses, its base URLs, and what tells its clients.

Room: pure; the table of dialects and the routes come in. A server knows all places from the start, and loads a dialect
when the first request in it comes.
"""

from __future__ import annotations

from mock_provider.values import value


@value
class Base:
    """A base URL that clients take.

    Shape: name is what base_url() is asked for, path what stands behind the root. For a wrapped command variables are
    set to the base URL and keys to a dummy key.
    """

    name: str
    path: str
    variables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@value
class Place:
    """Where one dialect is found.

    Shape: addresses are a method and a path without the version, `{name}` for one segment of it and `{name*}` for the
    rest. prefixes may stand before each path, the usual one first; marks are headers that only its clients send,
    owns beginnings of paths that only it has: both choose the error form of an unknown address and the dialect of an
    address that several have.
    """

    name: str
    addresses: tuple[str, ...]
    prefixes: tuple[str, ...]
    bases: tuple[Base, ...]
    marks: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The addresses, method and path apart."""
        split = (address.partition(" ") for address in self.addresses)
        return tuple((method, path) for method, _, path in split)


# A Bedrock API key would be shorter, but the Python client sends one over HTTPS only.
_AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_OLLAMA_PATHS = (
    "chat",
    "generate",
    "embed",
    "tags",
    "ps",
    "show",
    "version",
    "pull",
    "push",
    "create",
    "copy",
    "delete",
    "blobs",
)
# The first place whose address fits answers, unless a header or the path names another one; it is also the one whose
# error form an unknown client gets.
PLACES = (
    Place(
        name="openai_chat",
        addresses=(
            "POST /chat/completions",
            "POST /embeddings",
            "GET /models",
            "GET /models/{model*}",
            "POST /deployments/{deployment}/chat/completions",
            "POST /deployments/{deployment}/embeddings",
        ),
        prefixes=("/v1", "", "/beta", "/api/v1", "/openai/v1", "/openai"),
        bases=(
            Base("openai_chat", "/v1"),
            Base("openai", "/v1", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
            Base("deepseek", "", ("DEEPSEEK_BASE_URL",), ("DEEPSEEK_API_KEY",)),
            Base("openrouter", "/api/v1"),
            Base("vllm", "/v1"),
            Base("azure", ""),
        ),
    ),
    Place(
        name="openai_responses",
        addresses=(
            "POST /responses",
            "POST /responses/input_tokens",
            "GET /responses/{response}",
            "DELETE /responses/{response}",
            "POST /responses/{response}/cancel",
            "GET /responses/{response}/input_items",
        ),
        prefixes=("/v1", "", "/api/v1", "/openai/v1", "/openai"),
        bases=(Base("openai_responses", "/v1"),),
        owns=("/v1/responses", "/responses"),
    ),
    Place(
        name="anthropic_messages",
        addresses=(
            "POST /messages",
            "POST /messages/count_tokens",
            "GET /models",
            "GET /models/{model*}",
        ),
        prefixes=("/v1", "", "/anthropic/v1", "/anthropic"),
        bases=(
            Base("anthropic", "", ("ANTHROPIC_BASE_URL",), ("ANTHROPIC_API_KEY",)),
            Base("anthropic_messages", ""),
        ),
        marks=("anthropic-version",),
        owns=("/anthropic/",),
    ),
    Place(
        name="gemini",
        addresses=(
            "POST /models/{model}:generateContent",
            "POST /models/{model}:streamGenerateContent",
            "POST /models/{model}:countTokens",
            "POST /models/{model}:embedContent",
            "POST /models/{model}:batchEmbedContents",
            "GET /models",
            "GET /models/{model}",
        ),
        prefixes=("/v1beta", "/v1", "/v1alpha", ""),
        bases=(Base("gemini", "", ("GOOGLE_GEMINI_BASE_URL",), ("GEMINI_API_KEY", "GOOGLE_API_KEY")),),
        marks=("x-goog-api-key", "x-goog-api-client"),
        owns=("/v1beta/", "/v1alpha/"),
    ),
    Place(
        name="ollama",
        addresses=(
            "POST /api/chat",
            "POST /api/generate",
            "POST /api/embed",
            "POST /api/embeddings",
            "GET /api/tags",
            "GET /api/ps",
            "POST /api/show",
            "GET /api/version",
        ),
        prefixes=("",),
        bases=(Base("ollama", "", ("OLLAMA_HOST",)),),
        owns=tuple(f"/api/{name}" for name in _OLLAMA_PATHS),
    ),
    Place(
        name="bedrock",
        addresses=(
            "POST /model/{model}/converse",
            "POST /model/{model}/converse-stream",
            "POST /model/{model}/invoke",
            "POST /model/{model}/invoke-with-response-stream",
            "POST /model/{model}/count-tokens",
        ),
        prefixes=("",),
        bases=(Base("bedrock", "", ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",), _AWS_KEYS),),
        marks=("x-amz-date", "amz-sdk-invocation-id"),
        owns=("/model/",),
    ),
)
