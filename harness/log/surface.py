"""What the model sees of a log: which operations on that list of seqs are legal, and what they take away.

Room: pure; validate asks before an event enters, session_log carries out what was found legal.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.log.events import AssistantMessage, Event, Replace, ToolResult
from harness.log.model_checks import refuse
from harness.model.messages import ToolResultBlock


def check_surface(event: Event, events: Sequence[Event], surface: Sequence[int]) -> None:
    """Refuse a surface event whose operation or citations do not fit the surface as it stands."""
    sources = event.source_event_seqs
    if sources is not None:
        if type(sources) is not tuple or not set(map(type, sources)) <= {int}:
            refuse("sourceEventSeqs", "is not a list of seqs")
        if not sources and type(event.payload) is not AssistantMessage:
            refuse("sourceEventSeqs", "may be empty on assistant/message only")
        if sources and (min(sources) < 0 or max(sources) >= event.seq or len(set(sources)) != len(sources)):
            refuse("sourceEventSeqs", f"has to name each seq once, all before {event.seq}")
    operation = event.surface_op
    if operation == "append":
        return
    if not isinstance(operation, Replace):
        refuse("surfaceOp", f"{operation!r} is neither 'append' nor a replace")
    if type(operation.start) is not int or type(operation.end) is not int:
        refuse("surfaceOp", "start and end have to be seqs")
    shadowed = shadowed_by(operation, surface)
    missing = set(shadowed).difference(sources or ())
    if missing:
        refuse("sourceEventSeqs", f"does not cite the replaced seqs {sorted(missing)}")
    if isinstance(event.payload, ToolResult):
        _check_result_replacement(event.payload, [events[seq] for seq in shadowed])


def shadowed_by(operation: Replace, surface: Sequence[int]) -> Sequence[int]:
    """The surface seqs a replace takes away, in surface order.

    Raises: InvalidEventError when an end of the range is not on the surface, or they stand the wrong way round.
    """
    try:
        first, last = surface.index(operation.start), surface.index(operation.end)
    except ValueError:
        refuse("surfaceOp", f"{operation.start}..{operation.end} is not wholly on the surface")
    if first > last:
        refuse("surfaceOp", f"{operation.start} stands after {operation.end} on the surface")
    return surface[first : last + 1]


def _check_result_replacement(new: ToolResult, shadowed: Sequence[Event]) -> None:
    old = shadowed[0].payload
    if len(shadowed) != 1 or not isinstance(old, ToolResult):
        refuse("surfaceOp", "a tool/result may replace exactly one tool/result")
    if _without_content(old) != _without_content(new):
        refuse("data", "a tool/result that replaces another may change nothing but its content")


def _without_content(result: ToolResult) -> tuple[object, ...]:
    message = result.message
    block = message.content[0]
    assert isinstance(block, ToolResultBlock)  # noqa: S101 - both results passed their own check
    return (
        result.turn,
        result.step,
        message.id,
        message.role,
        message.source,
        block.tool_call_id,
        block.is_error,
        result.error,
        result.meta,
    )
