"""Header and messages to a model request, and back from the log.

Room: pure; the attempt asks, checkers rebuild. A request holds nothing the log does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.errors import InternalError
from harness.log.events import Event, Header, RequestConfig, RequestContext
from harness.log.fold import fold_messages, latest_header
from harness.log.frozen import freeze_payload
from harness.model.call import ModelRequest, ToolSchema
from harness.model.messages import CallId, Message, ToolResultBlock, tool_calls_of


def build_header(config: RequestConfig, system: str | None, tools: Sequence[ToolSchema]) -> Header:
    """The header in its one form: an empty system text or tool list is absent, and it is frozen as the log holds it.

    The log gives tuples back for lists; a header with lists would differ from the logged one at every step.
    Raises: InternalError when provider or model is missing; there is no default model.
    """
    for name in ("provider", "model"):
        if not getattr(config, name):
            raise InternalError(f"no {name} is set for this request", where="request", expected=f"a {name}")
    return freeze_payload(Header(config, system or None, tuple(tools)), "request/header")


def header_reason(
    previous: Header | None, current: Header, *, is_first: bool
) -> Literal["initial", "resume", "change"] | None:
    """Why the header has to be logged now, or None when the log already says it.

    Shape: is_first is the first request of this loop, which says itself even when nothing changed.
    """
    if previous is None:
        return "initial"
    if is_first:
        return "resume"
    return None if previous == current else "change"


def seed_config(selected: RequestConfig, previous: RequestConfig | None, *, is_fresh: bool) -> RequestConfig:
    """The options a request starts from, before anyone may change them.

    Shape: is_fresh says that the selection was made since the last request; previous is what that request used.
    An effort stored in the log is taken over only by the identical provider and model, and only by the first request.
    """
    if previous is None:
        return selected
    if not is_fresh:
        return previous
    return selected


def stored_effort(selected: RequestConfig, previous: RequestConfig | None) -> RequestConfig:
    """The selection of a resumed loop with the effort its log holds, if that was for this very model."""
    if (
        previous is None
        or selected.reasoning_effort is not None
        or (selected.provider, selected.model) != (previous.provider, previous.model)
        or previous.reasoning_effort is None
    ):
        return selected
    return RequestConfig(
        selected.provider,
        selected.model,
        selected.temperature,
        selected.max_tokens,
        selected.stop,
        previous.reasoning_effort,
    )


def context_change(previous: RequestContext | None, current: RequestContext) -> RequestContext | None:
    """The context to log, or None when route and capacity are the logged ones."""
    return None if previous == current else current


def build_request(header: Header, messages: Sequence[Message], *, paired: int = 0) -> ModelRequest:
    """The request of this header over these messages.

    Shape: paired says how many of the messages were part of an earlier request and are not looked at again.
    Raises: InternalError when a tool call has not exactly one result before anything else follows.
    """
    check_pairing(messages, paired)
    config = header.config
    return ModelRequest(
        provider=config.provider,
        model=config.model,
        messages=messages,
        system=header.system,
        tools=header.tools,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        stop=config.stop,
        reasoning_effort=config.reasoning_effort,
    )


def rebuild_request(events: Sequence[Event]) -> ModelRequest:
    """The request a loop would send at the end of these events.

    Raises: InternalError when no request header was logged yet.
    """
    header = latest_header(events)
    if header is None:
        raise InternalError("no request header is logged", where="log")
    return build_request(header, fold_messages(events))


def check_pairing(messages: Sequence[Message], first: int = 0) -> None:
    """Refuse messages, from that position on, where a call is not answered exactly once before any other message.

    Raises: InternalError naming the call.
    """
    open_calls: dict[CallId, None] = {}
    for at in range(first, len(messages)):
        message = messages[at]
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        for result in results:
            if result.tool_call_id not in open_calls:
                _refuse(at, f"a result for call {result.tool_call_id!r}, which is not open")
            del open_calls[result.tool_call_id]
        if results:
            continue
        if open_calls:
            _refuse(at, f"call {next(iter(open_calls))!r} has no result before this message")
        for call in tool_calls_of(message):
            if call.id in open_calls:
                _refuse(at, f"call id {call.id!r} stands twice")
            open_calls[call.id] = None
    if open_calls:
        _refuse(len(messages), f"call {next(iter(open_calls))!r} has no result")


def _refuse(at: int, what: str) -> None:
    raise InternalError(
        what, where=f"request messages[{at}]", expected="each tool call answered once before any other message"
    )
