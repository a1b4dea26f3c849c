"""Builders in Python with the names of the script file: each returns what the file would hold.

Room: pure; anyone may come in. `script.build_script` checks the result like a file, so a slip is found at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.json_values import Json, JsonObject


def text(words: str) -> JsonObject:
    """Answer text."""
    return {"text": words}


def reasoning(words: str) -> JsonObject:
    """Thinking text."""
    return {"reasoning": words}


def refusal(words: str) -> JsonObject:
    """The model declines in the dialect's own field."""
    return {"refusal": words}


def tool_call(name: str, arguments: Mapping[str, Json] | None = None, **more: Json) -> JsonObject:
    """A tool call; `raw=`, `id=` and `index=` as in the file."""
    call: JsonObject = {"name": name}
    if arguments is not None:
        call["arguments"] = dict(arguments)
    return {"tool_call": {**call, **more}}


def gate(name: str) -> JsonObject:
    """Wait here until the test opens the gate."""
    return {"gate": name}


def malformed(data: str) -> JsonObject:
    """An event that is not what the dialect says."""
    return {"malformed": data}


def comment(words: str) -> JsonObject:
    """A keep-alive comment line in the stream."""
    return {"comment": words}


def error_event(message: str = "", **more: Json) -> JsonObject:
    """An error inside a running stream; `cause=` lets the dialect choose the words."""
    return {"error_event": {"message": message, **more}}


def fault(kind: str) -> JsonObject:
    """The stream breaks here, or its next event is harmed; the kinds are those of the file."""
    return {"fault": kind}


def reset() -> JsonObject:
    """The connection is reset here."""
    return fault("reset")


def cut_off() -> JsonObject:
    """The connection closes here in the middle of the body."""
    return fault("cut")


def stall() -> JsonObject:
    """Nothing more comes from here on; the connection stays open."""
    return fault("stall")


def random_faults(weights: Mapping[str, float], **more: Json) -> JsonObject:
    """Faults by lot, for `fault=` of a step or a script; `seed=` and `in_a_row=` as in the file."""
    return {"random": {"weights": dict(weights), **more}}


def http_error(status: int | None = None, **more: Json) -> JsonObject:
    """An error status, or `cause=`; `code=`, `message=`, `retry_after=`, `headers=`, `body=` as in the file."""
    return {"http_error": more if status is None else {"status": status, **more}}


def step(*parts: Mapping[str, Json] | str, expect: Mapping[str, Json] | None = None, **more: Json) -> JsonObject:
    """One step; the other keys (`usage`, `stream`, `finish`, `fault`, `gate`, `repeat`, `optional`) as in the file."""
    reply: list[Json] = [part if isinstance(part, str) else dict(part) for part in parts]
    return {
        **({"expect": dict(expect)} if expect is not None else {}),
        **({"reply": reply} if reply else {}),
        **more,
    }


def any_order(*steps: Mapping[str, Json]) -> JsonObject:
    """Steps that parallel requests may take in any order."""
    group: list[Json] = [dict(one) for one in steps]
    return {"any_order": group}


def conversation(*steps: Mapping[str, Json], **more: Json) -> JsonObject:
    """A conversation; `when=`, `parallel=` and `background=` as in the file."""
    listed: list[Json] = [dict(one) for one in steps]
    return {**more, "steps": listed}


def script(
    *steps: Mapping[str, Json],
    conversations: Mapping[str, Mapping[str, Json]] | None = None,
    **more: Json,
) -> JsonObject:
    """A whole script: steps of a single conversation, or named conversations."""
    whole: JsonObject = {"version": 1, **more}
    if steps:
        listed: list[Json] = [dict(one) for one in steps]
        whole["steps"] = listed
    if conversations is not None:
        whole["conversations"] = {name: dict(one) for name, one in conversations.items()}
    return whole
