"""What the environment holds as a secret is in no file of a session, and goes to no model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lanes.unit.assemble.place import Place, ask
from lanes.unit.surfaces.scripted import Reply, refuse, say, use

KEY = "canary-service-key-0417"
TOKEN = "canary-other-token-5512"
ENVIRON = {"OPENAI_API_KEY": KEY, "ACME_TOKEN": TOKEN}


@pytest.fixture
def place(tmp_path: Any) -> Place:
    return Place(tmp_path)


def written(place: Place) -> str:
    """Everything that stands under the session root, and what the model was asked with."""
    kept = [path.read_text("utf-8") for path in sorted(place.sessions.rglob("*")) if path.is_file()]
    return "".join(kept) + json.dumps(place.script.requests)


@pytest.mark.parametrize("secret", [KEY, TOKEN], ids=["the-key-in-use", "another-variable"])
async def test_S12_a_secret_of_the_environment_is_written_down_by_nobody_who_says_it(place: Place, secret: str) -> None:
    (place.work / "note.txt").write_text(f"it is {secret}\n", "utf-8")
    printing = f"for n in $(seq 2000); do printf '%s,' {secret[:8]}''{secret[8:]}; done"
    assembled = await place.make(
        use("read_file", {"path": "note.txt"}, call_id="c1"),
        use("shell", {"command": printing}, call_id="c2"),
        use("list_files", {"path": secret}, call_id="c3"),
        Reply((*say(f"it is {secret[:5]}").pieces[:1], *say(secret[5:]).pieces)),
        refuse(400, f"no such key {secret}"),
        settings=place.settings(ENVIRON),
    )

    said = await ask(assembled, f"say {secret}")
    await ask(assembled, "again")
    await assembled.close()

    text = written(place)
    assert (said, secret in text) == ("it is [key removed]", False)
    assert text.count("[key removed]") > 2000


async def test_an_ordinary_value_of_such_a_variable_stays_in_texts(place: Place) -> None:
    environ = {"POSTGRES_PASSWORD": "postgres", "MAX_TOKENS": "128000000", "TOKEN_FILE": str(place.work)}
    assembled = await place.make(say(f"postgres 128000000 {place.work}"), settings=place.settings(environ))

    said = await ask(assembled, "hi")
    await assembled.close()

    assert said == f"postgres 128000000 {place.work}"
