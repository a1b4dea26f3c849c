"""Issues: what a night has to say to the people of a project, as acts on the issues that are open already.

Room: pure. The nightly command has the forge's own program do them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lanes.record import JsonObject

LABEL = "nightly-real"
MISSED = "nightly real: no night was run"
MAX_BODY_CHARS = 4_000

Deed: TypeAlias = Literal["open", "comment", "close"]


@dataclass(frozen=True, slots=True)
class Act:
    """One act. number is that of an open issue, 0 for one that is to be opened."""

    deed: Deed
    title: str
    body: str
    number: int = 0


def issue_title(claim_id: str, provider: str) -> str:
    """The title of the one issue about a claim and a provider."""
    return f"nightly real: {claim_id} with {provider}"


def night_acts(
    tonight: Sequence[JsonObject], open_issues: Mapping[str, int], missed: str, where: str = ""
) -> tuple[Act, ...]:
    """What is to be done after a night: one issue a failing claim, closed by the next honest pass and by nothing else.

    Shape: open_issues are the titles of those that this room opened, with their numbers. A night that judged nothing
    neither opens nor closes one. where is added to each text, such as the address of the run.
    """
    acts: list[Act] = []
    for line in tonight:
        claim_id, provider, status = (str(line.get(name, "")) for name in ("claim", "provider", "status"))
        title = issue_title(claim_id, provider)
        number = open_issues.get(title, 0)
        if status in {"failed", "flaky"}:
            acts.append(Act("comment" if number else "open", title, _body(line, where), number))
        elif status == "passed" and line.get("live") is True and number:
            acts.append(Act("close", title, _body(line, where), number))
    number = open_issues.get(MISSED, 0)
    if missed and not number:
        acts.append(Act("open", MISSED, _cut(f"{missed}\n{where}"), 0))
    elif not missed and number:
        acts.append(Act("close", MISSED, _cut(f"a night was run again\n{where}"), number))
    return tuple(acts)


def _body(line: JsonObject, where: str) -> str:
    told = [
        f"{line.get('status')} on {line.get('night')}, {line.get('passed')} of {line.get('attempts')} attempts",
        f"model {line.get('model')} at {line.get('host')}, commit {line.get('commit')}",
        where,
    ]
    return _cut("\n".join(each for each in told if each))


def _cut(text: str) -> str:
    kept = "".join(each if each.isprintable() or each == "\n" else " " for each in text)
    return kept.strip()[:MAX_BODY_CHARS]
