"""A script that names its dialects is refused where one has no place for what it says, and plays in no other."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest

from mock_provider.actions import Send
from mock_provider.cli import main
from mock_provider.dialects.table import DIALECTS
from mock_provider.errors import ScriptError
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import comment, refusal, script, step, text, tool_call
from mock_provider.script import build_script, parse_script
from mock_provider.script_fit import FITS

USER: JsonObject = {"role": "user", "content": "x"}
BLOCKS: JsonObject = {"messages": [{"role": "user", "content": [{"text": "x"}]}]}
CONTENTS: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
HEADERS = {"authorization": "Bearer k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01", "x-api-key": "k"}
STREAMS: dict[str, tuple[str, JsonObject]] = {
    "openai_chat": (
        "/v1/chat/completions",
        {"model": "m", "messages": [USER], "stream": True, "stream_options": {"include_usage": True}},
    ),
    "openai_responses": ("/v1/responses", {"model": "m", "input": "x", "stream": True}),
    "anthropic_messages": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER], "stream": True}),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", CONTENTS),
    "ollama": ("/api/chat", {"model": "m", "messages": [USER]}),
    "bedrock": ("/model/m/converse-stream", BLOCKS),
}
COUNTS: JsonObject = {"input": 9, "output": 5, "cached": 0, "reasoning": 0}
CALL = ("f", {"a": 1})


def call(**more: Json) -> JsonObject:
    return step(tool_call("f", {"a": 1}, id="call_1", **more))


# What a step says, and the step that says the same without it.
WITH_AND_WITHOUT: dict[str, tuple[JsonObject, JsonObject]] = {
    "refusal": (step(refusal("no")), step(text("no"))),
    "comment": (step(text("a"), comment("c"), text("b")), step(text("a"), text("b"))),
    "index": (call(index=7), call()),
    "keep_alive": (
        step("ab", stream={"split": {"chars": 1}, "every_ms": 9, "keep_alive_ms": 3}),
        step("ab", stream={"split": {"chars": 1}, "every_ms": 9}),
    ),
    "cached": (step("a", usage={**COUNTS, "cached": 4}), step("a", usage=COUNTS)),
    "reasoning tokens": (step("a", usage={**COUNTS, "reasoning": 4}), step("a", usage=COUNTS)),
    "times": (step("a", usage={**COUNTS, "times": 2}), step("a", usage=COUNTS)),
    "content_filter": (step("a", finish="content_filter"), step("a", finish="stop")),
}


def sent(one: JsonObject, dialect: str) -> bytes:
    """The bytes of a streamed answer, with ids that do not hang on what the script says."""
    path, body = STREAMS[dialect]
    mock = Mock(dataclasses.replace(build_script(script(one)), digest="always"))
    headers = {**HEADERS, "content-type": "application/json"}
    if dialect != "anthropic_messages":
        headers.pop("anthropic-version")
    plan = mock.handle(Incoming("POST", path, headers, json.dumps(body).encode())).plan
    return b"".join(action.data for action, _ in plan if isinstance(action, Send))


@pytest.mark.parametrize("dialect", STREAMS)
@pytest.mark.parametrize("word", WITH_AND_WITHOUT)
def test_the_table_lacks_exactly_what_a_stream_does_not_show(dialect: str, word: str) -> None:
    with_it, without = (sent(one, dialect) for one in WITH_AND_WITHOUT[word])
    assert (with_it == without) is (word in FITS[dialect].lacks)


@pytest.mark.parametrize("dialect", STREAMS)
@pytest.mark.parametrize("word", WITH_AND_WITHOUT)
def test_a_script_for_a_dialect_is_refused_exactly_where_it_lacks_a_place(dialect: str, word: str) -> None:
    try:
        build_script(script(WITH_AND_WITHOUT[word][0], dialect=dialect))
        codes: list[str] = []
    except ScriptError as error:
        codes = [problem.code for problem in error.problems]
    assert codes == (["SCRIPT_DIALECT"] if word in FITS[dialect].lacks else [])


def test_each_misfit_has_its_place_in_the_text() -> None:
    written = (
        "version: 1\n"
        "dialect: [bedrock, ollama]\n"
        "flavour: vllm\n"
        "steps:\n"
        "  - reply:\n"
        "      - text: a\n"
        "      - comment: c\n"
        "      - tool_call: {name: a b, id: 'x/y'}\n"
        "    usage: {input: 4, cached: 2}\n"
    )
    with pytest.raises(ScriptError) as caught:
        parse_script(written, "x.yaml")
    assert [(one.line, one.column, one.field, one.what) for one in caught.value.problems] == [
        (3, 10, "flavour", "flavour 'vllm' without a dialect of OpenAI"),
        (7, 9, "steps[0].reply[1]", "bedrock has no place for 'comment'"),
        (7, 9, "steps[0].reply[1]", "ollama has no place for 'comment'"),
        (8, 9, "steps[0].reply[2]", "'a b' is no name of a tool in bedrock"),
        (8, 9, "steps[0].reply[2]", "'x/y' is no id of a call in bedrock"),
        (9, 12, "steps[0].usage", "ollama has no place for a count of cached tokens"),
    ]


@pytest.mark.parametrize(
    ("dialect", "name", "is_good"),
    [
        *((dialect, "a" * 64, True) for dialect in STREAMS),
        *((dialect, "a" * 129, dialect == "ollama") for dialect in STREAMS),
        *((dialect, "a.b", dialect in ("ollama", "gemini")) for dialect in STREAMS),
        *((dialect, "a\n", dialect == "ollama") for dialect in STREAMS),
    ],
)
def test_the_name_of_a_tool_has_to_be_one_that_the_dialect_takes(dialect: str, name: str, is_good: bool) -> None:
    def build() -> object:
        return build_script(script(step(tool_call(name, {})), dialect=dialect))

    if is_good:
        build()
    else:
        with pytest.raises(ScriptError, match="is no name of a tool in"):
            build()


@pytest.mark.parametrize(
    ("dialect", "what"),
    [
        pytest.param("openai_caht", "dialect 'openai_caht' is unknown; did you mean 'openai_chat'?", id="near-miss"),
        pytest.param([], "no dialect", id="none"),
        pytest.param(["ollama", "x"], "dialect 'x' is unknown", id="one-of-two"),
        pytest.param(3, "found the number 3", id="number"),
    ],
)
def test_a_dialect_that_there_is_not_is_told(dialect: Json, what: str) -> None:
    with pytest.raises(ScriptError) as caught:
        build_script(script(step("hi"), dialect=dialect))
    assert what in caught.value.what


@pytest.mark.parametrize("dialect", STREAMS)
def test_a_request_in_another_dialect_takes_no_step_and_says_why(dialect: str) -> None:
    path, body = STREAMS[dialect]
    headers = {name: value for name, value in HEADERS.items() if (name[0] == "a") <= (dialect != "gemini")}
    if dialect != "anthropic_messages":
        headers.pop("anthropic-version", None)
    other = "gemini" if dialect == "openai_chat" else "openai_chat"
    answers: list[tuple[int | None, bool]] = []
    several: list[Json] = [other, dialect]
    for named in (dialect, several, other):
        mock = Mock(script(step("hi"), dialect=named))
        incoming = Incoming("POST", path, {**headers, "content-type": "application/json"}, json.dumps(body).encode())
        entry = mock.handle(incoming).entry
        assert entry is not None
        answers.append((entry.status, entry.rule == "SCRIPT_OTHER_DIALECT"))
    assert answers == [(200, False), (200, False), (400, True)]


def test_check_holds_scripts_against_dialects_that_the_person_names(
    write: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("version: 1\nsteps:\n  - reply: [{refusal: n}]\n")
    assert [main(["check", path, *more]) for more in ([], ["--dialect", "openai_chat"], ["--dialect", "gemini"])] == [
        0,
        0,
        2,
    ]
    assert f"{path}:3:13, steps[0].reply[0]: gemini has no place for 'refusal' [SCRIPT_DIALECT]" in (
        capsys.readouterr().err
    )
    assert main(["check", path, "--dialect", "gemni"]) == 2
    assert "did you mean 'gemini'?" in capsys.readouterr().err


@pytest.fixture
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    def written(content: str) -> str:
        path = tmp_path_factory.mktemp("scripts") / "x.yaml"
        path.write_text(content, encoding="utf-8")
        return str(path)

    return written


def test_every_dialect_has_its_row() -> None:
    assert set(FITS) == set(DIALECTS) == set(STREAMS)
