"""Drift: shapes without values, and every kind of difference with its weight."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lanes import drift_sources
from lanes.drift import Answer, Shape, compare, read_shape, shape_note, shape_of, shapes_of
from lanes.drift_command import run_drift
from lanes.drift_report import (
    REPORT,
    Comparison,
    breaking_dialects,
    breaking_findings,
    compose_report,
    keep_unjudged,
    load_report,
    report_lines,
)
from lanes.drift_sources import compare_all
from lanes.errors import UsageError
from lanes.providers import Provider
from lanes.unit.scenario.made_cassettes import made_document, write_cassette
from mock_provider.catalogue import ASKINGS, declared_answers

Document = dict[str, Any]
REPOSITORY = Path(__file__).parents[3]
SECRET = "amber-17"  # stands in every value below, and must stand in no shape
ROW = Provider("acme", "https://models.invalid/v1", "/v1/", "openai_chat", "ACME_API_KEY", "m-1", "", True, "global")


def whole(**more: Any) -> Document:
    """One answer in one piece; every value is a secret one."""
    message = {"role": "assistant", "content": SECRET}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": SECRET, "model": SECRET, "choices": [choice], "usage": {"prompt_tokens": 3}, **more}


def answers(*documents: Document, status: int = 200) -> list[Answer]:
    return [Answer(status, ("content-type",), json.dumps(document)) for document in documents]


def five(document: Document, status: int = 200) -> dict[Any, Shape]:
    return shapes_of(answers(*[document] * 5, status=status))


def stream(*chunks: Document, ends: bool = True) -> Answer:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Answer(200, (), "".join([*lines, *(["data: [DONE]\n\n"] if ends else [])]))


def chunk(finish: str | None = None, **delta: Any) -> Document:
    return {"id": SECRET, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def found(expected: dict[Any, Shape], seen: dict[Any, Shape]) -> list[tuple[str, str, str]]:
    return [
        (finding.change, finding.weight, finding.place)
        for verdict in compare(expected, seen)
        for finding in verdict.findings
    ]


def without(document: Document, key: str) -> Document:
    return {name: value for name, value in document.items() if name != key}


def test_no_value_is_in_a_shape_also_not_one_that_is_nested_or_a_key_of_arguments() -> None:
    call = {"function": {"name": SECRET, "arguments": {SECRET: SECRET}}}
    document = whole(extra={"input": {SECRET: 1}, "deep": [{"x": SECRET}], "tool_calls": [call]})

    note = json.dumps(shape_note(answers(document)[0]))

    assert SECRET not in note
    assert ".extra.deep[].x" in note


def test_a_vocabulary_takes_words_and_no_sentences() -> None:
    shape = shape_of(answers(whole(type=f"a sentence with {SECRET}", object="chat.completion"))[0])[1]

    assert shape.words == {
        ".object": {"chat.completion"}, ".choices[].finish_reason": {"stop"}, ".choices[].message.role": {"assistant"},
    }  # fmt: skip


def test_shapes_add_up_in_any_order_and_come_back_from_a_note() -> None:
    one, other = whole(), without(whole(more=1), "id")
    both = shapes_of(answers(one, other))["whole"]
    turned = shapes_of(answers(other, one))["whole"]
    stored = shapes_of(answers(one))["whole"]
    stored.add(read_shape(json.loads(json.dumps(shape_of(answers(other)[0])[1].to_json()))))

    assert both.to_json() == turned.to_json() == stored.to_json()
    assert (both.samples, both.share(".id"), both.share(".model")) == (2, 0.5, 1.0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda d: {**d, "tier": "x"}, [("added", "additive", ".tier")], id="drift-65-new-optional-field"),
        pytest.param(lambda d: without(d, "id"), [("removed", "breaking", ".id")], id="drift-65-required-field-gone"),
        pytest.param(lambda d: {**d, "id": 7}, [("retyped", "breaking", ".id")], id="other-type"),
        pytest.param(
            lambda d: {**d, "usage": None}, [("retyped", "breaking", ".usage")], id="null-where-an-object-was"
        ),
        pytest.param(
            lambda d: {**d, "choices": [{**d["choices"][0], "finish_reason": "tired"}]},
            [("new word", "breaking", ".choices[].finish_reason=tired")],
            id="finish-word",
        ),
        pytest.param(
            lambda d: {**d, "choices": [{**d["choices"][0], "message": {"role": "helper", "content": "x"}}]},
            [("new word", "additive", ".choices[].message.role=helper")],
            id="other-word",
        ),
        pytest.param(lambda d: d, [], id="the-same"),
    ],
)
def test_each_difference_has_a_name_and_a_weight(
    change: Callable[[Document], Document], expected: list[tuple[str, str, str]]
) -> None:
    assert found(five(whole()), five(change(whole()))) == expected


def test_a_field_that_only_sometimes_comes_is_loosened_and_one_that_always_does_narrowed() -> None:
    always, sometimes = five(whole()), shapes_of(answers(*[whole()] * 4, without(whole(), "usage")))

    assert found(always, sometimes) == [("loosened", "breaking", ".usage")]
    assert found(sometimes, always) == [("narrowed", "additive", ".usage")]


def test_null_beside_what_was_is_loosened() -> None:
    mixed = shapes_of(answers(*[whole()] * 4, whole(id=None)))

    assert found(five(whole()), mixed) == [("loosened", "breaking", ".id")]


def test_what_hangs_below_a_field_that_is_gone_is_said_once() -> None:
    assert found(five(whole()), five(without(whole(), "choices"))) == [("removed", "breaking", ".choices")]


def test_events_in_another_order_break_and_a_new_event_adds() -> None:
    usual = shapes_of([stream(chunk(content="a"), chunk("stop")) for _ in range(5)])
    turned = shapes_of([stream(chunk("stop"), chunk(content="a")) for _ in range(5)])
    more = shapes_of([stream(chunk(content="a"), chunk(thought="b"), chunk("stop")) for _ in range(5)])

    assert [each[:2] for each in found(usual, turned)] == [("reordered", "breaking")] * 3
    assert found(usual, more) == [("added", "additive", "thought")]


def test_a_stream_whose_end_mark_is_gone_is_reordered() -> None:
    usual = shapes_of([stream(chunk("stop")) for _ in range(5)])
    cut = shapes_of([stream(chunk("stop"), ends=False) for _ in range(5)])

    assert found(usual, cut) == [("reordered", "breaking", "finish>(end)")]


@pytest.mark.parametrize(("count", "judged"), [(0, False), (4, False), (5, True)])
def test_too_few_samples_are_not_judged_and_never_no_drift(count: int, judged: bool) -> None:
    verdicts = compare(five(whole()), shapes_of(answers(*[without(whole(), "id")] * count)))

    assert [(bool(each.not_judged), bool(each.findings)) for each in verdicts] == [(not judged, judged)]


def test_a_kind_of_answer_nothing_is_known_of_is_not_judged() -> None:
    (verdict,) = compare({}, five(whole()))

    assert verdict.not_judged == "nothing is known to compare it with"


def test_errors_are_a_kind_of_their_own() -> None:
    error = {"error": {"message": SECRET, "type": "invalid_request_error"}}

    assert found(five(error, 400), five({"error": SECRET}, 400)) == [("retyped", "breaking", ".error")]


@pytest.mark.parametrize("dialect", sorted(ASKINGS))
def test_the_catalogue_of_a_dialect_is_what_the_mock_provider_says_and_does_not_drift_from_itself(dialect: str) -> None:
    shapes = shapes_of(Answer(each.status, each.headers, each.body) for each in declared_answers(dialect))

    assert {"whole", "error"} <= shapes.keys()
    assert found(shapes, shapes) == []
    assert all(not each.not_judged for each in compare(shapes, shapes))


# the report


def live(document: Document, against: str = "catalogue") -> Comparison:
    verdicts = compare(five(whole()), five(document))
    return Comparison("acme", "openai_chat", "live", against, ("sha256:1",), verdicts)  # type: ignore[arg-type] # one of the two


def keep(root: Path, *comparisons: Comparison) -> Path:
    (root / REPORT).parent.mkdir(parents=True)
    (root / REPORT).write_text(compose_report(comparisons), encoding="utf-8")
    return root


def test_drift_65_breaking_findings_come_back_by_provider_and_by_dialect(tmp_path: Path) -> None:
    root = keep(tmp_path, live(without(whole(), "id")), live({**whole(), "tier": 1}))

    assert breaking_findings(root) == {"acme": ("whole:removed:.id",)}
    assert breaking_dialects(root) == {"openai_chat": ("whole:removed:.id",)}


def test_additive_findings_and_those_of_recordings_make_nothing_stale(tmp_path: Path) -> None:
    recorded = Comparison("acme", "openai_chat", "recorded", "catalogue", (), live(without(whole(), "id")).verdicts)
    root = keep(tmp_path, live({**whole(), "tier": 1}), recorded)

    assert (breaking_findings(root), breaking_dialects(root)) == ({}, {})


def test_what_differs_from_cassettes_alone_says_nothing_of_the_mock_provider(tmp_path: Path) -> None:
    root = keep(tmp_path, live(without(whole(), "id"), "cassettes"))

    assert (breaking_findings(root), breaking_dialects(root)) == ({"acme": ("whole:removed:.id",)}, {})


def test_without_a_report_nothing_is_stale_and_a_broken_one_is_named(tmp_path: Path) -> None:
    assert breaking_findings(tmp_path) == {}
    (tmp_path / "reports").mkdir()
    (tmp_path / REPORT).write_text('{"schema": "drift/9"}', encoding="utf-8")

    with pytest.raises(UsageError, match="its schema is 'drift/9'"):
        breaking_findings(tmp_path)


def test_a_report_reads_as_what_was_written(tmp_path: Path) -> None:
    few = Comparison("acme", "openai_chat", "recorded", "catalogue", (), compare(five(whole()), {}))
    written = (live({**without(whole(), "id"), "tier": 1}), few)

    assert load_report(keep(tmp_path, *written)) == written


@pytest.mark.parametrize(
    "text",
    ["[]", '{"schema": "drift/1"}', '{"schema": "drift/1", "comparisons": [7]}', "[" * 100_000, "\udc80"],
    ids=["list", "no-comparisons", "number", "deep", "no-text"],
)
def test_what_is_no_report_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / REPORT).write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(UsageError, match="it is no drift report"):
        load_report(tmp_path)


def test_drift_65_a_provider_that_was_not_asked_keeps_its_findings() -> None:
    earlier, other = live(without(whole(), "id")), replace(live(whole()), provider="beta")

    assert keep_unjudged([earlier], [other]) == [earlier, other]


def test_drift_65_a_kind_of_which_too_few_answers_came_keeps_its_findings_and_a_judged_one_does_not() -> None:
    broken = {**five(without(whole(), "id")), **five({"error": SECRET}, 400)}
    expected = {**five(whole()), **five({"error": {"message": SECRET}}, 400)}
    earlier = replace(live(whole()), answers=("sha256:1",), verdicts=compare(expected, broken))
    now = replace(live(whole()), answers=("sha256:2",), verdicts=compare(expected, five(whole())))

    (kept,) = keep_unjudged([earlier], [now])

    assert [finding.id for finding in kept.breaking] == ["error:retyped:.error"]
    assert kept.answers == ("sha256:1", "sha256:2")
    assert keep_unjudged([earlier], [replace(now, verdicts=compare(expected, expected))])[0].breaking == ()


def test_findings_of_recordings_are_made_anew_and_never_kept() -> None:
    recorded = replace(live(without(whole(), "id")), source="recorded")

    assert keep_unjudged([recorded], []) == []


def test_the_report_for_people_names_answers_findings_and_what_was_not_judged() -> None:
    few = Comparison("acme", "openai_chat", "live", "cassettes", (), compare(five(whole()), {}))

    assert report_lines([live(without(whole(), "id")), few]) == [
        "acme: 1 live answers against the catalogue",
        "  breaking: whole:removed:.id: it always came, and never does",
        "acme: 0 live answers against the cassettes",
        "  whole: not judged: 0 answers, at least 5 are wanted",
    ]


def test_without_live_answers_an_earlier_report_is_kept(tmp_path: Path) -> None:
    root = keep(tmp_path, live(without(whole(), "id")))
    (root / "lanes").mkdir()
    before = (root / REPORT).read_bytes()

    text, code = run_drift(["--root", str(root), "--out", str(root / "out")])

    assert (code, (root / REPORT).read_bytes() == before) == (0, True)
    assert "drift: not judged: no live answers lie under" in text


def test_recorded_answers_that_no_model_gave_are_no_evidence_of_a_provider(tmp_path: Path) -> None:
    (tmp_path / "cassettes").mkdir()
    write_cassette(tmp_path / "cassettes", made_document())

    assert compare_all(tmp_path, tmp_path, [ROW]) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("length", [], id="one-that-the-dialect-has"),
        pytest.param("tired", ["stream:new-word:finish.choices[].finish_reason=tired"], id="one-that-nobody-knows"),
    ],
)
def test_a_word_is_new_when_neither_the_recordings_nor_the_dialect_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, expected: list[str]
) -> None:
    seen = drift_sources.recorded_shapes(REPOSITORY, {"loopback": "local"})["local"]
    seen.shapes["stream"].words["finish.choices[].finish_reason"].add(word)
    monkeypatch.setattr(drift_sources, "live_shapes", lambda bundles: {"local": seen})

    (comparison,) = [each for each in compare_all(REPOSITORY, tmp_path, []) if each.source == "live"]

    assert [finding.id for finding in comparison.breaking] == expected
