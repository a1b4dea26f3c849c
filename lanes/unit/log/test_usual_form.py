"""The usual forms of a line, read and checked in one go."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InvalidEventError, LogUnsupportedError
from harness.log.events import AssistantChunk, Event, LlmRetryStarted, StepEnd
from harness.log.fold import fold_surface
from harness.log.frozen import freeze_payload
from harness.log.json_form import event_from_json, event_to_json
from harness.log.usual_form import is_usual_piece, read_usual
from harness.log.validate import check_event
from harness.model.chunks import ReasoningDelta, TextDelta, Usage


def _history(make):
    """A log with a streamed answer, a tool round, a failed call and one event of each other kind."""
    log = make.log()
    make.turn(log, 1, chunks=2)
    make.open_step(log, 2)
    call, other = make.call("c8"), make.call("c9")
    log.append(make.assistant(call, other, turn=2, message_id="a2", usage=Usage(3, 4)), source_event_seqs=())
    for each, fields in ((call, {"meta": {"exit": 0}}), (other, {})):
        started = log.append(make.started(each, turn=2))
        log.append(make.result(each.id, turn=2, **fields), source_event_seqs=(started.seq,))
    log.append(StepEnd(2, 1))
    log.append(make.end(2))
    for payload in make.samples():
        make.append(log, payload)
    return log


class _Ordinary:
    """What json_form and validate say of an object at a place of that log."""

    def __init__(self, log):
        self._events = list(log)
        self._surface = fold_surface(log)

    def event(self, value, seq):
        event = event_from_json(value)
        check_event(event, self._events[:seq], [node for node in self._surface if node < seq])
        return event


def _agrees(ordinary, value, seq):
    """Whether the quick reading took the object; it may leave any object alone, and takes none that is refused."""
    found = read_usual(value, seq)
    if found is None:
        return False
    event = ordinary.event(value, seq)
    assert (found, [type(found), type(found.payload)]) == (event, [type(event), type(event.payload)])
    assert repr(found) == repr(event)
    return True


def _changed(value, path, other):
    changed = json.loads(json.dumps(value))
    target = changed
    for key in path[:-1]:
        target = target[key]
    if other is _Ordinary:  # a mark for "without this member"
        del target[path[-1]]
    else:
        target[path[-1]] = other
    return changed


def _places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
        yield (*path, "unknown")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _places(item, (*path, at))


ODD = (
    None,
    True,
    False,
    1.0,
    0,
    1,
    -7,
    2**53,
    "",
    "x",
    "text",
    "append",
    "user",
    "tool",
    [],
    [1],
    {},
    {"a": 1},
    _Ordinary,
)


def test_an_object_changed_anywhere_is_taken_only_if_the_ordinary_reading_takes_it(make):
    log = _history(make)
    ordinary = _Ordinary(log)
    taken = {True: 0, False: 0}
    for event in log:
        value = event_to_json(event)
        for path in _places(value):
            for other in ODD:
                if other is _Ordinary and path[-1] == "unknown":
                    continue
                taken[_agrees(ordinary, _changed(value, path, other), event.seq)] += 1
    assert (taken[True] > 300, taken[False] > 5000) == (True, True)


CITATIONS = ([], [0], [1, 0], [0, 0], [-1], [99], [True], [0.0], ["0"], None, {}, "0", [0, 1, 2, 99], [0, 1, True])


@pytest.mark.parametrize("cited", CITATIONS, ids=str)
def test_citations_are_taken_only_if_the_ordinary_reading_takes_them(make, cited):
    log = _history(make)
    ordinary = _Ordinary(log)
    for seq in log.surface():
        _agrees(ordinary, {**event_to_json(log[seq]), "sourceEventSeqs": cited}, seq)


@settings(deadline=None)
@given(data=st.data())
def test_whatever_was_appended_reads_as_the_ordinary_reading_has_it(make, data):
    log = make.log()
    for payload in data.draw(st.lists(make.payloads, max_size=6)):
        make.append(log, payload)
    ordinary = _Ordinary(log)
    for event in log:
        _agrees(ordinary, json.loads(json.dumps(event_to_json(event))), event.seq)


ODD_FIELDS = (None, True, 1.0, 0, -1, 2**53, "", "x", ["x"], "\ud83d", "\ud83e" + "\uddea", TextDelta(0, "x"))


def test_a_payload_is_taken_for_a_plain_piece_only_if_freezing_and_checking_leave_it_as_it_is(make):
    taken = 0
    for chunk in (TextDelta(0, "x"), ReasoningDelta(3, "\N{SNOWMAN} y")):
        piece = AssistantChunk(1, 2, chunk)
        changed = [replace(piece, **{name: odd}) for name in ("turn", "step", "chunk") for odd in ODD_FIELDS]
        changed += [
            replace(piece, chunk=replace(chunk, **{name: odd})) for name in ("index", "text") for odd in ODD_FIELDS
        ]
        for payload in (piece, *changed, *make.samples()):
            for time in (5, -5, 2**53, 1.5, True, None):
                if is_usual_piece(payload, time):
                    taken += 1
                    assert freeze_payload(payload, "data") is payload
                    check_event(Event(0, time, payload), [], [])
    assert taken > 20


def test_appending_a_piece_asks_the_own_check_and_refuses_what_stands_beside_no_piece(make):
    log = make.log(check=_refuse)
    with pytest.raises(InvalidEventError, match="not here"):
        log.append(make.chunk())
    for beside in ({"surface_op": "append"}, {"source_event_seqs": (0,)}, {"ignorable": "yes"}):
        with pytest.raises(InvalidEventError):
            make.log().append(make.chunk(), **beside)
    assert make.log().append(make.chunk(), ignorable=True).ignorable is True


def _refuse(log, event):
    raise InvalidEventError("not here", where="test")


def test_a_turn_of_text_and_tools_is_wholly_usual_but_for_its_request_header(make):
    log = _history(make)
    turns = next(event.seq for event in reversed(log) if event.payload == make.end(2)) + 1
    left = [event.type for event in log[:turns] if read_usual(event_to_json(event), event.seq) != event]
    assert left == ["request/header"]


def test_an_object_of_another_place_is_left_to_the_ordinary_reading(make):
    log = _history(make)
    found = [read_usual(event_to_json(event), event.seq + 1) for event in log]
    assert found == [None] * len(log)


def test_the_own_check_of_a_log_is_asked_about_usual_events_too(make):
    value = event_to_json(make.log().append(StepEnd(1, 1)))
    event = read_usual(value, 0)
    log = make.log(check=_refuse)
    with pytest.raises(InvalidEventError, match="not here"):
        log.restore_usual(event)
    assert len(log) == 0


def test_a_foreign_or_rare_type_is_left_to_the_ordinary_reading(make):
    foreign = {"type": "vote/cast", "seq": 0, "time": 1, "data": {}}
    rare = event_to_json(make.log().append(LlmRetryStarted("r1", 1, 1, 1)))
    assert [read_usual(value, 0) for value in (foreign, rare)] == [None, None]
    with pytest.raises(LogUnsupportedError):
        event_from_json(foreign)


@pytest.mark.parametrize("value", [{}, {"type": []}, {"type": {}, "seq": 0, "time": 0, "data": {}}], ids=str)
def test_an_object_that_is_no_event_raises_nothing_here(value):
    assert read_usual(value, 0) is None
    with pytest.raises(InvalidEventError):
        event_from_json(value)
