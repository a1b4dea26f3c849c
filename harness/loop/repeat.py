"""Notice that the model asks for the same tool call again and again, and tell it.

Room: assemble may add the reminder to its hooks. It counts in the log and blocks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from harness.log.events import ToolCall, UserMessage
from harness.log.session_log import SessionLog
from harness.loop.arguments import parse_arguments
from harness.loop.hooks import ResultHook, ToolProposal
from harness.loop.tools import ToolOutput
from harness.model.messages import CallId, UserSource

REMIND_AT = (3, 5, 8)  # upstream's figures: early enough to save money, rare enough to be read


def count_repeats(log: SessionLog, call_id: CallId, excluded: Collection[str] = ()) -> int:
    """How many calls in a row, up to and with this one, had its name and arguments; 0 for an excluded tool.

    Excluded tools neither count nor break the row; a new prompt of the user begins a new one.
    """
    wanted: tuple[str, str] | None = None
    count = 0
    for event in reversed(log):
        payload = event.payload
        if isinstance(payload, UserMessage) and isinstance(payload.message.source, UserSource):
            break
        if not isinstance(payload, ToolCall) or (wanted is None and payload.call_id != call_id):
            continue
        if payload.name in excluded:
            if wanted is None:
                return 0
            continue
        same = (payload.name, _canonical(payload.arguments))
        if wanted is None:
            wanted = same
        elif same != wanted:
            break
        count += 1
    return count


def remind_of_repeats(excluded: Collection[str] = (), remind_at: Collection[int] = REMIND_AT) -> ResultHook:
    """A result hook that adds a nudge, after the results of the step, at these lengths of the row."""

    async def remind(proposal: ToolProposal, output: ToolOutput) -> ToolOutput:
        count = count_repeats(proposal.agent.log, proposal.call.id, excluded)
        if count not in remind_at:
            return output
        nudge = (
            f"You have called {proposal.call.name} {count} times in a row with the same arguments. "
            "Repeating it will not change its result: use what you have, or try something else."
        )
        return replace(output, context=(*output.context, nudge))

    return remind


def _canonical(raw: str) -> str:
    """The arguments with sorted keys; text that is no JSON stands for itself."""
    value = parse_arguments(raw)
    return raw if isinstance(value, str) else json.dumps(value, sort_keys=True)
