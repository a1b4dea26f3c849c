"""What a summariser is asked, and how its answer is read."""

from __future__ import annotations

import pytest

from harness.capabilities.summary import INSTRUCTION, MAX_RESULT_CHARACTERS, Summary, ask_summary, summary_request
from harness.errors import ProviderError
from harness.log.events import Cause, RequestConfig
from harness.loop.scope import CancelScope
from harness.model.call import ModelRequest
from harness.model.chunks import Usage
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)
from lanes.unit.loop.scripted_model import Hang, Reply, ScriptedModel, Throw, failing, open_text, reasoning, text

ROUTE = RequestConfig("scripted", "m", temperature=0.3, max_tokens=50)
ASKED = Message(MessageId("u"), "user", (TextBlock("look here"),), UserSource())


def request(*messages: Message) -> ModelRequest:
    return summary_request(ROUTE, messages or (ASKED,))


async def ask(*replies: Reply) -> Summary:
    return await ask_summary(ScriptedModel(replies), request(), CancelScope())


def test_the_record_is_one_text_without_open_calls_and_with_long_results_cut() -> None:
    called = Message(
        MessageId("a"),
        "assistant",
        (TextBlock("I look."), ToolCallBlock(CallId("c"), "read_file", '{"path": "x"}')),
        ModelSource("scripted", "m"),
    )
    long = "a" * MAX_RESULT_CHARACTERS + "MIDDLE" + "z" * MAX_RESULT_CHARACTERS
    blocks = [ToolResultBlock(CallId("c"), (TextBlock(said),), said != long) for said in (long, "Error: no")]
    results = [Message(MessageId("r"), "user", (block,), ToolSource(CallId("c"))) for block in blocks]
    made = request(ASKED, called, *results)
    (record,) = made.messages
    (block,) = record.content
    assert isinstance(block, TextBlock)
    half = MAX_RESULT_CHARACTERS // 2
    assert block.text == "\n\n".join(
        [
            "[user]\nlook here",
            "[assistant]\nI look.",
            '[call "read_file"]\n{"path": "x"}',
            f"[result]\n{'a' * half}\n[{MAX_RESULT_CHARACTERS + 6} characters left out]\n{'z' * half}",
            "[failed result]\nError: no",
        ]
    )
    assert (made.provider, made.model, made.system, made.tools, made.max_tokens) == (
        "scripted",
        "m",
        INSTRUCTION,
        (),
        50,
    )


async def test_the_text_is_the_summary_and_reasoning_is_not() -> None:
    assert await ask(reasoning("thinking", " short ")) == Summary("short", None)
    assert await ask(text("a", "b", usage=Usage(5, 2), kind="max-tokens")) == Summary("ab", Usage(5, 2))


FAILURES = {
    "provider": (failing("RATE_LIMIT", *open_text("half"), status=429, retry_after_ms=7), ("RATE_LIMIT", 429, 7)),
    "no_words": (reasoning("hm", "  "), ("EMPTY_RESPONSE", None, None)),
    "closed": (open_text("half"), ("STREAM_CLOSED", None, None)),
    "raised": (Throw(RuntimeError("adapter")), ("UNKNOWN", None, None)),
}


@pytest.mark.parametrize(("reply", "facts"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_failing_model_is_an_error_with_the_facts_it_gave(reply: Reply, facts: tuple[object, ...]) -> None:
    with pytest.raises(ProviderError) as raised:
        await ask(reply)
    error = raised.value
    assert (error.error_code, error.status, error.retry_after_ms) == facts


async def test_a_cancel_ends_the_call_and_leaves_no_summary() -> None:
    hanging, scope = Hang(open_text("half")), CancelScope()
    hanging.reached.set = lambda: scope.cancel(Cause("user"))  # type: ignore[method-assign] # cancel at that moment
    assert await ask_summary(ScriptedModel([hanging]), request(), scope) == Summary("", None)
    assert hanging.closed.is_set()
