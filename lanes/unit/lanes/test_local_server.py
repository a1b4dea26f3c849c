"""The program that serves the model, as far as it can be tried without the model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lanes.local_server import count_usage, describe


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lanes.local_server", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_server_whose_starter_has_gone_serves_nobody() -> None:
    ended = run("--serve", json.dumps({"parent": "1", "weights": "", "model": "m", "descriptor": 0}))

    assert (ended.returncode != 0, "the run that started these tests has ended" in ended.stderr) == (True, True)


def test_it_says_what_is_missing_as_one_line_of_json() -> None:
    ended = run("--describe", "no-such-weights", "no-such-server")

    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"missing": "no-such-server"})


def test_a_distribution_that_is_there_is_named_with_its_version() -> None:
    assert describe("no-such-weights", "pytest") == {"missing": "no-such-weights"}


HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m-tiny"}


def tiny_model() -> type:
    """A class of models in the serving package's form: it reads its prompt and says a token of it at a time."""

    class Tiny:
        def generate(self, tokens: list[int], top_k: int = 1) -> Iterator[int]:
            yield from tokens[:top_k]

        def create_chat_completion(self, *, messages: list[int], stream: bool = False) -> object:
            said = (HEAD | {"choices": [token]} for token in self.generate(messages, top_k=2))
            return said if stream else list(said)

    count_usage(Tiny)
    return Tiny


def test_a_streamed_answer_says_at_its_end_what_it_took() -> None:
    *said, last = tiny_model()().create_chat_completion(messages=[5, 6, 7], stream=True)

    assert [chunk["choices"] for chunk in said] == [[5], [6]]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert last == HEAD | {"choices": [], "usage": usage}


def test_each_answer_is_counted_for_itself() -> None:
    model = tiny_model()()
    first, second = (list(model.create_chat_completion(messages=each, stream=True)) for each in ([5], [5, 6, 7]))

    assert [each[-1]["usage"]["total_tokens"] for each in (first, second)] == [2, 5]


def test_an_answer_in_one_piece_stays_as_it_is() -> None:
    assert tiny_model()().create_chat_completion(messages=[5]) == [HEAD | {"choices": [5]}]


def test_an_answer_without_a_word_gets_no_counts() -> None:
    assert list(tiny_model()().create_chat_completion(messages=[], stream=True)) == []


@pytest.mark.parametrize(
    "arguments", [(), ("--serve",), ("--describe", "one")], ids=["none", "no-document", "one-name"]
)
def test_it_is_no_command_for_people(arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)

    assert (ended.returncode, ended.stderr) == (1, "lanes.local_server is started by lanes.local_model\n")
