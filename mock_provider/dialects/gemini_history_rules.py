"""What the Gemini endpoints refuse in the turns of a conversation: roles, calls, their responses, signatures.

Room: pure; the rules of the Gemini dialect come in.
Source: the provider's published API reference (Content, Part) and its guide to thought signatures, which Gemini 3
models demand back with the first call of each step of the current turn; its error bodies as clients have reported them.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.dialects.gemini_fields import decode_bytes, pick, pick_object, pick_objects, pick_text
from mock_provider.dialects.gemini_refusals import refuse
from mock_provider.dialects.gemini_signatures import is_ours
from mock_provider.json_values import JsonObject
from mock_provider.values import value

# Both spellings of the role of a turn of responses are older than "user" and still taken.
_RESPONSE_ROLES = ("function", "tool")
NEED_SIGNATURES = "gemini-3"  # models of which a signature has to come back with the first call of a step
_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
_MARKS = ("thoughtSignature", "thought")


def refuse_turns(contents: list[JsonObject], model: str) -> Refusal | None:
    """Check a history. Shape: the first rule that is broken."""
    for at, content in enumerate(contents):
        refused = refuse_content(content, at)
        if refused:
            return refused
    turns = _turns(contents)
    return _pairs(turns) or _signatures(turns, model)


@value
class _Turn:
    """Neighbouring contents of one role, which are one turn: the Python client keeps each chunk of a stream as its own.

    Shape: at is the number of the first of them, from 1.
    """

    is_model: bool
    at: int
    parts: list[JsonObject]

    def of(self, name: str) -> list[JsonObject]:
        """The parts that hold this."""
        return [part for part in self.parts if pick(part, name) is not None]


def _turns(contents: list[JsonObject]) -> list[_Turn]:
    turns: list[_Turn] = []
    for at, content in enumerate(contents, 1):
        is_model = pick_text(content, "role") == "model"
        parts = pick_objects(content, "parts")
        if turns and turns[-1].is_model is is_model:
            turns[-1].parts.extend(parts)
        else:
            turns.append(_Turn(is_model, at, list(parts)))
    return turns


def refuse_content(content: JsonObject, at: int) -> Refusal | None:
    """Check one content by itself."""
    role = pick_text(content, "role")
    parts = pick_objects(content, "parts")
    is_response = bool(parts) and all(pick(part, "functionResponse") is not None for part in parts)
    if role not in ("", "user", "model") and not (role in _RESPONSE_ROLES and is_response):
        return refuse("unknown_role", "Please use a valid role: user, model.")
    here = f"GenerateContentRequest.contents[{at}].parts"
    if not parts:
        return refuse("missing_content", f"* {here}: contents.parts must not be empty.\n")
    for number, part in enumerate(parts):
        given = [name for name in _DATA if pick(part, name) is not None]
        if len(given) > 1:
            path = f"contents[{at}].parts[{number}]"
            text = f"Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{given[1]}'"
            return Refusal(400, "unknown_content_part", text, param=path)
        if not given and not any(pick(part, name) is not None for name in _MARKS):
            text = f"* {here}[{number}].data: required oneof field 'data' must have one initialized field\n"
            return refuse("missing_content", text)
        for name in ("functionCall", "functionResponse"):
            if name in given and not pick_text(pick_object(part, name), "name"):
                spelled = "function_call" if name == "functionCall" else "function_response"
                return refuse("missing_field", f"* {here}[{number}].{spelled}.name: Name cannot be empty.\n")
    return None


def calls_of(content: JsonObject) -> list[JsonObject]:
    """The function calls in a content."""
    return [
        pick_object(part, "functionCall") for part in pick_objects(content, "parts") if _holds(part, "functionCall")
    ]


def responses_of(content: JsonObject) -> list[JsonObject]:
    """The function responses in a content."""
    parts = pick_objects(content, "parts")
    return [pick_object(part, "functionResponse") for part in parts if _holds(part, "functionResponse")]


def _holds(part: JsonObject, name: str) -> bool:
    return pick(part, name) is not None


def _pairs(turns: list[_Turn]) -> Refusal | None:
    """Every call answered in the next turn, every response an answer to the turn before."""
    waiting: list[JsonObject] = []
    for turn in turns:
        responses = [pick_object(part, "functionResponse") for part in turn.of("functionResponse")]
        calls = [pick_object(part, "functionCall") for part in turn.of("functionCall")]
        if responses and not waiting:
            text = "Please ensure that function response turn comes immediately after a function call turn."
            return refuse("orphan_tool_result", text)
        if len(responses) != len(waiting):
            return _uneven("unanswered_tool_call" if len(responses) < len(waiting) else "orphan_tool_result")
        stranger = find_stranger(waiting, responses)
        if stranger is not None:
            text = f"Function response '{stranger}' answers no function call of the turn before."
            return refuse("orphan_tool_result", text)
        if calls and turn is turns[0]:
            text = (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
            return refuse("misplaced_tool_call", text)
        waiting = calls
    return _uneven("unanswered_tool_call") if waiting else None


def _uneven(rule: str) -> Refusal:
    text = (
        "Please ensure that the number of function response parts is equal to the number of function call parts of "
        "the function call turn."
    )
    return refuse(rule, text)


def find_stranger(calls: list[JsonObject], responses: list[JsonObject]) -> str | None:
    """A response whose id, or name where it has no id, belongs to no call that is still open."""
    waiting = list(calls)
    for response in responses:
        name, given = pick_text(response, "name"), pick_text(response, "id")
        found = next(
            (
                call
                for call in waiting
                if pick_text(call, "name") == name and (not given or pick_text(call, "id") in ("", given))
            ),
            None,
        )
        if found is None:
            return given or name
        waiting.remove(found)
    return None


def _signatures(turns: list[_Turn], model: str) -> Refusal | None:
    for turn in turns:
        for part in turn.of("thoughtSignature"):
            given = pick_text(part, "thoughtSignature")
            if not is_ours(given, decode_bytes(given) or b""):
                return refuse("wrong_signature", "Corrupted thought signature.")
    if not model.startswith(NEED_SIGNATURES):
        return None
    asked = [at for at, turn in enumerate(turns) if not turn.is_model and not turn.of("functionResponse")]
    for turn in turns[asked[-1] if asked else 0 :]:
        calls = turn.of("functionCall")
        if calls and not pick_text(calls[0], "thoughtSignature"):
            name = pick_text(pick_object(calls[0], "functionCall"), "name")
            text = (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{name}` , position {turn.at}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
            return refuse("missing_signature", text)
    return None
