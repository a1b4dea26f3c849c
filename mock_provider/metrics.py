"""What a monitoring system wants to know: counters of requests and the state of the play.

Room: threads; the engine counts, the control routes read.
Source: the Prometheus text exposition format, version 0.0.4.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from mock_provider.gates import Gate
from mock_provider.journal import Entry
from mock_provider.verdict import Verdict

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "mock_provider"


class Tally:
    """How many answers of one kind were sent whole. Shape: whoever counts sees to it that nobody else does."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Metrics:
    """Counters that only grow, whatever becomes of the journal; one lock for all of them.

    Shape: tallies are of answers in the usual way, which the engine counts under its own lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, int, str], int] = {}
        self._tallies: dict[tuple[str, int, str], Tally] = {}
        self._pieces = 0
        self._finished = 0

    def finished(self, entry: Entry) -> None:
        """Count a request whose answer is over."""
        end = entry.end
        key = (entry.dialect, entry.status or 0, end if end == "complete" else _end_word(end))
        with self._lock:
            self._requests[key] = self._requests.get(key, 0) + 1
            self._pieces += entry.pieces_sent
            self._finished += 1

    def tally(self, dialect: str, status: int) -> Tally:
        """The tally of whole answers of a dialect with a status, each of one piece."""
        with self._lock:
            return self._tallies.setdefault((dialect, status, "complete"), Tally())

    def text(self, verdict: Verdict, gates: Iterable[Gate], *, arrived: int, dropped: int) -> str:
        """Everything in the text form. Shape: arrived counts all requests, dropped those that the journal forgot."""
        with self._lock:
            counted, pieces, finished = dict(self._requests), self._pieces, self._finished
            for key, tally in self._tallies.items():
                count = tally.count
                if count:
                    counted[key] = counted.get(key, 0) + count
                pieces += count
                finished += count
        requests = sorted(counted.items())
        lines = [
            *_family("requests_total", "counter", "Requests whose answer is over."),
            *(
                _sample("requests_total", {"dialect": dialect, "status": str(status or ""), "end": end}, count)
                for (dialect, status, end), count in requests
            ),
            *_single("requests_open", "gauge", "Requests whose answer is under way.", max(arrived - finished, 0)),
            *_single("pieces_sent_total", "counter", "Pieces of answers sent.", pieces),
            *_single("steps_used", "gauge", "Requests that got a step.", verdict.used),
            *_single("steps_left", "gauge", "Steps that are still to be taken.", len(verdict.left)),
            *_single("requests_unmatched", "gauge", "Requests that no step accepted.", len(verdict.unmatched)),
            *_single("requests_invalid", "gauge", "Requests that the provider would refuse.", len(verdict.invalid)),
            *_single("journal_dropped", "gauge", "Requests that the journal no longer has.", dropped),
            *_family("gate_waiting", "gauge", "Answers that wait at a gate."),
            *(_sample("gate_waiting", {"gate": gate.name}, gate.waiting) for gate in gates),
        ]
        return "\n".join(lines) + "\n"


def _end_word(end: str) -> str:
    """The end without its numbers and names, so that there are few of them."""
    if end == "complete":
        return end
    if end.startswith("client gone"):
        return "client gone"
    return "gate never opened" if end.startswith("gate ") else end


def _family(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {PREFIX}_{name} {help_text}", f"# TYPE {PREFIX}_{name} {kind}"


def _sample(name: str, labels: Mapping[str, str], value: int) -> str:
    spelled = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{PREFIX}_{name}{{{spelled}}} {value}"


def _single(name: str, kind: str, help_text: str, value: int) -> tuple[str, str, str]:
    return (*_family(name, kind, help_text), f"{PREFIX}_{name} {value}")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
