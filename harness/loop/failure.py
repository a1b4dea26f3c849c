"""Turn whatever was raised into the failure a log can hold.

Room: pure; the driver and the attempt ask. What a provider said of itself is kept, and the name of what keeps a session
log from being written; everything else is UNKNOWN.
"""

from __future__ import annotations

from harness.errors import LogError, ProviderError
from harness.log.events import Cause, TurnReason
from harness.model.chunks import Failure, Finish

MAX_CAUSES = 10  # a chain longer than that is a cycle in disguise; tracebacks of real failures stay under five

TURN_TIMEOUT = Cause("hook", "turn timeout")  # known by identity: a hook may give the same words as its reason

STREAM_CLOSED = Failure("the stream ended without a finish reason and without its end mark", "STREAM_CLOSED")
EMPTY_RESPONSE = Failure("the model finished without any content", "EMPTY_RESPONSE")


def failure_of(error: BaseException) -> Failure:
    """The failure an exception stands for; one that cannot even be printed is named by its type."""
    if isinstance(error, ProviderError):
        return Failure(
            error.what or error.error_code,
            error.error_code,
            status=error.status if error.status is not None and 100 <= error.status <= 599 else None,
            provider_retry_after_ms=error.retry_after_ms if (error.retry_after_ms or 0) > 0 else None,
            request_id=error.request_id,
        )
    if isinstance(error, LogError):
        return Failure(_told(error), error.error_code)
    return Failure(render_chain(error), "UNKNOWN")


def _told(error: LogError) -> str:
    """Where, what, and what to do, on one line; the code stands beside it."""
    head = f"{error.where}: {error.what}" if error.where else error.what
    parts = [head, *(f"{name}: {text}" for name, text in (("expected", error.expected), ("fix", error.fix)) if text)]
    return "; ".join(parts)


def render_chain(error: BaseException) -> str:
    """The error and what caused it, outermost first, joined by `caused by`."""
    texts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(texts) < MAX_CAUSES:
        seen.add(id(current))
        texts.append(render_error(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return " caused by ".join(texts)


def render_error(error: BaseException) -> str:
    """`Type: text`, or the type alone when the text is empty or cannot be had."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a hostile __str__ may raise anything, and the failure still needs a name
        text = ""
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def finish_for(failure: Failure) -> Finish:
    """The end of a stream that failed."""
    return Finish("aborted" if failure.code == "ABORTED" else "error", failure)


def stopped(cause: Cause | None) -> TurnReason:
    """The end of a turn that was cancelled, or that ran out of its own time."""
    if cause is TURN_TIMEOUT:
        return TurnReason("step-limit")
    return TurnReason("aborted", cause=cause or Cause("disposed"))


def failed(failure: Failure) -> TurnReason:
    """The end of a turn that failed."""
    return TurnReason("error", failure=failure)
