"""One session of a connection: its prompt in flight, what its log says of that prompt, and its output.

Room: the bridge comes in. Composes no presets; model choice belongs to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.assemble import Assembled
from harness.log.attachments import AttachmentStore
from harness.log.events import AssistantMessage, Event, InboxSpliced, TurnEnd, TurnReason
from harness.loop.scope import CancelScope
from harness.model.messages import SessionId
from harness.surfaces.acp.admission import Ticket
from harness.surfaces.acp.output import OutputChain, Send
from harness.surfaces.acp.settlement import Happened
from harness.wire.rpc_frames import RpcId


@dataclass(slots=True)
class Slot:
    """A prompt in flight, from before its admission until its answer.

    Shape: request_id is the one it will be answered under; turn is the one that claimed its message; failures is how
    many of the agent's own had been reported when it was queued.
    """

    request_id: RpcId | None
    ticket: Ticket = field(default_factory=lambda: Ticket(CancelScope()))
    was_cancelled: bool = False
    is_admitted: bool = False
    turn: int | None = None
    ending: TurnReason | None = None
    delivery_problem: str | None = None
    failures: int = 0

    def happened(self, session: AcpSession) -> Happened:
        """What is known of it now."""
        own = session.assembled.agent.failures[self.failures :]
        return Happened(
            was_cancelled=self.was_cancelled,
            delivery_problem=self.delivery_problem,
            agent_problem=str(own[0]) if own and self.ticket.is_queued else None,
            ending=self.ending,
        )


class AcpSession:
    """One session and its client's end of it."""

    def __init__(
        self, assembled: Assembled, send: Send, store: AttachmentStore, *, live: bool, say: Callable[[str], None]
    ) -> None:
        self.assembled = assembled
        self.chain = OutputChain(send, store, live=live, failed=self._undelivered)
        self.slot: Slot | None = None
        self._say = say
        self.detach = assembled.agent.log.observe(self._on_event)

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self.assembled.agent.id

    def free(self, slot: Slot) -> None:
        """Let the next prompt in, if this one still holds the place."""
        if self.slot is slot:
            self.slot = None

    async def at_rest(self) -> None:
        """Wait until nothing runs, and everything it said was delivered."""
        await self.assembled.agent.when_idle()
        await self.chain.tail()

    async def at_rest_after_prompt(self) -> None:
        """As at_rest; the output's end is looked at after the rest, for what is said last is queued by then."""
        await self.at_rest()

    def _on_event(self, event: Event) -> None:
        slot, payload = self.slot, event.payload
        if slot is not None and slot.ticket.message_id is not None:
            if isinstance(payload, InboxSpliced):
                if any(message.id == slot.ticket.message_id for message in payload.inserted):
                    slot.failures = len(self.assembled.agent.failures)
                for item in payload.removed:
                    if item.id == slot.ticket.message_id and item.fate == "claimed":
                        slot.turn = item.turn
            elif isinstance(payload, TurnEnd) and payload.turn == slot.turn:
                slot.ending = payload.reason
        self.chain.add(event)

    def _undelivered(self, event: Event, why: str) -> None:
        slot, payload = self.slot, event.payload
        if slot is not None and isinstance(payload, AssistantMessage) and payload.turn == slot.turn:
            slot.delivery_problem = slot.delivery_problem or why
        else:
            self._say(f"session {self.id}: output could not be delivered: {why}")
