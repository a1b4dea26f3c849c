"""`lanes import`: results of another runner become a bundle of a lane, as evidence that no guard of ours stood around.

Room: `lanes.cli` comes in. It reads files and writes one bundle; what they are worth is decided in reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.board_commands import Answer
from lanes.bundle import Bundle, BundleWriter, bundle_folder
from lanes.errors import EvidenceError, UsageError
from lanes.options import build_parser, parse_out, parse_root
from lanes.policy import LANES, lane_policy
from lanes.record import digest_bytes
from lanes.subject import current_subject
from reports.junit_input import read_junit
from reports.output import claims_of
from reports.render.characters import as_line
from reports.sidecar import Sidecar, attach, read_journal, read_sidecar

KEYLESS = tuple(name for name, policy in LANES.items() if policy.keyless)


def import_results(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Read a JUnit file, and what lies beside it, into the evidence of a lane."""
    parser = build_parser(
        "import",
        "Take a JUnit file of another runner as evidence of a lane; it never enters the live column.",
        "lanes import junit.xml --lane offline --sidecar evidence.json --journal requests.jsonl",
    )
    parser.add_argument("junit", metavar="JUNIT", help="the JUnit file; a property called claim names a claim")
    parser.add_argument("--lane", required=True, metavar="LANE", help=f"one of {', '.join(KEYLESS)}")
    parser.add_argument("--sidecar", metavar="FILE", help="which items made which requests, as JSON")
    parser.add_argument("--journal", metavar="FILE", help="what mock-provider run --journal wrote: the witness")
    options = parser.parse_args(list(arguments))
    policy = lane_policy(options.lane)
    if not policy.keyless:
        message = f"a file from outside cannot enter the live column of lane {policy.name!r}"
        raise UsageError(message, where="lanes import", expected=f"one of {', '.join(KEYLESS)}")
    if options.journal and not options.sidecar:
        fix = "give the sidecar that says which item made which request: --sidecar FILE"
        raise UsageError("a journal alone says of no item that it asked", where="lanes import", fix=fix)
    root = parse_root(options.root)
    out = parse_out(root, options.out)
    subject = current_subject(root)
    data = _read(options.junit)
    bundle = read_junit(data, lane=policy.name, subject=subject, name=Path(options.junit).name)
    _refuse_problems(bundle)
    notes: tuple[str, ...] = ()
    if options.sidecar:
        sidecar = read_sidecar(_read(options.sidecar), where=options.sidecar)
        _check_commit(sidecar, subject.commit)
        journal = read_journal(_read(options.journal), where=options.journal) if options.journal else {}
        bundle, notes = attach(bundle, sidecar, journal)
    claims = claims_of(root)
    for record in bundle.records:
        claims.check_ids(record.claim_ids, where=record.node_id)
    folder = bundle_folder(out, f"{policy.name}-junit-{digest_bytes(data)[7:19]}")
    with BundleWriter(folder, bundle.header) as writer:
        for record in bundle.records:
            writer.write(record)
    return Answer(_words(bundle, policy.name), complaint="".join(f"{as_line(note)}\n" for note in notes))


def _words(bundle: Bundle, lane: str) -> str:
    counts = Counter(record.verdict for record in bundle.records)
    told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items()))
    answers = sum(len(record.answers) for record in bundle.records)
    return (
        f"{len(bundle.records)} results for lane {lane!r}: {told or 'none'}; answers that a witness saw: {answers}\n"
        "no guard of ours stood around them, and the board says so; fold them: lanes report\n"
    )


def _refuse_problems(bundle: Bundle) -> None:
    for problem in bundle.problems:
        raise EvidenceError(
            as_line(problem.text),
            where=problem.where,
            expected="a JUnit file as its runner wrote it; nothing was taken in",
            code="JUNIT",
        )


def _check_commit(sidecar: Sidecar, commit: str) -> None:
    if sidecar.commit and sidecar.commit != commit:
        raise UsageError(
            f"it is about commit {as_line(sidecar.commit)[:40]!r}, this tree is {commit or 'no commit'!r}",
            where=sidecar.where,
            expected="evidence about the tree at hand",
            code="SIDECAR",
        )


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=name, expected="a file") from None
