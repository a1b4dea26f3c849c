"""The verdict on a play: was everything scripted used, and nothing else asked?

Room: pure; the engine makes it, everybody reads it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Shape: ok means that problems is empty; str() is the text for a person. seeds are those of faults by lot."""

    script: str
    used: int
    left: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    seeds: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that was not as scripted."""
        return (*self.unmatched, *self.invalid, *self.gates, *self.left)

    @property
    def ok(self) -> bool:
        """Whether the play went as scripted."""
        return not self.problems

    def __str__(self) -> str:
        counts = (
            f"steps used {self.used}, left over {len(self.left)}, "
            f"unmatched {len(self.unmatched)}, invalid {len(self.invalid)}"
        )
        if self.seeds:
            counts += f"; {self.seeds}"
        if self.ok:
            return f"{self.script}: as scripted: {counts}"
        lines = [f"{self.script}: not as scripted: {counts} [VERDICT]"]
        lines += [f"  - {problem.replace(chr(10), chr(10) + '    ')}" for problem in self.problems]
        return "\n".join(lines)
