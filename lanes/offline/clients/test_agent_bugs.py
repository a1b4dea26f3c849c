"""An agent with a bug, through published clients: the provider's own refusal, and the rule by name in the journal."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

import pytest

from lanes.channels import Channels
from lanes.offline.clients import node_clients
from lanes.offline.clients.agent_bugs import BUGS, CALL_ID, RESULT, Body, Bug, Way, first_request, second_request
from lanes.offline.clients.asking import KEY, TOOL, trouble_of
from lanes.plugin import not_run
from mock_provider.replies import script, step, text, tool_call

DONE = "Take a coat."
pytestmark = pytest.mark.filterwarnings("ignore")  # what clients warn of is between them and their libraries


@dataclass(frozen=True, slots=True)
class Sender:
    """One published client that sends a request as an agent spelled it."""

    package: str
    way: Way
    dialect: str
    language: str = "Python"


SENDERS = (
    Sender("openai", "chat", "openai_chat"),
    Sender("openai", "responses", "openai_responses"),
    Sender("anthropic", "messages", "anthropic"),
    Sender("openai", "chat", "openai_chat", "Node"),
    Sender("openai", "responses", "openai_responses", "Node"),
    Sender("@anthropic-ai/sdk", "messages", "anthropic", "Node"),
)


def send(sender: Sender, url: str, bodies: list[Body]) -> list[tuple[int, str]]:
    """Send the requests one after the other with one client; for each what came: status and words."""
    is_node = sender.language == "Node"
    missing = node_clients.why_missing(sender.package) if is_node else _why_missing(sender.package)
    if missing:
        not_run("missing-dependency", f"{missing}; tox -e offline-clients has it, with node on the machine")
    if not is_node:
        return _send_from_here(sender, url, bodies)
    ask = {"url": url, "key": KEY, "way": sender.way, "bodies": bodies}
    return [(status, words) for status, words in node_clients.run("send", ask)]


def _why_missing(package: str) -> str:
    return "" if importlib.util.find_spec(package) else package


def _send_from_here(sender: Sender, url: str, bodies: list[Body]) -> list[tuple[int, str]]:
    library = importlib.import_module(sender.package)
    kind = library.OpenAI if sender.package == "openai" else library.Anthropic
    found = []
    with kind(api_key=KEY, base_url=url, max_retries=2) as client:
        create: Any = {
            "chat": lambda: client.chat.completions.create,
            "responses": lambda: client.responses.create,
            "messages": lambda: client.messages.create,
        }[sender.way]()
        for body in bodies:
            try:
                found.append((200, create(**body).model_dump_json()))
            except library.APIStatusError as error:
                found.append((error.status_code, trouble_of(error).message))
    return found


@pytest.mark.claim("mock.published-clients")
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
@pytest.mark.parametrize("sender", SENDERS, ids=lambda one: f"{one.language.lower()}-{one.way}")
def test_an_agent_with_a_bug_meets_the_providers_refusal_and_goes_on_once_it_is_mended(
    sender: Sender, bug: Bug, channels: Channels
) -> None:
    mock = channels.loopback(
        script(
            step(text("I look."), tool_call(TOOL, {"city": "Ghent"}, id=CALL_ID)),
            step(DONE, expect={"tool_result": {"equals": RESULT, "call": CALL_ID}}),
        ),
        is_judged=False,
    )
    broken = second_request(sender.way)
    bug.breaks[sender.way](broken)

    came = send(sender, mock.base_url(sender.dialect), [first_request(sender.way), broken, second_request(sender.way)])

    verdict = mock.verify()
    assert [status for status, _ in came] == [200, 400, 200]
    assert bug.words[sender.way] in came[1][1]
    assert DONE in came[2][1]
    assert [(entry.rule, entry.step) for entry in mock.journal.entries] == [
        (None, 1),
        (bug.rule[sender.way], None),
        (None, 2),
    ]
    assert (verdict.left, verdict.unmatched, len(verdict.invalid)) == ((), (), 1)
    assert bug.rule[sender.way] in verdict.invalid[0]
