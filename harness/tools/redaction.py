"""Tools whose answers and files never hold a secret.

Room: assemble and the shell's capture come in. A command can read the environment of the program that started it; what
it found there must reach neither the log, nor the model, nor the file a long output is kept in.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.loop.pieces import PieceFilter
from harness.loop.redaction import Secrets
from harness.loop.tools import Tool

_BYTES = "latin-1"  # one character a byte, so that bytes can be searched as a text


class KeyFilter:
    """Takes secrets out of bytes that come in pieces, also where two pieces share one.

    Shape: feed gives what is certain by now, end the rest; less than a secret's length is held back between them.
    Limits: values alone; what merely has the shape of a secret passes.
    """

    def __init__(self, secrets: Secrets | None) -> None:
        known = secrets or Secrets()
        forms = tuple(form.encode("utf-8", "surrogateescape").decode(_BYTES) for form in known.forms)
        self._filter = PieceFilter(forms, known.stand_in) if forms else None

    def feed(self, data: bytes) -> bytes:
        """Everything that can no longer be a part of a secret."""
        return data if self._filter is None else self._filter.feed(data.decode(_BYTES)).encode(_BYTES)

    def end(self) -> bytes:
        """What was held back, which is no secret."""
        return b"" if self._filter is None else self._filter.end().encode(_BYTES)


def redact_tools(tools: Mapping[str, Tool], secrets: Secrets) -> Mapping[str, Tool]:
    """The same tools, with the secrets taken out of all they answer and raise; as they are where there are none."""
    return {name: secrets.tool(tool) for name, tool in tools.items()}
