"""The errors of the mock provider, told apart by who has to act.

Anyone may come in; this room imports nothing of ours.

    MockError          code, where, expected, fix, exit_code
    ├── UsageError     the person: arguments, names, files they named                       exit 2
    ├── ScriptError    the script: every problem found, each with its place                 exit 2
    ├── RecordingError the recording: nothing in it, or a secret that cannot be removed     exit 1
    ├── OutputError    the disk: what was to be said on standard output could not be        exit 1
    └── VerdictError   the play did not go as scripted: left over, unmatched, invalid       exit 3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mock_provider.values import value


class MockError(Exception):
    """An error with a place, an expectation and a way to mend it.

    Shape: str(error) is the whole message for a person, `where: what [CODE]`, then `expected:` and `fix:` lines.
    """

    code: ClassVar[str] = "ERROR"
    exit_code: ClassVar[int] = 1

    def __init__(
        self, what: str, *, where: str = "", expected: str = "", fix: str = "", code: str | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.fix = fix
        self.error_code = code or self.code

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return "\n".join(
            (
                f"{head} [{self.error_code}]",
                *((f"  expected: {self.expected}",) if self.expected else ()),
                *((f"  fix: {self.fix}",) if self.fix else ()),
            )
        )


class UsageError(MockError):
    """The person asked for something that cannot be done as asked."""

    code = "USAGE"
    exit_code = 2


class RecordingError(MockError):
    """A recording that cannot be kept; nothing was written."""

    code = "RECORDING"

    def at(self, where: str) -> RecordingError:
        """The same error with its place."""
        return RecordingError(self.what, where=where, expected=self.expected, fix=self.fix, code=self.error_code)


class OutputError(MockError):
    """Standard output takes nothing more, and not because its reader has gone."""

    code = "OUTPUT"


class VerdictError(MockError):
    """Requests and script disagree; the text is the verdict's own."""

    code = "VERDICT"
    exit_code = 3

    def __str__(self) -> str:
        return self.what


@value
class Problem:
    """One thing wrong in a script.

    Units: line and column count from 1; both are 0 when the script was built in Python and has no text.
    """

    file: str
    line: int
    column: int
    field: str
    what: str
    code: str
    expected: str = ""
    fix: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        where = f"{place}, {self.field}" if self.field else place
        return "\n".join(
            (
                f"{where}: {self.what} [{self.code}]",
                *((f"  expected: {self.expected}",) if self.expected else ()),
                *((f"  fix: {self.fix}",) if self.fix else ()),
            )
        )


class ScriptError(MockError):
    """A script that cannot be played; holds every problem, in the order of the text."""

    code = "SCRIPT"
    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
        super().__init__("\n".join(map(str, self.problems)))

    def __str__(self) -> str:
        return self.what
