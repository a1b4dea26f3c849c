"""A script is loaded whole or refused with every problem and its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mock_provider.errors import ScriptError
from mock_provider.script import build_script, load_script, parse_script
from mock_provider.steps import Step, Text, ToolCall

FIVE_MISTAKES = """\
version: 1
conversations:
  main:
    stepz: []
    steps:
      - expct: {last_user: "hi"}
        reply: "one"
      - reply: [{txt: "two"}]
      - reply: "three"
        repeat: foreva
      - reply: no
"""


def places(text: str, name: str = "demo.yaml") -> list[tuple[int, int, str, str]]:
    with pytest.raises(ScriptError) as caught:
        parse_script(text, name)
    return [(one.line, one.column, one.field, one.code) for one in caught.value.problems]


def test_five_mistakes_are_reported_at_once_with_line_and_column() -> None:
    assert places(FIVE_MISTAKES) == [
        (4, 5, "conversations.main", "SCRIPT_KEY"),
        (6, 9, "conversations.main.steps[0]", "SCRIPT_KEY"),
        (8, 18, "conversations.main.steps[1].reply[0]", "SCRIPT_KEY"),
        (10, 17, "conversations.main.steps[2].repeat", "SCRIPT_VALUE"),
        (11, 16, "conversations.main.steps[3].reply", "SCRIPT_TYPE"),
    ]


def test_a_problem_says_where_what_expected_and_the_near_miss() -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script("version: 1\nsteps:\n  - {reply: hi, optionl: true}\n", "demo.yaml")
    assert str(caught.value) == (
        "demo.yaml:3:17, steps[0]: unknown key 'optionl'; did you mean 'optional'? [SCRIPT_KEY]\n"
        "  expected: one of expect, reply, http_error, fault, gate, finish, usage, stream, repeat, optional, model, "
        "headers, content_type"
    )


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        pytest.param("a: [1\nb: 2\n", "x.yaml", (2, 2, "SCRIPT_SYNTAX"), id="yaml-open-list"),
        pytest.param("a: b: c\n", "x.yaml", (1, 5, "SCRIPT_SYNTAX"), id="yaml-two-colons"),
        pytest.param("version: 1\nsteps: \x07\n", "x.yaml", (2, 8, "SCRIPT_SYNTAX"), id="yaml-control-character"),
        pytest.param("a: &a [*a]\n", "x.yaml", (1, 4, "SCRIPT_SYNTAX"), id="yaml-alias-in-itself"),
        pytest.param('{"version": 1,\n "steps": [}', "x.json", (2, 12, "SCRIPT_SYNTAX"), id="json-no-value"),
        pytest.param(
            '{"version": 1,\n "steps": [] "model": 1}', "x.json", (2, 14, "SCRIPT_SYNTAX"), id="json-no-comma"
        ),
        pytest.param('{"version": 1} x', "x.json", (1, 16, "SCRIPT_SYNTAX"), id="json-text-after-end"),
        pytest.param('{"version: 1}', "x.json", (1, 2, "SCRIPT_SYNTAX"), id="json-open-string"),
        pytest.param("{" * 100_000, "x.json", (1, 2, "SCRIPT_SYNTAX"), id="json-not-a-key"),
        pytest.param("[" * 100_000, "x.json", (1, 130, "SCRIPT_SYNTAX"), id="json-too-deep"),
        pytest.param("a: " + "[" * 200 + "]" * 200, "x.yaml", (1, 132, "SCRIPT_SYNTAX"), id="yaml-too-deep"),
    ],
)
def test_a_syntax_error_names_line_and_column(text: str, name: str, place: tuple[int, int, str]) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(text, name)
    assert [(one.line, one.column, one.code) for one in caught.value.problems] == [place]


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        pytest.param("[{reply: hi, repeat: forever}, {reply: never}]", "SCRIPT_UNREACHABLE", id="after-forever"),
        pytest.param("[{reply: hi, fault: reset}]", "SCRIPT_VALUE", id="reply-never-sent"),
        pytest.param("[{expect: {last_user: hi}}]", "SCRIPT_MISSING", id="no-reply"),
        pytest.param("[]", "SCRIPT_MISSING", id="no-steps"),
        pytest.param("[{reply: hi, reply: ho}]", "SCRIPT_DUPLICATE", id="key-twice"),
        pytest.param("[{reply: [{tool_call: {name: f, arguments: '{'}}]}]", "SCRIPT_VALUE", id="arguments-not-json"),
        pytest.param(
            "[{reply: [{tool_call: {name: f, raw: x, arguments: {}}}]}]", "SCRIPT_VALUE", id="raw-and-arguments"
        ),
        pytest.param("[{reply: [{text: a, gate: b}]}]", "SCRIPT_VALUE", id="two-kinds-in-one-part"),
        pytest.param("[{reply: hi, expect: {last_user: {regex: '('}}}]", "SCRIPT_VALUE", id="bad-regex"),
        pytest.param("[{reply: '{{request}'}]", "SCRIPT_TEMPLATE", id="placeholder-open"),
        pytest.param("[{reply: '{{match.x}}'}]", "SCRIPT_TEMPLATE", id="group-never-captured"),
        pytest.param("[{reply: hi, stream: {split: [h, o]}}]", "SCRIPT_VALUE", id="pieces-are-not-the-text"),
        pytest.param("[{http_error: {status: 200}}]", "SCRIPT_VALUE", id="status-is-no-error"),
        pytest.param("[{http_error: {status: 429, headers: {content-length: 3}}}]", "SCRIPT_VALUE", id="own-header"),
        pytest.param("[{reply: hi, usage: {input: 1, cached: 2}}]", "SCRIPT_VALUE", id="more-cached-than-input"),
        pytest.param("[{reply: hi, finish: tool_call}]", "SCRIPT_VALUE", id="unknown-finish"),
        pytest.param("[{reply: hi, expect: {json_path: {'a b': 1}}}]", "SCRIPT_VALUE", id="not-a-path"),
        pytest.param("[{any_order: [{reply: hi, repeat: forever}]}]", "SCRIPT_VALUE", id="forever-in-any-order"),
        pytest.param("[{reply: [{hex: 'f'}]}]", "SCRIPT_VALUE", id="half-a-byte"),
        pytest.param("[{reply: [{http_error: 429}, {text: x}]}]", "SCRIPT_VALUE", id="error-beside-text"),
        pytest.param('[{reply: hi, content_type: "a\\r\\nx: y"}]', "SCRIPT_VALUE", id="content-type-of-two-lines"),
        pytest.param(
            '[{http_error: {status: 500, body: x, content_type: "a\\nb"}}]', "SCRIPT_VALUE", id="type-of-an-error"
        ),
        pytest.param('[{reply: [{comment: "a\\nb"}]}]', "SCRIPT_VALUE", id="comment-of-two-lines"),
        pytest.param("[{reply: hi, model: ''}]", "SCRIPT_VALUE", id="model-without-a-name"),
        pytest.param("[{reply: [{tool_call: {name: ''}}]}]", "SCRIPT_VALUE", id="tool-without-a-name"),
        pytest.param("[{reply: [{tool_call: {name: f, arguments: {a: .inf}}}]}]", "SCRIPT_VALUE", id="infinite"),
        pytest.param("[{reply: hi, expect: {options: {a: .nan}}}]", "SCRIPT_VALUE", id="not-a-number"),
        pytest.param("[{reply: hi, expect: {tools: {}}}]", "SCRIPT_VALUE", id="no-condition-on-tools"),
    ],
)
def test_a_step_that_cannot_be_meant_is_refused(steps: str, code: str) -> None:
    assert [one[3] for one in places(f"version: 1\nsteps: {steps}\n")] == [code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("steps: [{reply: hi}]", "SCRIPT_MISSING", id="no-version"),
        pytest.param("version: 2\nsteps: [{reply: hi}]", "SCRIPT_VALUE", id="other-version"),
        pytest.param("version: 1", "SCRIPT_MISSING", id="no-steps"),
        pytest.param("version: 1\nconversations: {}", "SCRIPT_MISSING", id="no-conversation"),
        pytest.param("version: 1\nconversations: {a: [{reply: x}]}\nsteps: [{reply: x}]", "SCRIPT_VALUE", id="both"),
        pytest.param("version: 1\nconversations: {'a b': [{reply: x}]}", "SCRIPT_VALUE", id="name-with-a-space"),
        pytest.param("version: 1\nconversations: {a: [{reply: x}], a: [{reply: x}]}", "SCRIPT_DUPLICATE", id="twice"),
        pytest.param("version: 1\nmodel: x\nmodels: [y]\nsteps: [{reply: hi}]", "SCRIPT_VALUE", id="model-not-listed"),
        pytest.param("version: 1\nflavour: deepsek\nsteps: [{reply: hi}]", "SCRIPT_VALUE", id="flavour"),
        pytest.param("version: 1\ncreated: 253402300800\nsteps: [{reply: hi}]", "SCRIPT_VALUE", id="year-10000"),
        pytest.param("version: 1\napi_key: ''\nsteps: [{reply: hi}]", "SCRIPT_VALUE", id="key-without-a-letter"),
        pytest.param("version: 1\nmodels: [{name: ''}]\nsteps: [{reply: hi}]", "SCRIPT_VALUE", id="model-unnamed"),
        pytest.param("version: 1\nmodels: ['']\nsteps: [{reply: hi}]", "SCRIPT_TYPE", id="model-empty"),
        pytest.param("[]", "SCRIPT_TYPE", id="a-list"),
        pytest.param("", "SCRIPT_TYPE", id="nothing"),
        pytest.param(
            "version: 1\nconversations:\n"
            "  a: {when: {model: m}, steps: [{reply: x}]}\n  b: {when: {model: m}, steps: [{reply: x}]}",
            "SCRIPT_DUPLICATE",
            id="same-when",
        ),
        pytest.param(
            "version: 1\nconversations: {a: {background: true, steps: [{reply: x}]}}", "SCRIPT_VALUE", id="background"
        ),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused(text: str, code: str) -> None:
    assert [one[3] for one in places(text)] == [code]


def test_yaml_and_json_and_python_give_the_same_script() -> None:
    from_yaml = parse_script("version: 1\nsteps:\n  - reply: [{tool_call: {name: f, arguments: {a: 1}}}]\n", "x.yaml")
    from_json = parse_script(
        '{"version":1,"steps":[{"reply":[{"tool_call":{"name":"f","arguments":{"a":1}}}]}]}', "x.json"
    )
    from_python = build_script(
        {"version": 1, "steps": [{"reply": [{"tool_call": {"name": "f", "arguments": {"a": 1}}}]}]}
    )
    assert from_yaml.digest == from_json.digest == from_python.digest
    step = from_python.conversations[0].items[0]
    assert isinstance(step, Step)
    assert step.parts == (ToolCall("f", {"a": 1}),)


def test_yaml_aliases_and_merge_keys_are_followed() -> None:
    script = parse_script(
        "version: 1\nsteps:\n  - &one {reply: hi, repeat: 2}\n  - {<<: *one, repeat: 3}\n  - *one\n", "x.yaml"
    )
    assert [(step.parts, step.repeat) for step in script.conversations[0].steps()] == [
        ((Text("hi"),), 2),
        ((Text("hi"),), 3),
        ((Text("hi"),), 2),
    ]


def test_a_number_that_only_looks_finite_is_refused_in_json() -> None:
    arguments = '{"version":1,"steps":[{"reply":{"tool_call":{"name":"f","arguments":{"a":[1,1e999]}}}}]}'
    field = "steps[0].reply.tool_call.arguments.a[1]"
    assert places(arguments, "x.json") == [(1, 77, field, "SCRIPT_VALUE")]


def test_every_tag_that_a_script_would_ignore_is_refused() -> None:
    text = "version: 1\nname: !!str 5\nsteps:\n  - reply: !mine hi\n  - reply: !!python/object/apply:os.system [x]\n"
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "x.yaml")
    assert [(one.line, one.column, one.what) for one in caught.value.problems] == [
        (4, 12, "the tag !mine has no meaning in a script"),
        (5, 12, "the tag !!python/object/apply:os.system has no meaning in a script"),
    ]


def test_aliases_that_multiply_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mock_provider.script_yaml.MAX_NODES", 10_000)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 9)]
    with pytest.raises(ScriptError, match="more than 10000 values"):
        parse_script("\n".join(lines), "x.yaml")


def test_json_escapes_beyond_the_first_plane_stay_whole() -> None:
    script = parse_script('{"version": 1,\t"steps": [{"reply": "\\ud83d\\ude00 \\/"}]}', "x.json")
    assert script.conversations[0].steps()[0].parts == (Text("\U0001f600 /"),)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert str(caught.value) == (
        f"{path}: cannot be read: No such file or directory [SCRIPT_UNREADABLE]\n  fix: check the path"
    )


def test_a_file_that_is_not_utf_8_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"version: 1\nname: caf\xe9\n")
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert [(one.line, one.column, one.code) for one in caught.value.problems] == [(2, 10, "SCRIPT_SYNTAX")]


def test_a_script_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(ScriptError, match="16777217 bytes are more than 16777216"):
        load_script(path)


def test_a_value_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"script, steps\[0\]\.reply: a set is not a JSON value"):
        build_script({"version": 1, "steps": [{"reply": {1, 2}}]})  # type: ignore[dict-item] # the wrong type is the test
