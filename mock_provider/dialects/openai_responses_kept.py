"""Responses that later requests name: continued, looked up, cancelled, deleted, their input listed.

Room: pure; the Responses dialect comes in.
Source: the provider's published API reference, "Retrieve", "Cancel", "Delete a response", "List input items" and
"Get input token counts".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import parse_qs

from mock_provider.asked import Asked, Refusal
from mock_provider.dialects.codec import Received, Reply, count_input
from mock_provider.dialects.openai_refusals import out_of_range, unknown_value
from mock_provider.dialects.openai_responses_input import kind_of_item, own_items
from mock_provider.dialects.openai_responses_output import (
    arrange,
    ending_of,
    item_id,
    response_id,
    response_object,
)
from mock_provider.json_values import Json, JsonObject
from mock_provider.kept import Kept

MAX_LISTED = 100
_USUALLY_LISTED = 20


def keep(asked: Asked, reply: Reply, kept: Kept) -> None:
    """Keep a finished response, unless the request says otherwise."""
    if asked.body.get("store") is False:
        return
    output: list[Json] = [group.item for group in arrange(asked, reply) if group.item]
    response = response_object(asked, reply, ending_of(reply), output, reply.counts)
    own = own_items(asked.body)
    resolved = resolve(own, kept, is_open=reply.flavour == "vllm")
    given = own if isinstance(resolved, Refusal) else resolved
    items: list[Json] = [_listed_item(item, reply, at) for at, item in enumerate(given)]
    is_waiting = asked.body.get("background") is True and not asked.is_stream
    kept.put(response_id(reply), {"response": response, "input": items, "waiting": is_waiting})


def _listed_item(item: JsonObject, reply: Reply, at: int) -> JsonObject:
    """An input item as it is listed: with an id, a status and a list of parts."""
    kind = kind_of_item(item)
    found: JsonObject = {"id": item_id(kind, reply, f"in{at}"), **item, "type": kind}
    if kind != "reasoning":
        found.setdefault("status", "completed")
    content = item.get("content")
    if kind == "message" and isinstance(content, str):
        if item.get("role") == "assistant":
            found["content"] = [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
        else:
            found["content"] = [{"type": "input_text", "text": content}]
    return found


def _lists(document: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    response = document["response"]
    output = response["output"] if isinstance(response, dict) else []
    given = document["input"]
    return (
        [item for item in given if isinstance(item, dict)] if isinstance(given, list) else [],
        [item for item in output if isinstance(item, dict)] if isinstance(output, list) else [],
    )


def history_of(kept: Kept, previous: str) -> list[JsonObject] | Refusal:
    """All items of a kept response and of those it continues, oldest first."""
    documents: list[JsonObject] = []
    name: Json = previous
    while isinstance(name, str):
        document = kept.get(name)
        if document is None:
            text = f"Previous response with id '{name}' not found."
            code = "previous_response_not_found"
            return Refusal(400, "unknown_response", text, code=code, param="previous_response_id")
        documents.append(document)
        response = document["response"]
        name = response.get("previous_response_id") if isinstance(response, dict) else None
    return [item for document in reversed(documents) for items in _lists(document) for item in items]


def resolve(items: Sequence[JsonObject], kept: Kept, *, is_open: bool) -> list[JsonObject] | Refusal:
    """Put kept items in place of references; reasoning without its sealed content is such a reference."""
    found: list[JsonObject] = []
    for item in items:
        is_reference = kind_of_item(item) == "item_reference"
        is_bare = kind_of_item(item) == "reasoning" and not item.get("encrypted_content") and not is_open
        if not (is_reference or is_bare):
            found.append(item)
            continue
        name = str(item.get("id", ""))
        original = _find(kept, name)
        if original is None:
            text = (
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input."
            )
            return Refusal(404, "unknown_item", text, param="input")
        found.append(original)
    return found


def reasoning_before(kept: Kept) -> Callable[[str], str | None]:
    """A function from the id of a kept item to the id of the reasoning right before it."""

    def find(name: str) -> str | None:
        output = _output_around(kept, name)
        at = next((at for at, item in enumerate(output) if item.get("id") == name), 0)
        before = output[at - 1] if at else {}
        return str(before["id"]) if before.get("type") == "reasoning" else None

    return find


def _find(kept: Kept, name: str) -> JsonObject | None:
    return next((item for item in _output_around(kept, name) if item.get("id") == name), None)


def _output_around(kept: Kept, name: str) -> list[JsonObject]:
    """The output of the response that an item's id names."""
    parts = name.split("_")
    document = kept.get(f"resp_mock_{parts[2]}") if len(parts) == 4 and parts[1] == "mock" else None
    return _lists(document)[1] if document is not None else []


def _not_found(name: str) -> Refusal:
    return Refusal(404, "unknown_response", f"Response with id '{name}' not found.")


def retrieve(received: Received) -> JsonObject | Refusal:
    """Give a kept response; one made in the background is finished when it is first looked at."""
    name = received.arguments["response"]
    document = received.kept.get(name)
    if document is None:
        return _not_found(name)
    if parse_qs(received.query).get("stream", [""])[0] == "true":
        text = "This response cannot be streamed: only its stream while it was created can be, which is over."
        return Refusal(400, "stream_of_kept_response", text, param="stream")
    if document["waiting"]:
        received.kept.put(name, {**document, "waiting": False})
    return _response(document)


def _response(document: JsonObject) -> JsonObject:
    response = document["response"]
    return response if isinstance(response, dict) else {}


def waiting_form(response: JsonObject) -> JsonObject:
    """A response that was only taken in: nothing of its outcome is known."""
    unknown: JsonObject = {"completed_at": None, "error": None, "incomplete_details": None, "output": [], "usage": None}
    return {**response, "status": "queued", **unknown}


def cancel(received: Received) -> JsonObject | Refusal:
    """Cancel a response made in the background; one that is finished stays as it is."""
    name = received.arguments["response"]
    document = received.kept.get(name)
    if document is None:
        return _not_found(name)
    response = _response(document)
    if response.get("background") is not True:
        text = "Cannot cancel a synchronous response."
        return Refusal(400, "cancel_of_synchronous_response", text)
    if document["waiting"]:
        response = {**waiting_form(response), "status": "cancelled"}
        received.kept.put(name, {**document, "response": response, "waiting": False})
    return response


def delete(received: Received) -> JsonObject | Refusal:
    """Forget a kept response."""
    name = received.arguments["response"]
    if not received.kept.drop(name):
        return _not_found(name)
    return {"id": name, "object": "response", "deleted": True}


def list_input(received: Received) -> JsonObject | Refusal:
    """List the input items of a kept response, the newest first unless asked otherwise."""
    name = received.arguments["response"]
    document = received.kept.get(name)
    if document is None:
        return _not_found(name)
    query = {key: values[-1] for key, values in parse_qs(received.query).items()}
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else _USUALLY_LISTED
    problem = out_of_range(limit, "limit", 1, MAX_LISTED, "integer")
    if problem:
        return problem
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        return unknown_value("unknown_word", "order", order, ("asc", "desc"))
    items = _all_input(received.kept, document)
    if order == "desc":
        items.reverse()
    after = next((at + 1 for at, item in enumerate(items) if item.get("id") == query.get("after")), 0)
    page: list[Json] = list(items[after : after + limit])
    names = [str(item.get("id")) for item in items[after : after + limit]]
    return {
        "object": "list",
        "data": page,
        "first_id": names[0] if names else "",
        "last_id": names[-1] if names else "",
        "has_more": after + limit < len(items),
    }


def _all_input(kept: Kept, document: JsonObject) -> list[JsonObject]:
    """What the model was given: the history of the continued responses, then the request's own items."""
    previous = _response(document).get("previous_response_id")
    before = history_of(kept, previous) if isinstance(previous, str) else []
    history = [] if isinstance(before, Refusal) else before
    return [*history, *_lists(document)[0]]


def count(asked: Asked | Refusal) -> JsonObject | Refusal:
    """Count the tokens of a request by the local rule."""
    if isinstance(asked, Refusal):
        return asked
    return {"object": "response.input_tokens", "input_tokens": count_input(asked)}
