"""One line a request on standard error, for a person or for a program.

Room: writes to one stream; the command makes the log, the engine tells it what is over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Literal, TypeAlias

from mock_provider.journal import Entry
from mock_provider.json_values import JsonObject

Form: TypeAlias = Literal["text", "json"]
FORMS: tuple[Form, ...] = ("text", "json")


class RequestLog:
    """The log of one server.

    Shape: write takes whole lines. Requests stand in it without their bodies, which are in the journal, and without
    secrets: an entry holds none.
    """

    def __init__(self, form: Form, write: Callable[[str], object]) -> None:
        self._form = form
        self._write = write
        self._lock = threading.Lock()

    def request(self, entry: Entry) -> None:
        """A request whose answer is over."""
        if self._form == "text":
            self._say(str(entry))
            return
        fields = entry.to_json()
        left_out = ("body", "headers", "extra_fields")
        self._say_json({"event": "request", **{key: value for key, value in fields.items() if key not in left_out}})

    def event(self, name: str, text: str, **more: str) -> None:
        """Something that is no request: a script loaded anew, a seed."""
        if self._form == "text":
            self._say(f"mock-provider: {text}")
        else:
            self._say_json({"event": name, "text": text, **more})

    def _say(self, line: str) -> None:
        with self._lock:
            self._write(f"{line}\n")

    def _say_json(self, fields: JsonObject) -> None:
        self._say(json.dumps(fields))
