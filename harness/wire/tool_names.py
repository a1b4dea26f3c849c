"""Tool names as every provider takes them back.

Room: pure; the request rooms come in.
"""

from __future__ import annotations

import re

MAX_NAME = 64  # the shortest of the providers' limits: OpenAI's; Anthropic takes 128
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def legal_name(name: str) -> str:
    """The name of a call as it is sent back: a legal one as it is, any other as a stand-in of the same look.

    A model may call a tool by a name that no provider accepts in a request; the log keeps what it wrote, and later
    requests of the session must still be taken.
    Source: OpenAI chat completions, tool names of `^[a-zA-Z0-9_-]{1,64}$`; Anthropic messages, `{1,128}`.
    """
    return _REFUSED.sub("_", name)[:MAX_NAME] or "unnamed"
