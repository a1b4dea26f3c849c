"""Published clients against the mock provider on loopback: every client, every feature, one table."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Mapping

import pytest

from lanes.channels import Channels
from lanes.offline.clients import node_clients
from lanes.offline.clients.asking import Ask, Said, trouble_of
from lanes.offline.clients.features import FEATURES, TEXTS, Feature
from lanes.offline.clients.published import CLIENTS, Client, Lack
from lanes.plugin import not_run
from mock_provider.causes import form_of
from mock_provider.dialects.openai_embeddings import vector_of

pytestmark = pytest.mark.filterwarnings("ignore")  # what clients warn of is between them and their libraries
CELLS = [
    pytest.param(client, feature, id=f"{client.id}-{feature.name.replace(' ', '-')}")
    for client in CLIENTS
    for feature in FEATURES
    if not (lack := client.lacks.get(feature.name)) or lack.requests
]


def drive(client: Client, ask: Ask) -> Said:
    """Let the client do the task, and take what it says."""
    if client.language == "Node":
        missing = node_clients.why_missing(client.package)
    else:
        missing = "" if _is_there(client.module) else client.package
    if missing:
        not_run("missing-dependency", f"{missing}; tox -e offline-clients has it, with node on the machine")
    if client.language == "Node":
        return node_clients.drive(client.driver, ask)
    driver = importlib.import_module(f"lanes.offline.clients.{client.driver}")
    said = Said()
    try:
        driver.answer(ask, said)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it says
        said.trouble = trouble_of(error)
    return said


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is not there either
        return False


def facts_of(said: Said, client: Client, expected: Mapping[str, object]) -> dict[str, object]:
    """What was said, in the words of the table, as far as a feature is about it."""
    trouble = said.trouble
    message = trouble.message if trouble else ""
    quota = form_of("quota", client.error_dialect, "openai")
    facts: dict[str, object] = {
        "text": said.text,
        "ends_with": said.text[-len(str(expected.get("ends_with", ""))) :],
        "is_in_pieces": said.pieces > 2,
        "calls": said.calls,
        "thought": said.thought,
        "usage": said.usage,
        "data": said.data,
        "are_vectors": said.vectors == [list(vector_of(one, client.vector_size)) for one in TEXTS],
        "trouble": {"kind": trouble.kind, "status": trouble.status} if trouble else None,
        "has_failed": trouble is not None,
        "is_refused_for_quota": (trouble.status if trouble else 0) == quota.status and quota.message in message,
        "shows_difference": "the sea" in message,
        "shows_words": expected.get("shows_words") if str(expected.get("shows_words")) in message else message,
    }
    shown = {name: facts[name] for name in expected}
    return shown if shown == expected or trouble is None else shown | {"failed with": message}


@pytest.mark.claim("mock.published-clients")
@pytest.mark.parametrize(("client", "feature"), CELLS)
def test_a_client_gets_a_feature_as_it_was_played(client: Client, feature: Feature, channels: Channels) -> None:
    lack = client.lacks.get(feature.name) or Lack("")
    expected = feature.said if not lack.requests else lack.said
    mock = channels.loopback(feature.play(client), is_judged=feature.verdict == (0, 0, 0))
    ask = Ask(mock.base_url(client.dialect), client.way, **feature.ask)

    begin = time.monotonic()
    said = drive(client, ask)
    took_s = time.monotonic() - begin

    assert facts_of(said, client, expected) == expected
    assert len(mock.journal.entries) == (lack.requests or feature.requests)
    verdict = mock.verify()
    assert (len(verdict.left), len(verdict.unmatched), len(verdict.invalid)) == feature.verdict, str(verdict)
    assert took_s >= feature.least_s
