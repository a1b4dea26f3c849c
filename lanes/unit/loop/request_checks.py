"""What every request has to be, said without the code that builds it.

Room: the properties of requests and of the whole agent.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.messages import Message, ToolResultBlock, tool_calls_of


def check_each_call_has_one_result(messages: Sequence[Message]) -> None:
    """Between a message with calls and the next other message stand the results of exactly these calls."""
    open_calls: list[str] = []
    for item in messages:
        results = [str(block.tool_call_id) for block in item.content if isinstance(block, ToolResultBlock)]
        if results:
            for result in results:
                open_calls.remove(result)
        else:
            assert open_calls == []
            open_calls = [str(call.id) for call in tool_calls_of(item)]
            assert len(set(open_calls)) == len(open_calls)
    assert open_calls == []
