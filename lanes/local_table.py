"""The committed row of the model on this machine: which weights, how they are served and how they are asked.

Room: file input. Who starts the server, who witnesses it and who admits its answers come in; all read the one row.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lanes.errors import UsageError
from lanes.record import Json

LOCAL_TABLE = Path(__file__).with_name("local_model.toml")
LOCAL_NAME = "local"  # as a target, as a provider of the board's table, and in the name of its column
_TEXTS = ("package", "server", "file", "sha256", "model")
_NUMBERS = {"context_tokens": range(512, 131_073), "threads": range(1, 65), "ready_within_s": range(1, 3601)}
_FIELDS = frozenset({*_TEXTS, *_NUMBERS, "sampling"})
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LocalRow:
    """What is served on this machine.

    Shape: package holds the file of the weights, whose digest is sha256; server is the package that serves them;
    sampling goes into every request and stands in the proof.
    Units: ready_within_s is how long a slow machine may take until the server answers, in seconds.
    """

    package: str
    server: str
    file: str
    sha256: str
    model: str
    context_tokens: int
    threads: int
    ready_within_s: int
    sampling: Mapping[str, Json]

    @property
    def digest(self) -> str:
        """The digest of the weights as it is written in evidence."""
        return f"sha256:{self.sha256}"


def load_local_row(path: Path = LOCAL_TABLE) -> LocalRow:
    """Load and check the row.

    Raises: UsageError that names the field.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # the last for what is nested too deep to be a table
        raise UsageError(f"cannot be read: {error}", where=path.name, code="LOCAL_MODEL") from error
    if document.keys() != _FIELDS:
        odd = ", ".join(sorted(document.keys() ^ _FIELDS))
        message = f"fields missing or unknown: {odd}"
        raise UsageError(message, where=path.name, expected=", ".join(sorted(_FIELDS)), code="LOCAL_MODEL")
    for field, (fits, expected) in {
        **{name: (_is_text(document[name]), "a text") for name in _TEXTS},
        "sha256": (_is_text(document["sha256"]) and bool(_DIGEST.fullmatch(document["sha256"])), "64 hex digits"),
        **{name: (_is_in(document[name], span), _told(span)) for name, span in _NUMBERS.items()},
        "sampling": (isinstance(document["sampling"], dict), "a table of request fields"),
    }.items():
        if not fits:
            message = f"{field} is {document[field]!r:.80}"
            raise UsageError(message, where=path.name, expected=expected, code="LOCAL_MODEL")
    return LocalRow(**document)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_in(value: object, span: range) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in span


def _told(span: range) -> str:
    return f"a number from {span[0]} to {span[-1]}"
