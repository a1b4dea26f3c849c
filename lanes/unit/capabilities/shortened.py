"""An agent whose history is shortened by a scripted summariser, beside the agent's own scripted model.

Room: the tests of compaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from harness.capabilities.compaction import Compaction
from harness.log.events import CompactionEnd, CompactionStart, CompactionSummary, Event
from harness.loop.decide import Decision
from harness.loop.hooks import Hooks, Overflow, StepProposal
from lanes.unit.loop.rig import Rig
from lanes.unit.loop.scripted_model import Reply, ScriptedModel

WORDS = "word " * 100  # 125 tokens by the rule of thumb


class Shortened:
    """A rig with a compaction in its hooks.

    Shape: summaries are the summariser's replies; what else a test wants of the rig goes through options.
    """

    def __init__(
        self,
        make_rig: Callable[..., Rig],
        *replies: Reply,
        summaries: Sequence[Reply] = (),
        limit: int | None = None,
        **options: Any,
    ) -> None:
        self.rig = make_rig(*replies, hooks=Hooks(pre_step=(self._relieve,), shrink=self._shrink), **options)
        self.model = ScriptedModel(summaries)
        numbers = itertools.count(1)
        self.compaction = Compaction(
            self.rig.writer, model=self.model, ids=lambda prefix: f"{prefix}-s{next(numbers)}", limit_tokens=limit
        )

    async def _relieve(self, proposal: StepProposal) -> Decision:
        return await self.compaction.relieve(proposal)

    async def _shrink(self, overflow: Overflow) -> None:
        await self.compaction.shrink(overflow)

    @property
    def brackets(self) -> list[str]:
        """Start, summary and end of each compaction, in order."""
        lines: list[str] = []
        for event in self.rig.log:
            payload = event.payload
            if isinstance(payload, CompactionStart):
                lines.append(f"start {payload.reason}")
            elif isinstance(payload, CompactionSummary):
                lines.append("summary")
            elif isinstance(payload, CompactionEnd):
                lines.append(f"end {payload.outcome}")
        return lines

    def asked(self) -> str:
        """What the summariser was shown last."""
        (message,) = self.model.requests[-1].messages
        return "".join(getattr(block, "text", "") for block in message.content)


def between_brackets(events: Sequence[Event]) -> list[str]:
    """The types from the first start to its end."""
    types = [event.type for event in events]
    return types[types.index("compaction/start") : types.index("compaction/end") + 1]
