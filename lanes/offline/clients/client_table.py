"""The table of clients and features in the documents, made from the table that the tests are made from.

Room: the test of the documents comes in, and `python -m lanes.offline.clients.client_table`, which writes the page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lanes.offline.clients.agent_bugs import BUGS
from lanes.offline.clients.agent_programs import PROGRAMS
from lanes.offline.clients.features import FEATURES
from lanes.offline.clients.published import CLIENTS, Client

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "mock-clients.md"
HEADINGS = {
    "openai_chat": "OpenAI chat completions",
    "openai_responses": "OpenAI Responses",
    "anthropic": "Anthropic Messages",
    "gemini": "Gemini, Ollama, Bedrock",
    "ollama": "Gemini, Ollama, Bedrock",
    "bedrock": "Gemini, Ollama, Bedrock",
}
YES, NO = "yes", "no"
INTRODUCTION = """\
# Clients that the mock provider is tried with

<!-- made by `python -m lanes.offline.clients.client_table`; not edited by hand -->

Published clients, as they are, against `mock-provider` on loopback. Each cell is one test of
`lanes/offline/clients/test_conformance.py`, which `tox -e offline-clients` runs and CI with it: a script is played, the
client does its task, and what it says, the number of its requests and the verdict of the mock provider are compared.
`yes` is a test that must pass; `no` is a thing that the client itself does not have, and the note says what it does
instead, which is tried too where there is anything to try. A client that is not installed is shown as not run.
"""
PROGRAMS_TEXT = """\
## Agent programs

Whole programs from the registries, started without a person and pointed at the mock provider by their own settings
(`test_agent_programs.py`). Each finds a small Python program whose check fails, runs the check, mends the file and runs
the check again; the file, the check and the journal are compared, never what the program says of itself.
"""
BUGS_TEXT = """\
## Agents with a bug

The same mistakes through the OpenAI clients (chat and Responses) and the Anthropic clients, for Python and for Node
(`test_agent_bugs.py`): the request is refused with status 400 in the provider's own words, no client asks again, the
journal and the verdict name the rule, and the mended request goes on where the play was.
"""


def page() -> str:
    """The whole page."""
    notes: list[str] = []
    parts = [INTRODUCTION, _rows(("feature", "what is tried"), [(one.name, one.says) for one in FEATURES])]
    for heading in dict.fromkeys(HEADINGS.values()):
        clients = [client for client in CLIENTS if HEADINGS[client.dialect] == heading]
        parts.append(f"## {heading}\n\n{_table(clients, notes)}")
    listed = "".join(f"{number}. {note}\n" for number, note in enumerate(notes, 1))
    parts.append(f"## Notes\n\n{listed}")
    parts.append(f"{PROGRAMS_TEXT}\n{_programs()}")
    parts.append(f"{BUGS_TEXT}\n{_bugs()}")
    return "\n".join(parts)


def _table(clients: Sequence[Client], notes: list[str]) -> str:
    head = (
        "",
        *(f"{client.name} {_version(client.package, client.language)} ({client.language})" for client in clients),
    )
    return _rows(head, [(one.name, *(_cell(client, one.name, notes) for client in clients)) for one in FEATURES])


def _heading(client: Client) -> str:
    own = f"{client.name} {_version(client.package, client.language)}"
    if client.name == "ai":  # it reaches each provider through a package of its own
        own = f"ai {_version('ai', 'Node')}, {client.package} {_version(client.package, 'Node')}"
    return f"{own} ({client.language})"


def _cell(client: Client, feature: str, notes: list[str]) -> str:
    lack, note = client.lacks.get(feature), client.notes.get(feature)
    said = lack.why if lack else note
    word = NO if lack and not lack.has_it else YES
    if said is None:
        return word
    if said not in notes:
        notes.append(said)
    return f"{word} ({notes.index(said) + 1})"


def _programs() -> str:
    head = ("program", "format", "mends the file with")
    named = {"openai_chat": "openai_chat", "openai_responses": "openai_responses", "anthropic": "anthropic_messages"}
    return _rows(
        head,
        [
            (f"{one.name} ({one.package} {_version(one.package, one.language)})", named[one.dialect], one.tools)
            for one in PROGRAMS
        ],
    )


def _bugs() -> str:
    return _rows(
        ("mistake", "rule in the journal"), [(bug.name.replace("-", " "), f"`{bug.rule['chat']}`") for bug in BUGS]
    )


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _version(package: str, language: str) -> str:
    """The version that the lock names."""
    if language == "Node":
        lock = json.loads((Path(__file__).parent / "node" / "package-lock.json").read_text("utf-8"))
        return str(lock["packages"][f"node_modules/{package}"]["version"])
    lock_text = (ROOT / "requirements" / "offline-clients.txt").read_text("utf-8")
    found = re.search(rf"^{re.escape(package)}==(\S+)", lock_text, re.MULTILINE)
    if found is None:
        raise LookupError(f"{package} is not in requirements/offline-clients.txt")
    return found[1]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    sys.stderr.write(f"written: {PAGE.relative_to(ROOT)}\n")
