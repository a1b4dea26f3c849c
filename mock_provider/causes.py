"""What went wrong, in one word, and how each provider says it: status, type, code, message.

Room: pure; the script rooms and composing come in. A cause lets one script fail the same way in every dialect.
Source: the error pages of the providers' API references and the error bodies clients have reported: OpenAI "Error
codes"; Anthropic "Errors"; Gemini "Troubleshooting"; Ollama's server routes; Amazon Bedrock "Converse", errors;
DeepSeek "Error codes".
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.values import value

GATEWAY = "gateway"  # no dialect's words: a page from something between client and provider
GATEWAY_STATUS = 502
GATEWAY_PAGE = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n"
    "<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)


@value
class ErrorForm:
    """How one provider spells one cause. Shape: kind is its type, status word or exception name."""

    status: int
    kind: str
    message: str
    code: str | None = None


_OPENAI: Mapping[str, ErrorForm] = {
    "rate_limit": ErrorForm(
        429, "requests", "Rate limit reached for requests. Please try again later.", "rate_limit_exceeded"
    ),
    "quota": ErrorForm(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
    ),
    "overloaded": ErrorForm(
        503, "server_error", "The server is currently overloaded with other requests. Sorry about that!"
    ),
    "server_error": ErrorForm(
        500, "server_error", "The server had an error while processing your request. Sorry about that!"
    ),
    "context_overflow": ErrorForm(
        400,
        "invalid_request_error",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
    ),
    "moderation": ErrorForm(
        400,
        "invalid_request_error",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a "
        "different prompt.",
        "invalid_prompt",
    ),
    "bad_key": ErrorForm(401, "invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
    "no_model": ErrorForm(
        404,
        "invalid_request_error",
        "The model does not exist or you do not have access to it.",
        "model_not_found",
    ),
}
_FORMS: Mapping[str, Mapping[str, ErrorForm]] = {
    "openai_chat": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic_messages": {
        "rate_limit": ErrorForm(
            429, "rate_limit_error", "This request would exceed your organization's rate limit. Please try again later."
        ),
        "quota": ErrorForm(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
            "purchase credits.",
        ),
        "overloaded": ErrorForm(529, "overloaded_error", "Overloaded"),
        "server_error": ErrorForm(500, "api_error", "Internal server error"),
        "context_overflow": ErrorForm(
            400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"
        ),
        "moderation": ErrorForm(400, "invalid_request_error", "Output blocked by content filtering policy"),
        "bad_key": ErrorForm(401, "authentication_error", "invalid x-api-key"),
        "no_model": ErrorForm(404, "not_found_error", "model: not found"),
    },
    "gemini": {
        "rate_limit": ErrorForm(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        "quota": ErrorForm(
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        "overloaded": ErrorForm(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        "server_error": ErrorForm(500, "INTERNAL", "An internal error has occurred. Please retry."),
        "context_overflow": ErrorForm(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "moderation": ErrorForm(400, "INVALID_ARGUMENT", "The prompt was blocked for safety reasons."),
        "bad_key": ErrorForm(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        "no_model": ErrorForm(404, "NOT_FOUND", "models/ is not found for API version v1beta."),
    },
    "ollama": {
        "rate_limit": ErrorForm(429, "", "too many requests"),
        "quota": ErrorForm(429, "", "you've reached your usage limit"),
        "overloaded": ErrorForm(503, "", "server busy, please try again.  maximum pending requests exceeded"),
        "server_error": ErrorForm(500, "", "llama runner process has terminated: exit status 2"),
        "context_overflow": ErrorForm(400, "", "the input length exceeds the context length"),
        "moderation": ErrorForm(400, "", "the request was refused"),
        "bad_key": ErrorForm(401, "", "unauthorized"),
        "no_model": ErrorForm(404, "", "model not found, try pulling it first"),
    },
    "bedrock": {
        "rate_limit": ErrorForm(429, "ThrottlingException", "Too many requests, please wait before trying again."),
        "quota": ErrorForm(429, "ThrottlingException", "Too many tokens per day, please wait before trying again."),
        "overloaded": ErrorForm(503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
        "server_error": ErrorForm(
            500, "InternalServerException", "The system encountered an unexpected error during processing."
        ),
        "context_overflow": ErrorForm(400, "ValidationException", "Input is too long for requested model."),
        "moderation": ErrorForm(400, "ValidationException", "The request was blocked by a content filter."),
        "bad_key": ErrorForm(
            403, "UnrecognizedClientException", "The security token included in the request is invalid."
        ),
        "no_model": ErrorForm(400, "ValidationException", "The provided model identifier is invalid."),
    },
}
_FLAVOURS: Mapping[str, Mapping[str, ErrorForm]] = {
    "deepseek": {
        "quota": ErrorForm(402, "unknown_error", "Insufficient Balance", "invalid_request_error"),
        "context_overflow": ErrorForm(
            400,
            "invalid_request_error",
            "This model's maximum context length is exceeded. Please reduce the length of the messages.",
            "invalid_request_error",
        ),
    },
    "azure": {
        "moderation": ErrorForm(
            400,
            "invalid_request_error",
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please "
            "modify your prompt and retry.",
            "content_filter",
        ),
    },
}
CAUSES: tuple[str, ...] = (*_OPENAI, GATEWAY)


def form_of(cause: str, dialect: str, flavour: str) -> ErrorForm:
    """How a dialect says a cause; one that is not in the table says it like the first. Raises: KeyError."""
    if dialect.startswith("openai") and cause in _FLAVOURS.get(flavour, {}):
        return _FLAVOURS[flavour][cause]
    return _FORMS.get(dialect, _OPENAI)[cause]
