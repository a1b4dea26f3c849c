"""Claims of a test about the requests that came, in the words of a script's `expect`; a failure shows the journal.

Room: the control object comes in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mock_provider.asked import Asked
from mock_provider.caller import read_caller
from mock_provider.deciding import Decider, Request
from mock_provider.errors import ScriptError, UsageError, VerdictError
from mock_provider.expect import Expect, compare
from mock_provider.expect_read import read_expect
from mock_provider.explaining import with_key
from mock_provider.journal import Entry, Journal
from mock_provider.json_values import Json
from mock_provider.kept import Kept
from mock_provider.play import Play
from mock_provider.redaction import Redactor
from mock_provider.script_fields import Findings
from mock_provider.script_source import from_plain
from mock_provider.steps import Script


def check_requests(journal: Journal, count: int) -> Sequence[Entry]:
    """See that so many requests came. Shape: their entries. Raises: VerdictError with the journal."""
    entries = journal.entries
    if len(entries) != count:
        wanted = "1 request" if count == 1 else f"{count} requests"
        raise VerdictError(f"expected {wanted}, {len(entries)} came [JOURNAL]\njournal:\n{_indented(journal)}")
    return entries


def check_request(journal: Journal, script: Script, at: int, conditions: Mapping[str, Json]) -> Entry:
    """See that a request is as the test expects. Shape: its entry; at counts from 0, from the end when negative.

    Limits: a request is judged as it was kept, without its secrets.
    Raises: VerdictError with the differences and the journal; UsageError for conditions that cannot be read.
    """
    expect = _read(conditions)
    entries = journal.entries
    if not -len(entries) <= at < len(entries):
        raise VerdictError(f"request {at} was asked for, {len(entries)} came [JOURNAL]\njournal:\n{_indented(journal)}")
    entry = entries[at]
    asked = _asked(entry, script)
    if asked is None:
        told = entry.problem or "no step could answer it"
        what = f"request {entry.number} cannot be compared: {told} [JOURNAL]"
        raise VerdictError(f"{what}\njournal:\n{_indented(journal)}")
    differences = compare(expect, asked).differences
    if differences:
        listed = "\n".join(f"  {difference}" for difference in differences)
        what = f"request {entry.number} is not as the test expects [JOURNAL]"
        raise VerdictError(f"{what}\n{listed}\njournal:\n{_indented(journal)}")
    return entry


def _read(conditions: Mapping[str, Json]) -> Expect:
    findings = Findings("the test")
    expect = read_expect(from_plain(dict(conditions), "the test"), "expect", findings)
    if findings.problems:
        raise UsageError(ScriptError(findings.problems).what, where="check_request")
    return expect


def _asked(entry: Entry, script: Script) -> Asked | None:
    """The request of an entry, read again; None for one that cannot be."""
    headers = with_key(entry.headers, script, entry.dialect)
    caller = read_caller(entry.method, entry.path, headers, script)
    body = entry.body
    size = len(json.dumps(body))
    checked = Decider(Play(script), Kept()).check(Request(caller, body, None, Redactor(), size))
    return checked if isinstance(checked, Asked) else None


def _indented(journal: Journal) -> str:
    return "\n".join(f"  {line}" for line in journal.text().split("\n"))
