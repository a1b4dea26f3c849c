"""Secrets taken out of a text that comes in pieces, also where pieces share one.

Room: pure; who reads streams comes in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class PieceFilter:
    """Takes some texts out of one that comes in pieces; the same for every way to cut it.

    Shape: forms come longest first and there is one at least. feed gives what is certain by now, end the rest; less
    than the longest form is held back between them. Of two forms that begin at one place the longer is taken out.
    """

    def __init__(self, forms: Sequence[str], stand_in: str) -> None:
        self._forms = tuple(forms)
        self._stand_in = stand_in
        self._whole = re.compile("|".join(map(re.escape, self._forms)))
        self._first = re.compile("|".join(sorted({re.escape(form[0]) for form in self._forms})))
        self._longest = len(self._forms[0])
        self._held = ""

    def feed(self, text: str) -> str:
        """Everything that can no longer be a part of a form."""
        text = self._held + text
        given: list[str] = []
        at = 0
        while True:
            begun = self._begun(text, at)
            found = self._whole.search(text, at)
            if found is None or found.start() >= begun:
                break
            given += (text[at : found.start()], self._stand_in)
            at = found.end()
        self._held = text[begun:]
        given.append(text[at:begun])
        return "".join(given)

    def end(self) -> str:
        """What was held back, without what stands in it whole."""
        held, self._held = self._held, ""
        return self._whole.sub(lambda _: self._stand_in, held)

    def _begun(self, text: str, at: int) -> int:
        """Where the beginning of a form stands at the end of the text; its length where none does."""
        position = max(at, len(text) - self._longest + 1)
        while (found := self._first.search(text, position)) is not None:
            tail = text[found.start() :]
            if any(len(form) > len(tail) and form.startswith(tail) for form in self._forms):
                return found.start()
            position = found.start() + 1
        return len(text)
