"""Arguments of a tool call: reading and checking."""

from __future__ import annotations

import pytest

from harness.loop.arguments import InvalidArgumentsError, parse_arguments, read_arguments
from harness.model.messages import Json, JsonObject
from harness.wire.json_text import MAX_DEPTH

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10},
        "ratio": {"type": "number"},
        "mode": {"enum": ["fast", 1, None]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "object", "properties": {"on": {"type": ["boolean", "null"]}}, "required": ["on"]},
        "free": {},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"path": "a"}', {"path": "a"}),
        ('{"path": "a", "limit": 10, "ratio": 1}', {"path": "a", "limit": 10, "ratio": 1}),
        ('{"path": "a", "limit": 3.0}', {"path": "a", "limit": 3}),
        ('{"path": "a", "mode": 1, "tags": ["x"]}', {"path": "a", "mode": 1, "tags": ["x"]}),
        ('{"path": "a", "deep": {"on": null, "more": 1}}', {"path": "a", "deep": {"on": None, "more": 1}}),
        ('{"path": "a", "free": [1, {"x": 2}]}', {"path": "a", "free": [1, {"x": 2}]}),
        ('{"path": "\\ud800"}', {"path": "\ud800"}),
    ],
)
def test_arguments_that_fit_come_out_as_values(raw: str, expected: Json) -> None:
    assert read_arguments(raw, SCHEMA) == expected


def test_a_whole_number_written_as_a_float_is_an_integer_where_the_schema_says_so() -> None:
    assert [type(value) for value in read_arguments('{"path": "a", "limit": 3.0, "ratio": 3.0}', SCHEMA).values()] == [
        str,
        int,
        float,
    ]


@pytest.mark.parametrize("raw", ["", "  "])
def test_X02_empty_arguments_are_an_empty_object(raw: str) -> None:
    assert read_arguments(raw, {"type": "object"}) == {}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("{}", "path: missing"),
        ('{"path": 1}', "path: expected string, got integer 1"),
        ('{"path": null}', "path: expected string, got null"),
        ('{"path": "a", "limit": true}', "limit: expected integer, got boolean true"),
        ('{"path": "a", "limit": "3"}', 'limit: expected integer, got string "3"'),
        ('{"path": "a", "limit": 2.5}', "limit: expected integer, got number 2.5"),
        ('{"path": "a", "limit": 0}', "limit: expected at least 1, got 0"),
        ('{"path": "a", "limit": 11}', "limit: expected at most 10, got 11"),
        ('{"path": "a", "mode": true}', 'mode: expected one of ["fast", 1, null], got true'),
        ('{"path": "a", "tags": ["x", 2]}', "tags[1]: expected string, got integer 2"),
        ('{"path": "a", "deep": {}}', "deep.on: missing"),
        ('{"path": "a", "deep": {"on": 1}}', "deep.on: expected boolean or null, got integer 1"),
        ('{"path": "a", "pth": 1}', "pth: unknown; expected deep, free, limit, mode, path, ratio, tags"),
        ("[]", "arguments: expected a JSON object, got array"),
        ('"x"', 'arguments: expected a JSON object, got string "x"'),
        ("null", "arguments: expected a JSON object, got null"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(raw: str, problem: str) -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        read_arguments(raw, SCHEMA)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    "raw", ['{"a": ', "{'a': 1}", '{"a": NaN}', '{"a": 1, "a": 2}', "plain text"],
    ids=["cut", "quotes", "nan", "double-key", "text"],
)  # fmt: skip
def test_X02_text_that_is_no_json_is_passed_on_as_it_is_and_refused_with_the_reason(raw: str) -> None:
    assert parse_arguments(raw) == raw
    with pytest.raises(InvalidArgumentsError, match=r"expected a JSON object, got text that is not JSON: ."):
        read_arguments(raw, SCHEMA)


def test_many_problems_are_cut_to_a_readable_list() -> None:
    schema: JsonObject = {"type": "object", "required": [f"field{number}" for number in range(9)]}
    with pytest.raises(InvalidArgumentsError, match=r"field4: missing; and 4 more$"):
        read_arguments("{}", schema)


def test_additional_properties_may_have_a_schema_of_their_own() -> None:
    schema: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert read_arguments('{"x": 1}', schema) == {"x": 1}
    with pytest.raises(InvalidArgumentsError, match="x: expected integer"):
        read_arguments('{"x": "1"}', schema)


def test_a_field_whose_schema_is_false_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="x: not allowed"):
        read_arguments('{"x": 1}', {"properties": {"x": False}})


def test_long_values_are_shown_short() -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        read_arguments(f'{{"path": "a", "limit": "{"x" * 200}"}}', SCHEMA)
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_X02_arguments_nested_deeper_than_a_later_request_could_hold_are_refused(opened: str, closed: str) -> None:
    def nested(levels: int) -> str:
        inner = levels - 1  # the arguments themselves are the outermost object
        return '{"free":' + opened * inner + "1" + closed * inner + "}"

    assert isinstance(parse_arguments(nested(MAX_DEPTH)), dict)
    for levels in (MAX_DEPTH + 1, 100_000):
        assert parse_arguments(nested(levels)) == nested(levels)
        with pytest.raises(InvalidArgumentsError) as refused:
            read_arguments(nested(levels), {"type": "object"})
        assert str(refused.value) == (
            f"arguments: expected a JSON object, got lists and objects nested more than {MAX_DEPTH} levels deep"
        )
