"""Short requests that differ from an earlier one in nothing but the words of the last message.

Room: pure; the reading of requests comes in.
Where everything before and after a plain text is equal to the byte, the text is all there is to look at: a client that
asks one question after the other is read by cutting its question out.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from mock_provider.asked import Asked, AskedMessage
from mock_provider.caller import Caller
from mock_provider.standing import Standing

MAX_KNOWN = 256  # each some KB; more than the clients of any test
_MARK = b'"content":'
_WORDS = re.compile(rb'"content": ?"([ !#-\[\]-~]+)"')  # printable ASCII but for the quote and the backslash


Cut: TypeAlias = "tuple[bytes, bytes, bytes]"


def cut_body(body: bytes) -> Cut | None:
    """Cut a body around the last plain text under "content".

    Shape: what stands before it, the text, what stands after it; None where the text is empty, or anything but
    printable ASCII without escapes.
    """
    found = _WORDS.match(body, max(body.rfind(_MARK), 0))
    if found is None:
        return None
    start, end = found.span(1)
    return body[:start], body[start:end], body[end:]


class Wording:
    """A request that was read. Shape: spelled are its words; standing is what it gets, if that stands for any words."""

    __slots__ = ("asked", "spelled", "standing")

    def __init__(self, asked: Asked, spelled: bytes) -> None:
        self.asked = asked
        self.spelled = spelled
        self.standing: Standing | None = None


class Wordings:
    """Requests by what stands around their words.

    Limits: MAX_KNOWN, then all are forgotten; not safe for threads. Only for dialects that say so, for questions of a
    user, and where no rule looks at the words.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Caller, bytes, bytes], Wording] = {}

    def of(self, caller: Caller, cut: Cut) -> Wording | None:
        """The earlier request of which this is one with other words, or the same; None where they are to be read."""
        before, spelled, after = cut
        known = self._known.get((caller, before, after))
        if known is None or spelled == known.spelled:
            return known
        if caller.secrets.may_hide(spelled):
            return None
        return known

    def reword(self, known: Wording, caller: Caller, spelled: bytes, size_bytes: int) -> Asked | None:
        """The request that an earlier one would be with these words."""
        asked, said = known.asked, known.spelled
        if spelled == said:
            return asked
        words = spelled.decode("ascii")
        longer = len(spelled) - len(said)
        sent = asked.body["messages"]
        if not isinstance(sent, list) or not isinstance(sent[-1], dict):
            return None
        size = asked.said_bytes
        return Asked(
            asked.dialect,
            asked.model,
            (*asked.messages[:-1], AskedMessage("user", (words,))),
            asked.tools,
            asked.is_stream,
            {**asked.body, "messages": [*sent[:-1], {**sent[-1], "content": words}]},
            caller.with_length(caller.headers, size_bytes) if longer else asked.headers,
            asked.wants_usage,
            asked.choices,
            asked.extra_fields,
            asked.form,
            None if size is None else size + longer,
            asked.has_call_ids,
        )

    def learn(self, caller: Caller, cut: Cut, asked: Asked) -> None:
        """Remember a request that was read, if its words are those of its last message and nothing looks at them."""
        before, spelled, after = cut
        words = spelled.decode("ascii")
        sent, last = asked.body.get("messages"), asked.messages[-1] if asked.messages else None
        if last != AskedMessage("user", (words,)) or not isinstance(sent, list) or "response_format" in asked.body:
            return
        if isinstance(sent[-1], dict) and sent[-1].get("content") == words:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[caller, before, after] = Wording(asked, spelled)

    def forget(self) -> None:
        """Forget all of them."""
        self._known.clear()
