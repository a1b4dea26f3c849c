"""`mock-provider explain`: which step would take a request, and why the others would not.

Room: pure; the command comes in. The deciding room itself decides, on a play that has just begun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mock_provider.asked import Asked, Refusal
from mock_provider.caller import Caller, read_caller
from mock_provider.deciding import Decider, Request
from mock_provider.dialects.codec import PLAIN
from mock_provider.dialects.table import DIALECTS, PLACE_OF
from mock_provider.errors import UsageError
from mock_provider.expect import Difference, Expect, compare
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject, quote
from mock_provider.kept import Kept
from mock_provider.match import last_words
from mock_provider.play import Play
from mock_provider.redaction import MARK, Redactor, redactor_for, secrets_of_body
from mock_provider.script_fields import near_miss
from mock_provider.steps import Conversation, Script
from mock_provider.text_pattern import MAX_MATCH_S, PatternTooSlow

DUMMY_KEY = "sk-mock"
MODEL = "m"  # for dialects that have the model in the path, when the request does not say one
_EXPECTED = "the body of a request, or a line of the journal"
KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
VERSION_HEADERS: Mapping[str, tuple[str, str]] = {"anthropic_messages": ("anthropic-version", "2023-06-01")}


@dataclass(frozen=True, slots=True)
class StepView:
    """One step held against the request. Shape: no differences means that it fits."""

    number: int
    line: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class ConversationView:
    """One conversation held against the request. Shape: differences are those of its `when`."""

    name: str
    has_when: bool
    differences: tuple[Difference, ...]
    steps: tuple[StepView, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would become of a request. Shape: step is there when ok; problem is the whole refusal when not."""

    ok: bool
    dialect: str
    request: str
    conversation: str | None
    step: int | None
    problem: str
    conversations: tuple[ConversationView, ...]


def read_request(text: str, name: str, script: Script, dialect: str | None) -> Incoming:
    """Read a request from a file: a bare body, or a mapping with body and path, such as a line of the journal.

    Raises: UsageError.
    """
    try:
        content: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise UsageError(what, where=name, expected=_EXPECTED) from None
    if not isinstance(content, dict):
        raise UsageError("not a mapping", where=name, expected=_EXPECTED)
    if dialect is not None and dialect not in DIALECTS:
        what = f"dialect '{dialect}' is unknown{near_miss(dialect, tuple(DIALECTS))}"
        raise UsageError(what, where="--dialect", expected=f"one of {', '.join(DIALECTS)}")
    is_whole = isinstance(content.get("path"), str) and "body" in content
    body = content["body"] if is_whole else content
    headers = content.get("headers") if is_whole else None
    spoken = dialect or (None if is_whole else _guess(content))
    told = headers if isinstance(headers, dict) else {}
    given = {key.lower(): value for key, value in told.items() if isinstance(value, str)}
    method = content.get("method") if is_whole else None
    return Incoming(
        method=method if isinstance(method, str) else "POST",
        target=str(content["path"]) if is_whole else _address(spoken or "openai_chat", content),
        headers=with_key(given, script, spoken),
        body=json.dumps(body).encode("ascii"),
    )


def _guess(body: JsonObject) -> str:
    """The dialect of a bare body, by the names that only it has."""
    if "contents" in body:
        return "gemini"
    if "input" in body:
        return "openai_responses"
    if "inferenceConfig" in body or "toolConfig" in body:
        return "bedrock"
    if "anthropic_version" in body or ("max_tokens" in body and ("system" in body or _has_input_schema(body))):
        return "anthropic_messages"
    return "openai_chat"


def _has_input_schema(body: JsonObject) -> bool:
    tools = body.get("tools")
    return isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)


def _address(dialect: str, body: JsonObject) -> str:
    place, special = PLACE_OF[dialect], DIALECTS[dialect].addresses
    model = body.get("model")
    at = next(one for one in place.addresses if special.get(one, PLAIN).answer is None)
    path = place.prefixes[0] + at.partition(" ")[2]
    for name in ("{model}", "{model*}", "{deployment}"):
        path = path.replace(name, model if isinstance(model, str) and model else MODEL)
    return path


def with_key(headers: Mapping[str, str], script: Script, dialect: str | None) -> dict[str, str]:
    """The headers with a key in every place where one may stand; those of a journal or a recording are hidden there."""
    key = script.api_key or DUMMY_KEY
    filled = {name: value for name, value in headers.items() if value != MARK}
    if not filled.get("authorization"):
        filled["authorization"] = f"Bearer {key}"
    for name in KEY_HEADERS:
        if name in headers or (dialect is not None and name in _marks(dialect)):
            filled[name] = filled.get(name) or key
    if dialect is not None and dialect in VERSION_HEADERS:
        name, value = VERSION_HEADERS[dialect]
        filled.setdefault(name, value)
        filled.setdefault("x-api-key", key)
    return {"content-type": "application/json", **filled}


def _marks(dialect: str) -> tuple[str, ...]:
    return PLACE_OF[dialect].marks


def explain(script: Script, incoming: Incoming) -> Explanation:
    """Say what would become of a request on a play that has just begun."""
    caller = read_caller(incoming.method, incoming.target, incoming.headers, script)
    body: Json = json.loads(incoming.body)
    secrets = redactor_for([*caller.secret_values, *secrets_of_body(body)])
    request = Request(caller, body, None, secrets, len(incoming.body))
    decider = Decider(Play(script), Kept())
    checked = decider.check(request)
    decision = decider.decide(request, checked)
    views: tuple[ConversationView, ...] = ()
    if isinstance(checked, Asked):
        views = tuple(_view(conversation, checked, secrets) for conversation in script.conversations)
    return Explanation(
        ok=decision.matched,
        dialect=caller.dialect.name,
        request=secrets.text(_describe(checked, caller)),
        conversation=decision.conversation,
        step=decision.step,
        problem=decision.problem or "",
        conversations=views,
    )


def _describe(checked: Asked | Refusal | JsonObject | None, caller: Caller) -> str:
    line = f"{caller.method} {caller.shown_path}"
    if not isinstance(checked, Asked):
        return line
    said = f"{len(checked.messages)} message" + ("" if len(checked.messages) == 1 else "s")
    tools = f", tools {', '.join(checked.tools)}" if checked.tools else ""
    stream = ", streaming" if checked.is_stream else ""
    return f"{line}: {checked.dialect}, model {checked.model}, {said}{tools}{stream}; last user {last_words(checked)}"


def _view(conversation: Conversation, asked: Asked, secrets: Redactor) -> ConversationView:
    return ConversationView(
        name=conversation.name,
        has_when=conversation.when is not None,
        differences=_held(conversation.when, asked, secrets),
        steps=tuple(
            StepView(step.number, step.mark.line, _held(step.expect, asked, secrets)) for step in conversation.steps()
        ),
    )


def _held(expect: Expect | None, asked: Asked, secrets: Redactor) -> tuple[Difference, ...]:
    try:
        found = compare(expect, asked).differences
    except PatternTooSlow as slow:
        return (Difference("regex", f"a match of {quote(slow.pattern)} in time", f"more than {MAX_MATCH_S:g} s"),)
    return tuple(Difference(one.field, one.expected, secrets.text(one.found)) for one in found)


def explanation_text(explanation: Explanation) -> str:
    """The explanation for a person."""
    lines = [explanation.request]
    for view in explanation.conversations:
        name = f'conversation "{view.name}"' if view.name else "the conversation"
        if view.differences:
            lines.append(f"{name}: its 'when' does not fit")
            lines += [f"    when.{difference}" for difference in view.differences]
        else:
            how = "its 'when' fits" if view.has_when else "takes any request"
            lines.append(f"{name}: {how}")
        for step in view.steps:
            at = f" (line {step.line})" if step.line else ""
            lines.append(f"  step {step.number}{at}: {'does not fit' if step.differences else 'fits'}")
            lines += [f"    {difference}" for difference in step.differences]
    if explanation.ok and explanation.step is None:
        lines.append("answered without a step")
    elif explanation.ok:
        name = f'conversation "{explanation.conversation}", ' if explanation.conversation else ""
        lines.append(f"would take: {name}step {explanation.step}")
    else:
        lines.append(f"would be refused: {explanation.problem}")
    return "\n".join(lines) + "\n"


def explanation_json(explanation: Explanation) -> JsonObject:
    """The explanation for a program."""
    views: list[Json] = []
    for view in explanation.conversations:
        steps: list[Json] = [
            {
                "step": step.number,
                "line": step.line,
                "fits": not step.differences,
                "differences": _differences(step.differences),
            }
            for step in view.steps
        ]
        views.append(
            {
                "name": view.name,
                "fits": not view.differences,
                "differences": _differences(view.differences),
                "steps": steps,
            }
        )
    return {
        "ok": explanation.ok,
        "dialect": explanation.dialect,
        "request": explanation.request,
        "conversation": explanation.conversation,
        "step": explanation.step,
        "problem": explanation.problem,
        "conversations": views,
    }


def _differences(differences: tuple[Difference, ...]) -> list[Json]:
    return [{"field": one.field, "expected": one.expected, "found": one.found} for one in differences]
