"""Tools whose answers and files never hold the key of the model's service.

Room: assemble and the shell's capture come in. A command can read the environment of the program that started it; what
it found there must reach neither the log, nor the model, nor the file a long output is kept in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.loop.redaction import STAND_IN, Secrets, is_secret
from harness.loop.tools import Tool


@dataclass(slots=True)
class KeyFilter:
    """Takes a key out of bytes that come in pieces, also where two pieces share it.

    Shape: feed gives what is certain by now, end the rest; up to a key's length is held back between them. A key that
    is None or too short to be one lets everything through.
    """

    key: str | None
    _key: bytes = field(init=False, default=b"")
    _held: bytes = b""

    def __post_init__(self) -> None:
        if is_secret(self.key):
            self._key = self.key.encode("utf-8", "surrogateescape")

    def feed(self, data: bytes) -> bytes:
        """Everything that can no longer be a part of the key."""
        if not self._key:
            return data
        data = (self._held + data).replace(self._key, STAND_IN.encode())
        held = next(size for size in range(len(self._key) - 1, -1, -1) if data.endswith(self._key[:size]))
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def end(self) -> bytes:
        """What was held back, which is no key."""
        held, self._held = self._held, b""
        return held


def redact_tools(tools: Mapping[str, Tool], key: str | None) -> Mapping[str, Tool]:
    """The same tools, with the key taken out of all they answer and raise; as they are where there is none."""
    secrets = Secrets().and_of([key])
    return {name: secrets.tool(tool) for name, tool in tools.items()}
