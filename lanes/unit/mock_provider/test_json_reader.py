"""A body that begins like an earlier one is read as if it were the first, and only what is new is parsed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider import json_reader
from mock_provider.json_reader import Reader
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import KnownList
from mock_provider.strict_json import parse_strictly

LONG = "a longer text " * 100


def message(role: str, content: Json) -> JsonObject:
    return {"role": role, "content": content}


def body(*messages: JsonObject, **more: Json) -> JsonObject:
    return {"model": "m", "messages": [message("system", LONG), *messages], "tools": [{"name": "t"}], **more}


def spelled(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def learned(*documents: Json) -> Reader:
    reader = Reader()
    for document in documents:
        reader.remember(reader.read(spelled(document)))
    return reader


def test_what_is_known_is_not_parsed_again() -> None:
    first, second = message("user", "one"), message("assistant", "two")
    reader = learned(body(first))
    reading = reader.read(spelled(body(first, second)))
    assert reading.value == body(first, second)
    assert reading.fresh == {"model": "m", "messages": [second]}
    assert LONG.encode() not in reading.fresh_bytes


def test_a_history_that_goes_another_way_is_known_as_far_as_it_agrees() -> None:
    start, one, two = message("user", "start"), message("assistant", "one"), message("assistant", "two")
    reader = learned(body(start, one))
    reading = reader.read(spelled(body(start, two)))
    assert (reading.value, reading.fresh) == (body(start, two), {"model": "m", "messages": [two]})
    reader.remember(reading)
    again = [reader.read(spelled(body(start, last, start))).fresh for last in (one, two)]
    assert again == [{"messages": [start]}] * 2


def test_what_stands_around_the_list_that_grows_is_known_as_a_whole() -> None:
    one, two, three = (message("user", name) for name in ("one", "two", "three"))
    reader = learned(body(one, temperature=1), body(one, two, temperature=1))
    reading = reader.read(spelled(body(one, two, three, temperature=1)))
    assert (reading.value, reading.fresh) == (
        body(one, two, three, temperature=1),
        {"messages": [three]},
    )
    other = reader.read(spelled(body(one, two, three, temperature=2)))
    assert other.value == body(one, two, three, temperature=2)
    assert other.fresh == {"model": "m", "messages": [three], "temperature": 2}


def test_a_list_stays_as_it_was_read_when_another_goes_another_way() -> None:
    start, one, two = message("user", "start"), message("assistant", "one"), message("assistant", "two")
    reader = learned(body(start, one))
    first = reader.read(spelled(body(start, one))).value
    reader.remember(reader.read(spelled(body(start, two))))
    assert isinstance(first, dict)
    messages = first["messages"]
    assert isinstance(messages, KnownList)
    assert [value for run in messages.runs for value in run.values] == messages == body(start, one)["messages"]


def test_objects_that_arrive_again_are_the_same_objects() -> None:
    reader = learned(body(message("user", "one")))
    first, second = (reader.read(spelled(body(message("user", "one")))).value for _ in range(2))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert [a is b for name in ("messages", "tools") for a, b in zip(first[name], second[name], strict=True)] == [
        True,
        True,
        True,
    ]


def test_nothing_is_learned_until_it_is_remembered() -> None:
    reader = Reader()
    reader.read(spelled(body(message("user", "one"))))
    assert reader.read(spelled(body(message("user", "one")))).runs == []


def test_the_memory_is_bounded() -> None:
    reader = Reader(limit_bytes=4_000)
    for number in range(10):
        reader.remember(reader.read(spelled(body(message("user", f"{number}{LONG}")))))
    assert reader.read(spelled(body(message("user", "x")))).runs == []


def test_many_conversations_with_one_beginning_are_all_known() -> None:
    talks = [body(message("user", f"task {number}")) for number in range(json_reader.MAX_BRANCHES)]
    reader = learned(*talks)
    assert [reader.read(spelled(talk)).fresh for talk in talks] == [{}] * len(talks)


@pytest.mark.parametrize(
    "unusual",
    [
        pytest.param(b'{"a": 1, "a": 2, "t": "%s"}', id="key-twice"),
        pytest.param(b'{"a\\u0062": [{"b": 1}], "t": "%s"}', id="escaped-key"),
        pytest.param(b'{"a": [1, "x", null, [2]], "t": "%s"}', id="mixed-list"),
        pytest.param(b' {"t": "%s"}', id="space-first"),
        pytest.param(b'{"t": "%s", "n": [1e3, -0, -0.0, 12345678901234567890]}', id="numbers"),
        pytest.param(b'{"t": "%s", "n": -0, "m": 12345678901234567890, "k": 1.5}', id="plain-numbers"),
        pytest.param(b'{"t": "%s", "half": "\\ud83d", "q": "\\"\\\\"}', id="escapes"),
        pytest.param(b'{"t": "%s", "list": [], "deep": {"list": [{"a": []}]} }  ', id="empty-list"),
        pytest.param(b'["%s"]', id="no-object"),
    ],
)
def test_an_unusual_spelling_means_what_it_means_to_the_parser(unusual: bytes) -> None:
    data = unusual % LONG.encode()
    reader = Reader()
    for _ in range(2):
        reading = reader.read(data)
        assert json.dumps(reading.value) == json.dumps(parse_strictly(data))
        reader.remember(reading)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'{"t": "%s"', id="open"),
        pytest.param(b'{"t": "%s"}}', id="closed-twice"),
        pytest.param(b'{"t": "%s",}', id="comma"),
        pytest.param(b'{"t": "%s" "u": 1}', id="no-comma"),
        pytest.param(b'{"t": "%s", "n": 01}', id="leading-zero"),
        pytest.param(b'{"t": "%s", "n": NaN}', id="nan"),
        pytest.param(b'{"t": "%s", "n": [1e999]}', id="infinite"),
        pytest.param(b'{"t": "%s", "l": [{"a": 1}}', id="list-closed-as-object"),
        pytest.param(b'{"t": "%s", "l": [{"a": 1},]}', id="list-comma"),
        pytest.param(b'{"t": "%s", "s": "\x01"}', id="control"),
        pytest.param(b'{"t": "%s", "s": "\xff"}', id="not-utf-8"),
        pytest.param(b'{"t": "%s", "l": [{"a": "\xff"}]}', id="not-utf-8-in-a-list"),
    ],
)
def test_what_is_not_json_is_refused(broken: bytes) -> None:
    reader = learned({"t": LONG, "l": [{"a": 1}]})
    with pytest.raises(ValueError):  # noqa: PT011 - the text is the parser's
        reader.read(broken % LONG.encode())


def test_a_known_part_inside_a_text_is_text() -> None:
    known: JsonObject = {"messages": [message("user", "x" * 1_500)]}
    reader = learned(known)
    hidden = {"messages": [message("user", spelled(known["messages"]).decode())], "t": spelled(known).decode()}
    assert reader.read(spelled(hidden)).value == hidden


def test_a_known_part_that_does_not_end_there_is_not_taken() -> None:
    reader = learned({"messages": [{"a": LONG}]})
    for tail in (b"x", b"1", b"{}", b'"', b""):
        with pytest.raises(ValueError):  # noqa: PT011 - the text is the parser's
            reader.read(b'{"messages": [{"a": "%s"}%s' % (LONG.encode(), tail))


TEXTS = st.text(max_size=6)
ELEMENTS: st.SearchStrategy[Json] = st.sampled_from([{"a": 1}, {"b": "ü"}, {"c": [True]}, {}, "s", 1, None]) | (
    st.dictionaries(TEXTS, TEXTS | st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=2)
)
DOCUMENTS = st.fixed_dictionaries(
    {"messages": st.lists(ELEMENTS, max_size=5), "tools": st.lists(ELEMENTS, max_size=2)},
    optional={"system": TEXTS, "n": st.integers(), "deep": st.dictionaries(TEXTS, ELEMENTS, max_size=2)},
)


@given(
    documents=st.lists(DOCUMENTS, max_size=8),
    is_ascii=st.booleans(),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]),
    limit_bytes=st.sampled_from([300, 1 << 20]),
)
def test_any_sequence_of_documents_is_read_as_the_parser_reads_each(
    documents: list[JsonObject], is_ascii: bool, separators: tuple[str, str], limit_bytes: int
) -> None:
    reader = Reader(limit_bytes)
    for document in documents:
        padded = {**document, "pad": LONG}
        text = json.dumps(padded, ensure_ascii=is_ascii, separators=separators)
        reading = reader.read(text.encode("utf-8", "surrogatepass"))
        assert json.dumps(reading.value) == json.dumps(padded)
        assert reading.spelling is None or reading.spelling.data() == text.encode("utf-8", "surrogatepass")
        assert all(
            [value for run in items.runs for value in run.values] == items
            for items in reading.value.values()  # type: ignore[union-attr]
            if isinstance(items, KnownList)
        )
        reader.remember(reading)


@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=3), data=st.data())
def test_a_document_with_bytes_changed_is_read_or_refused_as_the_parser_does(
    documents: list[JsonObject], data: st.DataObject
) -> None:
    reader = learned(*({**document, "pad": LONG} for document in documents))
    good = spelled({**documents[-1], "pad": LONG})
    at = data.draw(st.integers(0, len(good) - len(LONG) - 1))
    changed = good[:at] + data.draw(st.binary(max_size=3)) + good[at + data.draw(st.integers(0, 3)) :]
    try:
        expected: Json = parse_strictly(changed)
    except (ValueError, RecursionError):
        with pytest.raises((ValueError, RecursionError)):
            reader.read(changed)
        return
    assert json.dumps(reader.read(changed).value) == json.dumps(expected)
