"""`python -m benchmarks [--quick] [log] [loop] [mock]`: print every ratio of one run."""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks.timing import Row, table

SUBJECTS = ("log", "loop", "mock")


def main() -> int:
    """Measure the named subjects, or all of them, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subject", nargs="*", choices=(*SUBJECTS, []), help="what to measure; everything by default")
    parser.add_argument("--quick", action="store_true", help="leave out the large sizes")
    options = parser.parse_args()
    rows: list[Row] = []
    for subject in options.subject or SUBJECTS:
        rows += importlib.import_module(f"benchmarks.{subject}").measure(quick=options.quick)
    sys.stdout.write(table(rows) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
