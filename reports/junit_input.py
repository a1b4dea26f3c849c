"""JUnit files of other languages and runners, read as evidence that nobody of ours watched.

Room: pure. Output and tests come in. What was skipped stays not run, and no such file can enter a live column.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from lanes.bundle import Bundle, BundleHeader, BundleProblem, BundleTrailer, ExpectedItem
from lanes.record import Attempt, Record, Subject, Verdict, digest_bytes
from reports.soundness import FOREIGN

MAX_BYTES = 64 * 1024 * 1024  # the largest file of a CI service met so far was 30 MB; more is a mistake or an attack
EXPECTED_FAILURE = "pytest.xfail"


def read_junit(data: bytes, *, lane: str, subject: Subject, name: str) -> Bundle:
    """One JUnit document as the bundle of a lane.

    Shape: the caller says what subject the run was about; a case names its claims by properties called "claim".
    Limits: MAX_BYTES, and no document type, because entities could make a small file huge. A file that cannot be
    read is a bundle with a problem, never an absent one.
    """
    header = BundleHeader(lane=lane, run_id=f"junit-{digest_bytes(data)[7:19]}", subject=subject, marker=FOREIGN)
    if len(data) > MAX_BYTES:
        return _unreadable(header, name, f"{len(data)} bytes, at most {MAX_BYTES} are read")
    if data.lstrip()[:1] in {b"{", b"["}:
        return _unreadable(header, name, "JSON and no XML: JUnit is read, CTRF is written only")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return _unreadable(header, name, "a document type is not read")
    try:
        root = Xml.fromstring(data)  # noqa: S314 - size is limited and a document type was refused above
    except Xml.ParseError as error:
        return _unreadable(header, name, f"no XML: {error}")
    if root.tag not in {"testsuites", "testsuite"}:
        return _unreadable(header, name, f"the root is <{root.tag}>, expected <testsuites> or <testsuite>")
    records = tuple(_record(header, case) for case in root.iter("testcase"))
    problems = tuple(_miscounts(root, name))
    header = BundleHeader(
        lane=lane,
        run_id=header.run_id,
        subject=subject,
        marker=FOREIGN,
        expected=tuple(ExpectedItem(record.node_id, record.claim_ids) for record in records),
    )
    trailer = BundleTrailer(run_id=header.run_id, count=len(records), digest="")
    return Bundle(header, records, trailer, problems, name, digest_bytes(lane.encode("utf-8", "replace") + data))


def _unreadable(header: BundleHeader, name: str, text: str) -> Bundle:
    return Bundle(header, (), None, (BundleProblem("unreadable", name, text),), name, digest_bytes(name.encode()))


def _record(header: BundleHeader, case: Xml.Element) -> Record:
    verdict, code, text, failure = _outcome(case)
    classname = case.get("classname", "")
    name = case.get("name", "")
    duration_ms = _milliseconds(case.get("time", "0"))
    attempts = () if verdict == "not run" else (Attempt(n=1, verdict=verdict, duration_ms=duration_ms),)
    return Record(
        lane=header.lane,
        node_id=f"{classname}::{name}" if classname else name,
        run_id=header.run_id,
        verdict=verdict,
        subject=header.subject,
        claim_ids=tuple(each.get("value", "") for each in case.iter("property") if each.get("name") == "claim"),
        reason_code=code,
        reason_text=text,
        attempts=attempts,
        duration_ms=duration_ms,
        failure=failure,
        captured_stdout="".join(each.text or "" for each in case.iter("system-out")),
        captured_stderr="".join(each.text or "" for each in case.iter("system-err")),
    )


def _outcome(case: Xml.Element) -> tuple[Verdict, str | None, str, str | None]:
    for tag in ("failure", "error"):
        if (found := case.find(tag)) is not None:
            return "failed", None, "", found.text or found.get("message", tag)
    if (skipped := case.find("skipped")) is not None:
        message = skipped.get("message", "") or (skipped.text or "").strip()
        if skipped.get("type") == EXPECTED_FAILURE:
            return "failed", "known-failure", message, message
        return "not run", "unclassified-skip", message, None
    if case.get("status", "run").lower() in {"notrun", "disabled", "skipped"}:
        return "not run", "unclassified-skip", case.get("status", ""), None
    return "passed", None, "", None


def _miscounts(root: Xml.Element, name: str) -> Iterator[BundleProblem]:
    for suite in root.iter("testsuite"):
        if suite.find("testsuite") is not None:
            continue
        told, found = suite.get("tests"), len(suite.findall("testcase"))
        if told is not None and told != str(found):
            text = f"suite {suite.get('name', '')!r} counts {told} tests and holds {found}"
            yield BundleProblem("damaged", name, text)


def _milliseconds(seconds: str) -> int:
    try:
        return max(0, round(float(seconds.replace(",", "")) * 1000))
    except (ValueError, OverflowError):  # a time that is no number says nothing about the verdict
        return 0
