"""Trouble with a provider: which answers and failures say that a task could not be judged, and by which code.

Room: pure. The live channel and the preflight come in. Whether a claim is about that very trouble is its claim's word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPENT = re.compile(
    rb"(?i)insufficient[_ ](quota|balance|funds)|credit balance|exceeded your current quota|billing|payment required"
)
MAX_SHOWN_CHARS = 160

# The words of a claim's condition under which the trouble is what the claim is about.
CONDITIONS = {
    "credential-rejected": frozenset({"401", "403", "authentication"}),
    "quota": frozenset({"402", "429", "quota"}),
    "outage": frozenset({"429", "5xx", "500", "502", "503", "504", "529", "timeout", "outage"}),
    "clock": frozenset({"clock"}),
    "budget-midway": frozenset({"budget"}),
}
# Trouble that the next request to the same provider would meet again: nobody asks it a second time in this run.
LASTING = frozenset({"credential-rejected", "quota", "clock", "preflight"})


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a task could not be judged: a code of lanes.record.REASONS, and what happened."""

    code: str
    text: str

    @property
    def is_lasting(self) -> bool:
        """Whether everything else that is asked of the provider would end the same way."""
        return self.code in LASTING


def trouble_of_status(status: int, body: bytes) -> Trouble | None:
    """What an answer's status says; None for one that says nothing of the sort.

    Source: OpenAI API reference, "Error codes"; DeepSeek API docs, "Error Codes", 402; Anthropic API reference,
    "Errors", 529.
    """
    if status in {401, 403}:
        return Trouble("credential-rejected", f"the provider answered {status}")
    if status == 402 or (status in {400, 429} and _SPENT.search(body)):
        return Trouble("quota", f"the provider answered {status}: its quota or balance is spent")
    if status == 429:
        return Trouble("outage", "the provider answered 429: too many requests")
    if status in {408, 425} or status >= 500:
        return Trouble("outage", f"the provider answered {status}")
    return None


def trouble_of_failure(host: str, error: Exception) -> Trouble:
    """What a request that got no answer says: the provider was not reached."""
    what = " ".join(str(error).split())[:MAX_SHOWN_CHARS]
    return Trouble("outage", f"{host} was not reached: {type(error).__name__}{f', {what}' if what else ''}")
