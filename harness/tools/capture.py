"""Keep the head and the tail of a command's output in memory, and all of a long one in a file.

Room: the shell tool comes in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from harness.tools.plain_text import decode_output, whole_characters
from harness.tools.redaction import KeyFilter

HEAD_BYTES = 20_000  # what is shown of a long output: about 5,000 tokens at its start,
TAIL_BYTES = 10_000  # and half of that at its end, where errors stand
MAX_SPILL_BYTES = 256 << 20  # of one call: a runaway command must not fill the disk


@dataclass(slots=True)
class Capture:
    """Takes the bytes of one output as they come.

    Shape: up to HEAD_BYTES + TAIL_BYTES are kept whole; past that the file at spill gets everything. What cleanse takes
    out is neither kept, counted nor spilled.
    Raises: nothing; a spill that cannot be written is said in the text.
    """

    spill: Path
    cleanse: KeyFilter
    size_bytes: int = 0
    _kept: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)
    _file: BinaryIO | None = None
    _spill_problem: str = ""

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self._take(self.cleanse.feed(data))

    def _take(self, data: bytes) -> None:
        before = self.size_bytes
        self.size_bytes += len(data)
        if self.size_bytes <= HEAD_BYTES + TAIL_BYTES:
            self._kept += data
            return
        if before <= HEAD_BYTES + TAIL_BYTES:
            self._open()
            self._write(bytes(self._kept))
            self._tail = self._kept[HEAD_BYTES:]
            del self._kept[HEAD_BYTES:]
            room = HEAD_BYTES - len(self._kept)
            self._kept += data[:room]
            self._tail += data[room:]
        else:
            self._tail += data
        del self._tail[:-TAIL_BYTES]
        self._write(data)

    def _open(self) -> None:
        try:
            self.spill.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.spill, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            self._file = os.fdopen(descriptor, "wb")
        except OSError as error:
            self._spill_problem = f"could not be kept: {(error.strerror or 'failed').lower()}"

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            if self._file.tell() + len(data) > MAX_SPILL_BYTES:
                self._spill_problem = f"was kept up to {MAX_SPILL_BYTES} bytes"
                self._drop_file()
                return
            self._file.write(data)
        except OSError as error:
            self._spill_problem = f"could not be kept: {(error.strerror or 'failed').lower()}"
            self._drop_file()

    def _drop_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._spill_problem = f"could not be kept: {(error.strerror or 'failed').lower()}"

    def finish(self, shown_path: str) -> tuple[str, tuple[str, ...]]:
        """The text to show, and the notes that belong below it."""
        self._take(self.cleanse.end())
        self._drop_file()
        notes: list[str] = []
        if self.size_bytes <= HEAD_BYTES + TAIL_BYTES:
            text, is_plain = decode_output(bytes(self._kept))
        else:
            head, tail = whole_characters(bytes(self._kept), bytes(self._tail))
            (first, first_plain), (last, last_plain) = decode_output(head), decode_output(tail)
            cut = self.size_bytes - len(head) - len(tail)
            text = f"{first}\n[... {cut} bytes left out ...]\n{last}"
            is_plain = first_plain and last_plain
            whole = (
                f"the whole output {self._spill_problem}" if self._spill_problem else f"all of it is in {shown_path}"
            )
            notes.append(f"output of {self.size_bytes} bytes, cut; {whole}")
        if not is_plain:
            notes.append("the output is not plain text: bytes that are not text are shown as \\xNN")
        return text, tuple(notes)
