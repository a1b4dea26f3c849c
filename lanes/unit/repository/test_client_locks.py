"""The published clients are pinned by hash or integrity, without an address, and the tests ask for just them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOCKS = ROOT / "requirements" / "clients"


@pytest.mark.parametrize("folder", [LOCKS, LOCKS / "acpx"], ids=["clients", "acpx"])
def test_every_node_package_is_pinned_by_integrity_and_no_line_holds_an_address(folder: Path) -> None:
    text = (folder / "package-lock.json").read_text("utf-8")
    packages = json.loads(text)["packages"]
    asked = json.loads((folder / "package.json").read_text("utf-8"))["devDependencies"]

    assert [name for name, entry in packages.items() if name and not entry["integrity"].startswith("sha512-")] == []
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert re.findall(r"https?://|file:|git\+", text + (folder / ".npmrc").read_text("utf-8")) == []


def test_each_python_client_is_one_version_pinned_by_hash() -> None:
    locks = {path.stem: path.read_text("utf-8") for path in LOCKS.glob("python-*.txt")}

    one = re.compile(r"([\w-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}\n")
    pins = {name: one.fullmatch(text) for name, text in locks.items()}
    assert {name: pin and f"python-{pin[2]}" for name, pin in pins.items()} == {name: name for name in locks}
    foreign = (ROOT / "lanes/offline/clients/protocol/foreign.py").read_text("utf-8")
    assert set(re.findall(r'HOME / "(python-[^"]+)"', foreign)) == set(locks)
