"""What is asked: small questions, agents at work, and answers in many pieces."""

from __future__ import annotations

import json

PATH = "/v1/chat/completions"
COUNTER = "@@@@@@@@"  # eight digits, another number in every request where requests differ
WORDS = "hello "  # every question holds it, so that a peer's fixture can find it


def small_body() -> bytes:
    """One question."""
    return _spelled({"model": "m-small", "messages": [{"role": "user", "content": WORDS + COUNTER}]})


def agent_body(*, is_new: bool = False) -> bytes:
    """About 25 KB of an agent at work: a system prompt, 20 messages, 10 tools.

    Shape: requests differ in their last message, as those of an agent do that goes on; is_new: in every message, so
    that nothing of the history is known.
    """
    first = COUNTER if is_new else "start"
    messages: list[dict[str, object]] = [{"role": "system", "content": f"{first}. " + "Work with care. " * 150}]
    for turn in range(6):
        call = {
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path":"a"}'},
        }
        messages += [
            {"role": "user", "content": f"Step {turn} of {first}: " + "look at the next file and mend it. " * 6},
            {"role": "assistant", "content": f"I look at {first}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"{first} line {turn} of it\n" * 60},
        ]
    messages.append({"role": "user", "content": WORDS + COUNTER})
    return _spelled({"model": "m-small", "messages": messages, "tools": [_tool(number) for number in range(10)]})


def _tool(number: int) -> dict[str, object]:
    described = "what it is for, in a sentence or two that a model can follow"
    properties = {f"field_{at}": {"type": "string", "description": described} for at in range(7)}
    name = "read_file" if not number else f"tool_{number}"
    schema = {"type": "object", "properties": properties, "required": ["field_0"], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": described * 2, "parameters": schema}}


def stream_body() -> bytes:
    """A question whose answer is streamed."""
    return _spelled({"model": "m-small", "stream": True, "messages": [{"role": "user", "content": WORDS + COUNTER}]})


def _spelled(body: dict[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def steps_script(count: int) -> str:
    """A script of so many steps in one conversation, in order; the first one fits again and again."""
    return json.dumps({"version": 1, "steps": _steps(count)})


def group_script(count: int) -> str:
    """A script of so many steps that may be taken in any order; the last one fits."""
    return json.dumps({"version": 1, "steps": [{"any_order": _steps(count)[::-1]}]})


def _steps(count: int) -> list[object]:
    others = ({"expect": {"last_user": f"topic {number:06d}"}, "reply": "other"} for number in range(count - 1))
    return [{"expect": {"last_user": WORDS}, "reply": "hi", "repeat": 1_000_000}, *others]


def choices_script(count: int) -> str:
    """A script of so many conversations, found by what the user says; the last one fits."""
    names = [f"topic {number:06d}" for number in range(count - 1)] + [WORDS]
    talks = {
        f"c{number}": {"when": {"user_contains": name}, "steps": [{"reply": "hi", "repeat": "forever"}]}
        for number, name in enumerate(names)
    }
    return json.dumps({"version": 1, "conversations": talks})


def stream_script(pieces: int) -> str:
    """A script that answers in so many pieces."""
    step = {"reply": [{"text": "12345678" * pieces}], "stream": {"split": {"chars": 8}}, "repeat": "forever"}
    return json.dumps({"version": 1, "steps": [step]})


def plain_script() -> str:
    """A script that always says the same."""
    return json.dumps({"version": 1, "steps": [{"reply": [{"text": "hi"}], "repeat": "forever"}]})
