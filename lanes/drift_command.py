"""The command `lanes drift`: what answers look like now, against what recordings and the mock provider say.

Room: the command line comes in and writes what is answered. The report is kept only when live answers were seen: a run
without them, or an outage, knows nothing of drift and takes nothing back.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanes.drift_report import REPORT, compose_report, keep_unjudged, load_report, report_lines
from lanes.errors import UsageError
from lanes.options import build_parser, parse_out, parse_root
from lanes.providers import load_providers

EXIT_BREAKING = 1


def run_drift(arguments: Sequence[str]) -> tuple[str, int]:
    """Compare what there is, keep the report when live answers are among it, and give text and exit code.

    Shape: exit code 1 when a finding in live answers is breaking. What an earlier report found of a provider, or of a
    kind of answers, that this run cannot judge, stands.
    Raises: CassetteError for a recording that cannot be read.
    """
    parser = build_parser(
        "drift", "Hold live and recorded answers against recordings and the mock provider's catalogue.", "lanes drift"
    )
    options = parser.parse_args(list(arguments))
    try:
        from lanes.drift_sources import blocked_providers, compare_all
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the package {error.name} is not installed here",
            where="lanes drift",
            fix="pip install 'five-lanes[lanes]'",
        ) from error
    root = parse_root(options.root)
    bundles = parse_out(root, options.out) / "bundles"
    comparisons = compare_all(root, bundles, load_providers())
    live = [each for each in comparisons if each.source == "live"]
    lines = report_lines(comparisons)
    lines += [
        f"{name}: blocked ({why}), which says nothing of drift" for name, why in blocked_providers(bundles).items()
    ]
    if not live:
        told = f"{REPORT} stays as it is" if (root / REPORT).is_file() else "no report was written"
        lines.append(f"drift: not judged: no live answers lie under {options.out}; {told}")
        return "\n".join([*lines, ""]), 0
    kept = keep_unjudged(load_report(root), comparisons)
    (root / REPORT).parent.mkdir(parents=True, exist_ok=True)
    (root / REPORT).write_text(compose_report(kept), encoding="utf-8")
    breaking = sum(len(each.breaking) for each in live)
    older = sum(len(each.breaking) for each in kept if each.source == "live") - breaking
    lines += (
        [f"drift: {older} breaking findings of earlier runs stand, for this one could not judge them"] if older else []
    )
    lines.append(f"drift: {breaking} breaking findings in live answers; written to {REPORT}")
    return "\n".join([*lines, ""]), EXIT_BREAKING if breaking else 0
