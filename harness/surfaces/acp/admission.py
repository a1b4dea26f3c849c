"""From a prompt on the wire to a message in the inbox, as one transaction that a cancel stops whole or not at all.

Room: the bridge comes in. Nothing here waits for the agent, and nothing is written before everything was read.

Two outcomes of a cancel are possible and they are not alike. A stored picture that no message names is garbage:
`harness attachments sweep` pays that debt later. A message queued after its cancel is a false fact, and it stays in the
log for ever. So the store may be left with an orphan, and the log never gets a late message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness.errors import AttachmentError, UsageError
from harness.log.attachments import AttachmentStore
from harness.loop.agent import Agent
from harness.loop.scope import CancelScope
from harness.model.messages import AttachmentRef, Json, Message, MessageId, UserSource
from harness.surfaces.acp.content import Part, compose, read_prompt, uploads_of


class NotAdmittedError(UsageError):
    """A prompt that cannot be taken for a reason its sender cannot mend."""

    code = "NOT_ADMITTED"


@dataclass(slots=True)
class Ticket:
    """One prompt on its way in: scope is its cancel; message_id is set from the moment the message is queued."""

    scope: CancelScope
    message_id: MessageId | None = None

    @property
    def is_queued(self) -> bool:
        """Whether the agent has the message."""
        return self.message_id is not None

    def was_cancelled(self) -> bool:
        """Whether a cancel came by now."""
        return self.scope.cancelled


@dataclass(frozen=True, slots=True)
class Gate:
    """What a prompt passes on its way to one session's agent.

    Shape: is_registered says whether this agent is still the one that is served; route_takes_pictures asks the route
    the session uses by now; store is None when no pictures are kept.
    """

    agent: Agent
    is_registered: Callable[[], bool]
    new_message_id: Callable[[], MessageId]
    store: AttachmentStore | None
    may_hold_pictures: bool
    route_takes_pictures: Callable[[], Awaitable[bool]]


async def admit(blocks: Json, gate: Gate, ticket: Ticket) -> bool:
    """Take a prompt in; False when it was cancelled before it was queued.

    Raises: UsageError for what its sender can mend, NotAdmittedError for what not; nothing was queued then.
    """
    _check_registered(gate)
    parts = read_prompt(blocks, may_hold_pictures=gate.may_hold_pictures)
    references = await _store(parts, gate, ticket)
    if references is None:
        return False
    content = compose(parts, references)
    # From here to the followup nothing may suspend: a cancel that could come between this last look and the hand-over
    # would find nothing queued yet, and the message would reach the model after it.
    if ticket.was_cancelled():
        return False
    _check_registered(gate)
    message_id = gate.new_message_id()
    ticket.message_id = message_id
    try:
        gate.agent.followup(Message(message_id, "user", content, UserSource()))
    except Exception as error:
        ticket.message_id = None
        raise NotAdmittedError("the prompt was not queued") from error
    return True


async def _store(parts: tuple[Part, ...], gate: Gate, ticket: Ticket) -> tuple[AttachmentRef, ...] | None:
    """The pictures' references once all are durable; None when the prompt was cancelled meanwhile.

    A cancel during the save waits for it: a write that has begun is finished. What it left unreachable stays in the
    store until it is swept, and no message is queued.
    """
    uploads = uploads_of(parts)
    if not uploads:
        return ()
    if gate.store is None:
        raise NotAdmittedError("no store for pictures is mounted")
    try:
        takes_pictures = await gate.route_takes_pictures()
    except Exception as error:
        raise NotAdmittedError("the route of the session could not be looked up") from error
    if not takes_pictures:
        raise UsageError("the model of this session takes no pictures", where="prompt")
    if ticket.was_cancelled():
        return None
    try:
        references = await gate.store.admit(uploads)
    except AttachmentError as error:
        raise NotAdmittedError("the pictures could not be stored") from error
    return None if ticket.was_cancelled() else references


def _check_registered(gate: Gate) -> None:
    if not gate.is_registered():
        raise NotAdmittedError("the session's agent is gone")
