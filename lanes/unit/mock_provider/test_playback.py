"""Steps are taken in order, by conversation and client, and what is left over is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mock_provider.json_values import Json
from mock_provider.replies import any_order, conversation, http_error, script, step, text
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]


def history(*turns: str) -> list[dict[str, Json]]:
    """Messages by turns: user, assistant, user…"""
    return [{"role": "assistant" if at % 2 else "user", "content": turn} for at, turn in enumerate(turns)]


def test_a_repeated_step_is_taken_as_often_as_it_says(play: Start) -> None:
    run = play(script(step("one", repeat=2), step("two")))
    assert [run.say("hi") for _ in range(4)] == ["one", "one", "two", "mock_unmatched"]


def test_a_step_taken_too_seldom_is_left_over(play: Start) -> None:
    run = play(script(step("one", repeat=3)))
    run.say("hi")
    assert run.mock.verify().left == ("script: step 1 was taken 1 of 3 times",)


def test_a_step_repeated_forever_ends_when_it_fits_no_more(play: Start) -> None:
    run = play(script(step("again", expect={"last_user": "more"}, repeat="forever"), step("end")))
    assert [run.say(word) for word in ("more", "more", "stop")] == ["again", "again", "end"]
    assert run.mock.verify().ok


def test_an_optional_step_is_passed_over_and_not_missed(play: Start) -> None:
    run = play(script(step("title", expect={"system": "title"}, optional=True), step("answer")))
    assert run.say("hi") == "answer"
    assert run.mock.verify().ok


def test_steps_in_any_order_select_by_expectation(play: Start) -> None:
    group = any_order(step("A", expect={"last_user": "a"}), step("B", expect={"last_user": "b"}))
    run = play(script(group, step("end")))
    assert [run.say(word) for word in ("b", "a", "c")] == ["B", "A", "end"]
    assert run.mock.verify().ok


def test_a_group_is_not_left_before_all_its_steps_are_taken(play: Start) -> None:
    group = any_order(step("A", expect={"last_user": "a"}), step("B", expect={"last_user": "b"}))
    run = play(script(group, step("end")))
    assert [run.say(word) for word in ("b", "c")] == ["B", "mock_unmatched"]
    assert run.mock.verify().left == ("script: step 1 was never taken", "script: step 3 was never taken")


def test_a_mismatch_does_not_move_the_cursor(play: Start) -> None:
    run = play(script(step("one", expect={"last_user": "yes"})))
    assert [run.say("no"), run.say("yes")] == ["mock_unmatched", "one"]


def test_a_conversation_is_found_by_when(play: Start) -> None:
    run = play(
        script(
            conversations={
                "red": conversation(step("R"), when={"user_contains": "red"}),
                "blue": conversation(step("B"), when={"user_contains": "blue"}),
            }
        )
    )
    assert [run.say("blue please"), run.say("red please")] == ["B", "R"]
    assert [entry.conversation for entry in run.mock.journal.entries] == ["blue", "red"]


@pytest.mark.parametrize("by", ["header", "path", "key"])
def test_a_conversation_is_found_by_the_name_the_client_gives(play: Start, by: str) -> None:
    run = play(script(conversations={"a": conversation(step("A")), "b": conversation(step("B"))}))
    if by == "header":
        assert run.say("x", headers={"x-mock-conversation": "b"}) == "B"
    elif by == "key":
        assert run.say("x", headers={"authorization": "Bearer sk-mock-b"}) == "B"
    else:
        answer = run.client.post(
            f"{run.mock.base_url(conversation='b')}/chat/completions",
            json={"model": "m", "messages": history("x")},
            headers={"authorization": "Bearer x"},
        )
        assert answer.json()["choices"][0]["message"]["content"] == "B"


def test_a_conversation_goes_on_where_its_history_says(play: Start) -> None:
    opening = {"user_contains": "start"}
    run = play(
        script(
            conversations={
                "a": conversation(step("from a"), step("a again"), when={**opening, "system": "A"}),
                "b": conversation(step("from b"), step("b again"), when={**opening, "system": "B"}),
            }
        )
    )
    first = [run.say({"role": "system", "content": name}, "start") for name in ("A", "B")]
    later = [run.say(*history("start", words, "and?")) for words in ("from b", "from a")]
    assert (first, later) == (["from a", "from b"], ["b again", "a again"])


def test_a_retry_after_a_failure_goes_on_in_its_conversation(play: Start) -> None:
    run = play(
        script(
            conversations={
                "a": conversation(http_error(429), step("after"), when={"last_user": {"equals": "x"}}),
                "b": conversation(step("b"), when={"last_user": {"regex": "^x$"}, "model": "never"}),
            }
        )
    )
    assert [run.say("x"), run.say("x")] == ["rate_limit_exceeded", "after"]


def test_two_candidates_are_refused_and_both_are_named(play: Start) -> None:
    run = play(script(conversations={"a": conversation(step("A")), "b": conversation(step("B"))}))
    answer = run.ask("hello")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].splitlines()[0] == (
        'script: request 1 fits 2 conversations: "a", "b" [SCRIPT_AMBIGUOUS]'
    )


def test_an_unknown_name_is_refused_with_the_near_miss(play: Start) -> None:
    run = play(script(conversations={"main": conversation(step("A"))}))
    answer = run.ask("hello", headers={"x-mock-conversation": "mian"})
    assert answer.json()["error"]["message"].splitlines()[0] == (
        'script: header x-mock-conversation names conversation "mian", which is not scripted; '
        "did you mean 'main'? [SCRIPT_NO_CONVERSATION]"
    )


def test_a_background_conversation_takes_no_step_of_the_main_one(play: Start) -> None:
    run = play(
        script(
            conversations={
                "main": conversation(step("one"), step("two")),
                "title": conversation(step("T", repeat="forever"), when={"system": "title"}, background=True),
            }
        )
    )
    titled = {"role": "system", "content": "write a title"}
    assert [run.say("x"), run.say(titled, "x"), run.say("x")] == ["one", "T", "two"]
    assert run.mock.verify().ok


def test_parallel_clients_have_a_cursor_each(play: Start) -> None:
    run = play(script(conversations={"main": conversation(step("one"), step("two"), parallel=2)}))
    keys = ["main@A", "main@B", "main@B", "main@A"]
    assert [run.say("x", headers={"x-mock-conversation": key}) for key in keys] == ["one", "one", "two", "two"]
    assert run.say("x", headers={"x-mock-conversation": "main@C"}) == "mock_unmatched"


def test_parallel_clients_without_names_are_told_apart_by_their_history(play: Start) -> None:
    run = play(
        script(
            conversations={"main": conversation(step("to {{request.user}}"), step("bye {{request.user}}"), parallel=2)}
        )
    )
    first = [run.say("x", user=name) for name in ("ann", "bob")]
    later = [run.say(*history("x", f"to {name}", "y"), user=name) for name in ("bob", "ann")]
    assert (first, later) == (["to ann", "to bob"], ["bye bob", "bye ann"])


def test_parallel_clients_that_look_alike_share_the_steps_evenly(play: Start) -> None:
    run = play(script(conversations={"main": conversation(step("one"), step("two"), parallel=2)}))
    assert sorted(run.say("x") for _ in range(4)) == ["one", "one", "two", "two"]
    assert run.mock.verify().ok


def test_a_copy_without_a_value_leaves_the_step_for_the_next_request(play: Start) -> None:
    run = play(script(step("for {{request.user}}")))
    answer = run.ask("x")
    assert answer.json()["error"]["message"].splitlines()[0] == (
        "script: step 1 copies {{request.user}}, which the request does not have [SCRIPT_COPY]"
    )
    assert run.say("x", user="ann") == "for ann"


def test_reset_begins_again_with_the_same_bytes(play: Start) -> None:
    run = play(script(step(text("one")), step(text("two"))))
    first = [run.ask("x").content for _ in range(2)]
    run.mock.reset()
    assert [run.ask("x").content for _ in range(2)] == first
    assert len(run.mock.journal) == 2
