"""Finding the conversation of a request, and words for a request that fits nowhere.

Room: pure; playback comes in.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_provider.asked import Asked
from mock_provider.expect import Difference, compare
from mock_provider.json_values import quote
from mock_provider.script_fields import near_miss
from mock_provider.steps import Conversation, Script, Step
from mock_provider.text_pattern import MAX_MATCH_S, PatternTooSlow
from mock_provider.values import value

NEAREST_LIMIT = 200  # steps looked at for the nearest one; a mistake must not cost more than the play
_ORDINALS = ("a first", "a second", "a third", "a fourth", "a fifth", "a sixth", "a seventh", "an eighth", "a ninth")


@value
class Unmatched:
    """A request that no step accepts. Shape: text is the whole message; conversation may be unknown."""

    code: str
    text: str
    conversation: str | None = None
    step: int | None = None


@value
class Naming:
    """The conversation a client named itself. Shape: how says by which means; client tells parallel players apart."""

    conversation: str
    client: str
    how: str


def called(script: Script, conversation: str) -> str:
    """Name a conversation in a message; the unnamed one needs no name."""
    return f'{script.name}, conversation "{conversation}"' if conversation else script.name


def last_words(asked: Asked) -> str:
    """The last user text, quoted for a message."""
    last = asked.last_user
    return quote(last.text) if last else "none"


def explain_unknown_name(script: Script, naming: Naming) -> Unmatched:
    """The client named a conversation that the script does not have."""
    known = [conversation.name for conversation in script.conversations if conversation.name]
    what = f'{naming.how} names conversation "{naming.conversation}", which is not scripted'
    text = f"{script.name}: {what}{near_miss(naming.conversation, known)} [SCRIPT_NO_CONVERSATION]\n"
    text += f"  conversations: {', '.join(known) or 'one without a name'}"
    return Unmatched("SCRIPT_NO_CONVERSATION", text)


def explain_too_many(script: Script, conversation: Conversation, client: str) -> Unmatched:
    """One more client than the conversation is made for."""
    count = conversation.parallel
    text = (
        f'{called(script, conversation.name)}: client "{client}" came, parallel is {count} [SCRIPT_PARALLEL]\n'
        f"  fix: set parallel: {count + 1}, or give this client a conversation of its own"
    )
    return Unmatched("SCRIPT_PARALLEL", text, conversation.name)


def explain_several(script: Script, found: Sequence[Conversation], asked: Asked, number: int) -> Unmatched:
    """Several conversations would take this request."""
    names = ", ".join(f'"{conversation.name}"' for conversation in found)
    text = (
        f"{script.name}: request {number} fits {len(found)} conversations: {names} [SCRIPT_AMBIGUOUS]\n"
        f"  last user text: {last_words(asked)}\n"
        "  fix: give each a 'when' that only it fits, or let the client name one "
        "(header x-mock-conversation, path /c/NAME/, key sk-mock-NAME)"
    )
    return Unmatched("SCRIPT_AMBIGUOUS", text)


def explain_slow_pattern(script: Script, slow: PatternTooSlow) -> Unmatched:
    """A regular expression went astray."""
    text = (
        f"{script.name}: the regular expression {quote(slow.pattern)} took more than {MAX_MATCH_S:g} s on a text of "
        f"{slow.length} characters [SCRIPT_REGEX]\n"
        "  fix: leave its repetitions one way to match a text, such as [^,]* instead of .*, or use 'contains'"
    )
    return Unmatched("SCRIPT_REGEX", text)


def explain_dialect(script: Script, dialect: str) -> Unmatched:
    """The script is written for other dialects than the request."""
    text = (
        f"{script.name}: the script is written for {', '.join(script.dialects)}, the request speaks {dialect} "
        "[SCRIPT_OTHER_DIALECT]\n  fix: point the client elsewhere, or name its dialect under 'dialect'"
    )
    return Unmatched("SCRIPT_OTHER_DIALECT", text)


def explain_stuck(script: Script, gate: str, waited_s: float, who: tuple[int, str, int] | None) -> str:
    """An answer waited at a gate that nobody opened. Shape: who is its request, conversation and step."""
    number, conversation, step = who or (0, "", 0)
    what = f"request {number} waited {waited_s:g} s at gate '{gate}' of step {step}"
    return f"{called(script, conversation)}: {what} [GATE_NEVER_OPENED]\n  fix: open the gate in the test"


def explain_none(script: Script, asked: Asked, number: int) -> Unmatched:
    """No conversation takes this request."""
    lines = [f"{script.name}: request {number} fits no conversation [SCRIPT_NO_CONVERSATION]"]
    lines.append(f"  last user text: {last_words(asked)}")
    for conversation in script.conversations[:10]:
        if conversation.when is not None:
            differences = compare(conversation.when, asked).differences
            shown = "; ".join(map(str, differences[:3])) or "fits, but is taken"
            lines.append(f'  "{conversation.name}": when.{shown}')
    lines.append("  fix: add a conversation with a 'when' that this request fits, or change what the client sends")
    return Unmatched("SCRIPT_NO_CONVERSATION", "\n".join(lines))


def nearest_step(steps: Sequence[Step], asked: Asked) -> tuple[Step, list[Difference]] | None:
    """The step with the fewest differences; of equals the latest."""
    best: tuple[Step, list[Difference]] | None = None
    for step in steps[-NEAREST_LIMIT:]:
        differences = compare(step.expect, asked).differences
        if best is None or len(differences) <= len(best[1]):
            best = (step, differences)
    return best


def explain_exhausted(
    script: Script, conversation: Conversation, asked: Asked, request: int, client: str = ""
) -> Unmatched:
    """All steps of the conversation are used."""
    steps = conversation.steps()
    near = nearest_step(steps, asked)
    count = len(steps)
    scripted = f"{count} step is scripted" if count == 1 else f"{count} steps are scripted"
    if near is None:
        nearest = "none"
    elif near[1]:
        nearest = f"{near[0].number}, differs in {', '.join(difference.field for difference in near[1][:3])}"
    else:
        nearest = f"{near[0].number}, which is used up"
    another = _ORDINALS[count] if count < len(_ORDINALS) else f"step {count + 1}, a new"
    last = steps[-1] if steps else None
    ends = f', or end step {count} with finish "stop"' if last and _asks_for_more(last) else ""
    who = f' of client "{client}"' if client else ""
    text = (
        f"{called(script, conversation.name)}: request {request}{who} arrived, {scripted} [SCRIPT_EXHAUSTED]\n"
        f"  last user text: {last_words(asked)}        nearest step: {nearest}\n"
        f"  fix: add {another} step{ends}"
    )
    return Unmatched("SCRIPT_EXHAUSTED", text, conversation.name)


def _asks_for_more(step: Step) -> bool:
    return step.finish == "tool_calls" or any(type(part).__name__ == "ToolCall" for part in step.parts)


def explain_mismatch(
    script: Script,
    conversation: Conversation,
    asked: Asked,
    request: int,
    tried: Sequence[tuple[Step, list[Difference]]],
) -> Unmatched:
    """The step whose turn it is does not accept the request."""
    step, differences = min(tried, key=lambda pair: len(pair[1]))
    at = f" ({script.name}:{step.mark.line})" if step.mark.line else ""
    lines = [
        f"{called(script, conversation.name)}: request {request} does not fit step {step.number} [SCRIPT_MISMATCH]",
        *(f"  {difference}" for difference in differences[:8]),
    ]
    shown = f"  last user text: {last_words(asked)}"
    elsewhere = nearest_step(conversation.steps(), asked)
    if elsewhere and len(elsewhere[1]) < len(differences):
        shown += f"        nearest step: {elsewhere[0].number}"
    lines.append(shown)
    lines.append(f"  fix: change the expectation of step {step.number}{at}, or what the client sends")
    return Unmatched("SCRIPT_MISMATCH", "\n".join(lines), conversation.name, step.number)
