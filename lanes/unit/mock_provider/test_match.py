"""A request that fits nowhere is told where, what, how near and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mock_provider.replies import conversation, script, step, tool_call
from mock_provider.routes import SUPPORTED
from mock_provider.script import ScriptLike, parse_script

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
ONE = """\
version: 1
steps:
  - expect: {last_user: hello, model: m}
    reply: hi
  - expect: {last_user: good bye}
    reply: [{tool_call: {name: f}}]
"""


def said(run: Play, *words: str) -> str:
    return str(run.ask(*words).json()["error"]["message"])


def test_one_request_too_many_names_the_last_words_the_nearest_step_and_the_fix(play: Start) -> None:
    run = play(parse_script(ONE, "lanes/scenarios/two.yaml"))
    run.say("hello")
    run.say("good bye")
    assert said(run, "and now delete it") == (
        "lanes/scenarios/two.yaml: request 3 arrived, 2 steps are scripted [SCRIPT_EXHAUSTED]\n"
        '  last user text: "and now delete it"        nearest step: 2, differs in last_user\n'
        '  fix: add a third step, or end step 2 with finish "stop"'
    )


def test_a_mismatch_gives_the_difference_field_by_field(play: Start) -> None:
    run = play(parse_script(ONE, "two.yaml"))
    assert said(run, "good bye") == (
        "two.yaml: request 1 does not fit step 1 [SCRIPT_MISMATCH]\n"
        '  last_user: expected a text containing "hello", found "good bye"\n'
        '  last user text: "good bye"        nearest step: 2\n'
        "  fix: change the expectation of step 1 (two.yaml:3), or what the client sends"
    )


def test_a_request_for_no_conversation_gets_the_difference_to_each(play: Start) -> None:
    run = play(script(conversations={"a": conversation(step("A"), when={"user_contains": "apple"})}))
    assert said(run, "pear") == (
        "script: request 1 fits no conversation [SCRIPT_NO_CONVERSATION]\n"
        '  last user text: "pear"\n'
        '  "a": when.user_contains: expected a text containing "apple", found "pear"\n'
        "  fix: add a conversation with a 'when' that this request fits, or change what the client sends"
    )


def test_a_named_conversation_is_named_in_the_message(play: Start) -> None:
    run = play(script(conversations={"a": conversation(step(tool_call("f")))}))
    run.say("x")
    assert said(run, "y").splitlines()[0] == (
        'script, conversation "a": request 2 arrived, 1 step is scripted [SCRIPT_EXHAUSTED]'
    )


def test_an_unmatched_request_is_one_that_clients_do_not_retry(play: Start) -> None:
    run = play(script(step("hi", expect={"last_user": "hello"})))
    answer = run.ask("bye")
    assert (answer.status_code, answer.headers["x-should-retry"], answer.json()["error"]["code"]) == (
        400,
        "false",
        "mock_unmatched",
    )


def test_the_verdict_holds_the_whole_story(play: Start) -> None:
    run = play(parse_script(ONE, "two.yaml"))
    run.say("bye")
    run.client.get("/nothing", headers={"authorization": "Bearer sk-test-0001"})
    run.ask({"role": "tool", "tool_call_id": "c", "content": "x"})
    assert str(run.mock.verify()) == (
        "two.yaml: not as scripted: steps used 0, left over 2, unmatched 2, invalid 1 [VERDICT]\n"
        "  - request 1: two.yaml: request 1 does not fit step 1 [SCRIPT_MISMATCH]\n"
        '      last_user: expected a text containing "hello", found "bye"\n'
        '      last user text: "bye"\n'
        "      fix: change the expectation of step 1 (two.yaml:3), or what the client sends\n"
        "  - request 2: two.yaml: GET /v1/nothing is no address of this provider [UNKNOWN_PATH]\n"
        "      supported:" + SUPPORTED.replace("\n", "\n    ") + "\n"
        "  - two.yaml: request 3 is invalid for openai_chat, rule orphan_tool_result: Invalid parameter: messages "
        "with role 'tool' must be a response to a preceeding message with 'tool_calls'. [REQUEST_INVALID]\n"
        "  - two.yaml: step 1 was never taken\n"
        "  - two.yaml: step 2 was never taken"
    )
