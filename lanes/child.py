"""The program in a child process with a scripted model inside: `python -m lanes.child SPECIFICATION`.

Room: only the snapshot channel starts it. It calls the program's own entry with a channel in place of the network, and
leaves what its witness saw in the spool; a note carries the token of the item it was started for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import main as harness_main
from lanes.spool import read_specification, write_document
from lanes.witness import append_notes, item_places, scripted_notes
from mock_provider import Mock, build_script, load_script, transport

_FIELDS = ("argv", "content", "folder", "name", "notes", "requests", "root", "script", "token", "verdict")


def main(arguments: Sequence[str]) -> int:
    """Run the program as the specification says and return its exit code."""
    specification = read_specification(arguments, "lanes.child", _FIELDS)
    content = specification["content"]
    script = load_script(specification["script"]) if content is None else build_script(content, specification["name"])
    mock = Mock(script, root=specification["root"], journal_path=Path(specification["requests"]))
    try:
        return harness_main(specification["argv"], transport=transport(mock))
    finally:
        mock.close()
        entries = [entry.to_json() for entry in mock.journal.entries]
        notes = scripted_notes(entries, "scripted", item_places(Path(specification["folder"])))
        append_notes(Path(specification["notes"]), notes, specification["token"])
        verdict = mock.verify()
        write_document(
            Path(specification["verdict"]),
            {
                "ok": verdict.ok,
                "text": str(verdict),
                "script": verdict.script,
                "used": verdict.used,
                "left": len(verdict.left),
                "unmatched": len(verdict.unmatched) + len(verdict.invalid),
            },
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
