"""What a model may say, by a word for each kind of reply.

Room: tests that draw whole scripts at random.
"""

from __future__ import annotations

import asyncio

from lanes.unit.loop.scripted_model import Gated, Reply, Throw, calls, failing, open_text, reasoning, text

ANSWERS = ("text", "reasoning", "gated", "call", "calls", "slow", "bad-calls", "end", "cut")
# How a reply that is no answer ends the turn, and whether it is tried again first.
FAILURES = {
    "server": ("SERVER", True),
    "empty": ("EMPTY_RESPONSE", True),
    "no-end": ("STREAM_CLOSED", True),
    "refused": ("AUTH", False),
    "raises": ("UNKNOWN", False),
}


def reply_of(kind: str, number: int, gate: asyncio.Event) -> Reply:
    """The reply of that kind; number makes its texts and call ids its own, gate lets a gated one go on.

    Shape: calls are for the tools r and s (read-only), n, w and end.
    """
    match kind:
        case "reasoning":
            return reasoning("hm", f"answer {number}")
        case "gated":
            whole = text("half", f" {number}")
            return Gated(whole[:2], whole[2:], gate=gate)
        case "call":
            return calls((f"c{number}", "r", "{}"))
        case "calls":
            names = ("r", "s", "r", "w", "n")
            return calls(*((f"c{number}{name}{at}", name, "{}") for at, name in enumerate(names)), said="so")
        case "slow":
            return calls((f"c{number}", "s", "{}"))
        case "bad-calls":
            return calls(("same", "nowhere", "{}"), ("same", "", "x"), ("", "r", "[1]"))
        case "end":
            return calls((f"c{number}", "n", "{}"), (f"d{number}", "end", "{}"))
        case "cut":
            return calls((f"c{number}", "r", "{"), said="cut", kind="max-tokens")
        case "server":
            return failing("SERVER", *open_text("half"))
        case "refused":
            return failing("AUTH")
        case "empty":
            return failing("EMPTY_RESPONSE")
        case "no-end":
            return open_text("no end")
        case "raises":
            return Throw(RuntimeError("a bug in the adapter"), open_text("half"))
        case _:
            return text(f"answer {number}")
