"""Responses: requests read, answers and event streams written.

Room: pure; the dialect table comes in.
Source: the provider's published API reference for /v1/responses; the SDK's own types for the fields of every object.
"""

from __future__ import annotations

from mock_provider.asked import Asked, AskedMessage, Refusal
from mock_provider.dialects import openai_responses_kept
from mock_provider.dialects.codec import Address, Dialect, Received, Reply
from mock_provider.dialects.openai_access import check_access
from mock_provider.dialects.openai_flavours import error
from mock_provider.dialects.openai_history_rules import refuse_history, refuse_without_reasoning
from mock_provider.dialects.openai_refusals import kind_of, usual_error
from mock_provider.dialects.openai_responses_events import write_events
from mock_provider.dialects.openai_responses_history import Heard, read_sound
from mock_provider.dialects.openai_responses_input import own_items, read_instructions, read_messages
from mock_provider.dialects.openai_responses_output import Ending, arrange, ending_of, response_object
from mock_provider.dialects.openai_responses_rules import FIELDS, refuse_body
from mock_provider.dialects.openai_responses_tool_rules import offered_names
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.pieces import size_bytes
from mock_provider.steps import Malformed, RawBytes


def read(received: Received) -> Asked | Refusal:
    """Check a body like the provider, then read it with the history it continues."""
    body, script = received.body, received.script
    if not isinstance(body, dict):
        return Refusal(400, "wrong_type", f"Invalid type for request body: expected an object, got {kind_of(body)}.")
    is_open = script.flavour == "vllm"
    sound = read_sound(body.get("input"), is_open=is_open)
    refused = refuse_body(body, is_open=is_open, has_sound_input=sound is not None)
    if refused:
        return refused
    model = str(body["model"])
    if script.models and model not in script.models:
        message = f"The requested model '{model}' does not exist."
        return Refusal(400, "unknown_model", message, code="model_not_found", param="model")
    extra = tuple(name for name in body if name not in FIELDS)
    if extra and script.refuses_extra_fields:
        message = f"Unknown parameter: '{extra[0]}'."
        return Refusal(400, "extra_field", message, code="unknown_parameter", param=extra[0])
    said = _said(body, received, sound, is_open=is_open)
    if isinstance(said, Refusal):
        return said
    messages, said_bytes = said
    return Asked(
        dialect="openai_responses",
        model=model,
        messages=messages,
        tools=offered_names(body.get("tools")),
        is_stream=body.get("stream") is True,
        body=body,
        headers=received.headers,
        extra_fields=extra,
        said_bytes=said_bytes,
    )


def _said(
    body: JsonObject, received: Received, sound: Heard | None, *, is_open: bool
) -> tuple[tuple[AskedMessage, ...], int | None] | Refusal:
    """The messages of this request and those it continues. Shape: with the size of all that is said, where it is known.

    A history that is sound and all there is was read already; only what is kept may still say otherwise.
    """
    if sound is None or body.get("conversation") is not None or isinstance(body.get("previous_response_id"), str):
        items = _history(body, received, is_open=is_open)
        return items if isinstance(items, Refusal) else (read_messages(body, items), None)
    needed = openai_responses_kept.reasoning_before(received.kept)
    refused = refuse_without_reasoning(sound.named.all(), 0, needed)
    if refused:
        return refused
    instructions = read_instructions(body)
    messages, size = sound.all()
    return (*instructions, *messages), size + sum(size_bytes(message.said()) for message in instructions)


def _history(body: JsonObject, received: Received, *, is_open: bool) -> list[JsonObject] | Refusal:
    """The items of this request after those of the responses it continues, checked together."""
    conversation = body.get("conversation")
    if conversation is not None:
        name = conversation.get("id") if isinstance(conversation, dict) else conversation
        message = f"Conversation with id '{name}' not found."
        return Refusal(404, "unknown_conversation", message, param="conversation")
    previous = body.get("previous_response_id")
    before = openai_responses_kept.history_of(received.kept, previous) if isinstance(previous, str) else []
    if isinstance(before, Refusal):
        return before
    own = openai_responses_kept.resolve(own_items(body), received.kept, is_open=is_open)
    if isinstance(own, Refusal):
        return own
    items = [*before, *own]
    needed = openai_responses_kept.reasoning_before(received.kept)
    return refuse_history(items, len(before), needed) or items


def count(received: Received) -> JsonObject | Refusal:
    """Count the tokens of a request by the local rule."""
    return openai_responses_kept.count(read(received))


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
    if asked.body.get("background") is True:
        return encode_json(response_object(asked, reply, Ending("queued"), [], None))
    output: list[Json] = [group.item for group in arrange(asked, reply) if group.item]
    return encode_json(response_object(asked, reply, ending_of(reply), output, reply.counts))


DIALECT = Dialect(
    name="openai_responses",
    id_kind="resp",
    request_id_header="x-request-id",
    content_type_stream="text/event-stream; charset=utf-8",
    addresses={
        "POST /responses/input_tokens": Address(count),
        "GET /responses/{response}": Address(openai_responses_kept.retrieve, takes_body=False),
        "DELETE /responses/{response}": Address(openai_responses_kept.delete, takes_body=False),
        "POST /responses/{response}/cancel": Address(openai_responses_kept.cancel, takes_body=False),
        "GET /responses/{response}/input_items": Address(openai_responses_kept.list_input, takes_body=False),
    },
    check_access=check_access,
    read=read,
    whole=whole,
    stream=write_events,
    error=error,
    usual_error=usual_error,
    keep=openai_responses_kept.keep,
)
