"""The page about published clients says what the tests try, cell by cell."""

from __future__ import annotations

import json
import re
from pathlib import Path

from lanes.offline.clients import client_table
from lanes.offline.clients.client_table import PAGE, page
from lanes.offline.clients.features import FEATURES
from lanes.offline.clients.published import CLIENTS

NAMES = {feature.name for feature in FEATURES}


def test_the_page_is_what_the_command_writes() -> None:
    assert PAGE.read_text("utf-8") == page()


def test_no_cell_is_empty_and_each_no_has_a_note() -> None:
    rows = re.findall(rf"^\| (?:{'|'.join(map(re.escape, NAMES))}) \| (.*) \|$", page(), re.MULTILINE)
    cells = [cell for row in rows for cell in row.split(" | ") if row not in {feature.says for feature in FEATURES}]

    assert len(cells) == len(CLIENTS) * len(FEATURES)
    assert {cell for cell in cells if not re.fullmatch(r"yes|(yes|no) \(\d+\)", cell)} == set()


def test_each_lack_and_each_note_is_about_a_feature_of_the_table_and_says_why() -> None:
    unknown = {(client.id, name) for client in CLIENTS for name in (*client.lacks, *client.notes) if name not in NAMES}
    silent = {(client.id, name) for client in CLIENTS for name, lack in client.lacks.items() if not lack.why}

    assert (unknown, silent) == (set(), set())


def test_each_client_has_a_name_of_its_own_in_the_tests() -> None:
    assert len({client.id for client in CLIENTS}) == len(CLIENTS)


def test_every_package_for_node_is_pinned_by_integrity_and_by_no_address() -> None:
    folder = Path(client_table.__file__).parent / "node"
    packages = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    asked = json.loads((folder / "package.json").read_text("utf-8"))["dependencies"]
    pinned = {name: entry for name, entry in packages.items() if name}

    assert packages[""]["dependencies"] == asked
    assert [name for name, entry in pinned.items() if not entry["integrity"].startswith("sha512-")] == []
    assert [name for name, entry in pinned.items() if "resolved" in entry] == []
