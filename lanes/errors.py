"""The errors of the lanes, told apart by who has to act.

Anyone may come in; this room imports nothing of ours, and it is loaded at interpreter start by the guard.

    LanesError                   code, where, expected, fix, exit_code
    ├── UsageError               the person: arguments, configuration, files they named     exit 2
    │   └── ClaimsError          the claims file                         CLAIMS             exit 2
    ├── ScenarioError            a scenario or its expected output       SCENARIO
    ├── ExpectedError            output differs from what was accepted   EXPECTED
    ├── CassetteError            a recording cannot be used as asked     CASSETTE
    ├── LocalModelError          the model on this machine is not there  LOCAL_MODEL        exit 2
    ├── EvidenceError            a record or bundle broke a rule         EVIDENCE           exit 3
    ├── GuardError               the lane does not have what was asked   GUARD              exit 3
    └── InternalError            us                                      INTERNAL
    GuardRefused                 RuntimeError: one try to reach outside the lane; code GUARD_NETWORK or GUARD_IMPORT
"""

from __future__ import annotations

TYPE_CHECKING = False  # the typing module costs more to load than the whole guard
if TYPE_CHECKING:
    from typing import ClassVar


def compose_message(what: str, code: str, *, where: str = "", expected: str = "", fix: str = "") -> str:
    """Compose a message for a person: `where: what [CODE]`, then `expected:` and `fix:` when they say something."""
    lines = [f"{where}: {what} [{code}]" if where else f"{what} [{code}]"]
    if expected:
        lines.append(f"  expected: {expected}")
    if fix:
        lines.append(f"  fix: {fix}")
    return "\n".join(lines)


class LanesError(Exception):
    """An error with a place, an expectation and a way to mend it.

    Shape: str(error) is the whole message for a person.
    """

    code: ClassVar[str] = "ERROR"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        fix: str = "",
        code: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.fix = fix
        self.error_code = code or self.code

    def __str__(self) -> str:
        return compose_message(self.what, self.error_code, where=self.where, expected=self.expected, fix=self.fix)


class UsageError(LanesError):
    """The person asked for something that cannot be done as asked.

    Shape: where several mistakes were found, parts are all of them, and the message is theirs, one after the other.
    """

    code = "USAGE"
    exit_code = 2
    parts: tuple[UsageError, ...] = ()

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.parts) or super().__str__()


class ClaimsError(UsageError):
    """The claims file says something it may not say, or a test names a claim that it does not hold."""

    code = "CLAIMS"


class ScenarioError(LanesError):
    """A scenario file cannot be read or run as written."""

    code = "SCENARIO"


class ExpectedError(LanesError):
    """Output differs from the output a person accepted."""

    code = "EXPECTED"


class CassetteError(LanesError):
    """A recording cannot be used as asked: unreadable, not matched, or not used up."""

    code = "CASSETTE"


class LocalModelError(LanesError):
    """The model on this machine cannot be had: not installed, another one, or a server that does not get ready."""

    code = "LOCAL_MODEL"
    exit_code = 2


class EvidenceError(LanesError):
    """A record or a bundle broke a rule of evidence."""

    code = "EVIDENCE"
    exit_code = 3


class GuardError(LanesError):
    """The lane does not have what was asked of it, or its guard was not shown to work."""

    code = "GUARD"
    exit_code = 3


class InternalError(LanesError):
    """A rule of our own was broken by our own code."""

    code = "INTERNAL"


class GuardRefused(RuntimeError):  # noqa: N818 - it is what the guard did, and it is read in tracebacks of any client
    """One try to reach outside the lane, refused before it left the process.

    Shape: not an OSError on purpose: clients turn OSError into their own error and retry it in silence.
    """

    def __init__(self, what: str, *, code: str, fix: str, where: str = "") -> None:
        super().__init__(compose_message(what, code, where=where, fix=fix))
        self.what = what
        self.error_code = code
