"""One request that a player of recordings saw, and how it answers what it does not hold.

Room: pure data; both players come in.
"""

from __future__ import annotations

from dataclasses import dataclass

MISS_STATUS = 400  # real clients do not retry it, so the mistake shows at once


@dataclass(frozen=True, slots=True)
class PlayedAnswer:
    """One request a player saw, for the evidence."""

    ordinal: int
    request_digest: str
    answer_digest: str | None
    status: int
    answer_class: str
    reported_model: str | None
    provider_id: str | None
    live_proof_digest: str | None = None
