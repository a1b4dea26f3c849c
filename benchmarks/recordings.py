"""What loading a recording costs, against the recorder's own library and its usual form of the same exchanges."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import yaml
from vcr.cassette import Cassette
from vcr.record_mode import RecordMode
from vcr.serializers import yamlserializer

from benchmarks.timing import Row, compare
from lanes.cassette import CassettePlayer, load_cassette
from lanes.recording import JsonForm

EXCHANGES = 1000
_MODEL = Path(__file__).parents[1] / "cassettes" / "openai_chat" / "fix-test.yaml"


def measure(*, sizes: str) -> list[Row]:
    """Load a cassette of 1,000 exchanges, and load one with every request digested as a whole replay does.

    Shape: the floor is vcrpy loading the same exchanges from the YAML that it writes by default, with libyaml in C.
    Units: 100 exchanges when sizes is quick.
    """
    count = 100 if sizes == "quick" else EXCHANGES
    document = _many(count)
    with tempfile.TemporaryDirectory() as folder:
        ours, usual = Path(folder) / "openai_chat" / "ours.yaml", Path(folder) / "usual.yaml"
        ours.parent.mkdir()
        ours.write_text(JsonForm.serialize(document), encoding="utf-8")
        usual.write_text(yamlserializer.serialize(document), encoding="utf-8")
        note = f"{ours.stat().st_size / 1e6:.1f} MB, as YAML {usual.stat().st_size / 1e6:.1f} MB"

        def load() -> None:
            CassettePlayer(ours)

        def load_and_digest() -> None:
            for interaction in load_cassette(ours).interactions:
                assert interaction.digest

        def load_usual() -> None:
            found = Cassette.load(path=str(usual), record_mode=RecordMode.NONE)
            assert len(found) == count

        name, floor = f"{count:,} exchanges", "vcrpy's own YAML"
        return [
            compare(f"recordings: load {name}", floor, load, load_usual, rounds=3, note=note),
            compare(f"recordings: load and digest {name}", floor, load_and_digest, load_usual, rounds=3),
        ]


def _many(count: int) -> dict[str, Any]:
    """The exchanges of a committed cassette over and over, each with an id of its own."""
    text = _MODEL.read_text(encoding="utf-8")
    recorded = json.loads(text) if text.startswith("{") else yaml.load(text, Loader=yaml.CSafeLoader)
    exchanges: list[Any] = []
    for number in range(count):
        exchange = copy.deepcopy(recorded["interactions"][number % len(recorded["interactions"])])
        exchange["response"]["origin"]["provider_id"] = f"answer-{number}"
        exchanges.append(exchange)
    return {"version": 1, "interactions": exchanges}
