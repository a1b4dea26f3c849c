"""The log in memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InvalidEventError
from harness.log.chunk_rows import pack, unpack
from harness.log.events import (
    AssistantChunk,
    EndSeed,
    Event,
    Replace,
    RequestContext,
    StepStart,
    TurnStart,
    UserMessage,
)
from harness.log.fold import fold_messages, fold_surface
from harness.log.session_log import SessionLog
from harness.model.messages import TextBlock


def test_L01_the_seq_of_an_event_is_the_length_of_the_log_before_it(make):
    log = make.log()
    seqs = [log.append(TurnStart(turn)).seq for turn in (1, 2, 3)]
    assert (seqs, [event.seq for event in log], len(log)) == ([0, 1, 2], [0, 1, 2], 3)


SEEDS = {"starts_at_one": [1], "has_a_gap": [0, 2], "repeats": [0, 0], "falls": [0, 1, 0], "is_true": [False]}


@pytest.mark.parametrize("seqs", SEEDS.values(), ids=SEEDS.keys())
def test_L01_a_seed_whose_seqs_do_not_count_from_zero_is_refused(make, seqs):
    seed = [Event(seq, 1, TurnStart(at + 1)) for at, seq in enumerate(seqs)]
    with pytest.raises(InvalidEventError):
        SessionLog.resumed(make.log().header, seed, clock=make.clock())


def test_L03_changing_the_object_that_was_appended_changes_no_log(make):
    meta = {"rows": [1, {"deep": "as it was"}]}
    log = make.log()
    event = log.append(make.result(meta=meta))
    meta["rows"][1]["deep"] = "changed"
    meta["rows"].append(2)
    assert event.payload.meta == {"rows": (1, {"deep": "as it was"})}
    assert log[0] is event


def test_L03_what_is_read_back_cannot_be_changed(make):
    log = make.log()
    meta = log.append(make.result(meta={"rows": [1], "more": {}})).payload.meta
    with pytest.raises(TypeError):
        meta["rows"] = ()
    with pytest.raises(TypeError):
        meta["more"]["x"] = 1
    with pytest.raises(AttributeError):
        log[0].payload.meta = {}
    with pytest.raises(AttributeError):
        meta["rows"].append(2)


def test_L03_a_range_that_was_read_does_not_grow(make):
    log = make.log()
    log.append(TurnStart(1))
    read = (log.since(0), log.surface(), log.messages())
    log.append(UserMessage(make.user()))
    assert [len(part) for part in read] == [1, 0, 0]


def test_L04_a_raising_observer_neither_undoes_the_append_nor_hides_it_from_later_observers(make):
    log = make.log()
    heard = []

    def bad(_event):
        raise RuntimeError("observer")

    log.observe(bad)
    log.observe(heard.append)
    event = log.append(TurnStart(1))
    assert (log.since(0), heard, [str(error) for error in log.observer_failures]) == ((event,), [event], ["observer"])


def test_L04_a_failing_observer_is_told_to_the_report(make):
    told = []
    log = SessionLog(make.log().header, clock=make.clock(), report=told.append)
    log.observe(lambda _event: 1 // 0)
    log.append(TurnStart(1))
    assert ([type(error) for error in told], log.observer_failures) == ([ZeroDivisionError], [])


def test_a_detached_observer_hears_nothing_more(make):
    log = make.log()
    heard = []
    detach = log.observe(heard.append)
    first = log.append(TurnStart(1))
    detach()
    detach()
    log.append(EndSeed())
    assert heard == [first]


def test_an_append_from_inside_an_observer_is_heard_after_the_one_that_caused_it_by_everybody(make):
    log = make.log()
    heard = []

    def answer(event):
        if isinstance(event.payload, TurnStart):
            log.append(StepStart(1, 1))
            log.append(EndSeed())

    log.observe(answer)
    log.observe(lambda event: heard.append(event.type))
    log.append(TurnStart(1))
    assert (make.types(log), heard) == (["turn/start", "step/start", "session/end-seed"],) * 2


def test_news_an_interrupt_left_untold_is_told_before_the_next(make):
    log = make.log()
    heard = []

    def interrupt(event):
        if isinstance(event.payload, TurnStart):
            log.append(StepStart(1, 1))
            raise KeyboardInterrupt

    log.observe(interrupt)
    log.observe(lambda event: heard.append(event.type))
    with pytest.raises(KeyboardInterrupt):
        log.append(TurnStart(1))
    log.append(EndSeed())
    assert heard == ["step/start", "session/end-seed"]


def test_a_refused_append_is_told_to_nobody(make):
    log = make.log()
    heard = []
    log.observe(heard.append)
    with pytest.raises(InvalidEventError):
        log.append(TurnStart(0))
    log.append(TurnStart(1))
    assert [event.seq for event in heard] == [0]


def test_time_never_falls(make):
    log = make.log(times=[50, 40, 60, 10])
    assert [log.append(TurnStart(turn)).time for turn in (1, 2, 3, 4)] == [50, 50, 60, 60]


def test_L07_an_empty_assistant_message_is_logged_and_not_derived(make):
    log = make.log()
    log.append(make.assistant(), source_event_seqs=())
    log.append(make.says("word", message_id="a2"))
    assert (make.types(log), [message.id for message in log.messages()], log.surface()) == (
        ["assistant/message", "assistant/message"],
        ["a2"],
        (0, 1),
    )


def _act(make, log: SessionLog, choice: int, data) -> None:
    """One random legal append."""
    surface = log.surface()
    name = f"m{len(log)}"
    if choice == 0:
        log.append(UserMessage(make.user(name, name)))
    elif choice == 1:
        log.append(make.assistant(*([TextBlock(name)] * data.draw(st.integers(0, 1))), message_id=name))
    elif choice == 2:
        log.append(make.chunk(name))
    elif choice == 3:
        log.append(RequestContext("mock", "m"))
    elif surface:
        first = data.draw(st.integers(0, len(surface) - 1))
        last = data.draw(st.integers(first, len(surface) - 1))
        shadowed = surface[first : last + 1]
        log.append(
            UserMessage(make.user(name, name)),
            surface_op=Replace(shadowed[0], shadowed[-1]),
            source_event_seqs=tuple(sorted(shadowed)),
        )


@settings(deadline=None)
@given(choices=st.lists(st.integers(0, 4), max_size=30), data=st.data())
def test_L08_the_cached_derivation_equals_one_from_scratch_after_every_append(make, choices, data):
    log = make.log()
    for left, choice in reversed(list(enumerate(choices))):
        _act(make, log, choice, data)
        if left == 0 or data.draw(st.booleans()):  # sometimes the cache has to catch up over several appends
            assert (log.messages(), log.surface()) == (fold_messages(log), fold_surface(log))


@settings(deadline=None)
@given(data=st.data())
def test_L08_log_only_events_anywhere_change_no_derivation(make, data):
    plain, mixed = make.log(), make.log()
    log_only = st.lists(st.sampled_from([EndSeed(), make.chunk(), TurnStart(9)]), max_size=2)
    for at in range(data.draw(st.integers(0, 8))):
        message = UserMessage(make.user(str(at), f"m{at}"))
        plain.append(message)
        for payload in (*data.draw(log_only), message, *data.draw(log_only)):
            mixed.append(payload)
        assert mixed.messages() == plain.messages()


@settings(deadline=None)
@given(choices=st.lists(st.integers(0, 4), max_size=20), data=st.data())
def test_replaying_a_log_as_a_seed_gives_the_same_messages(make, choices, data):
    log = make.log()
    for choice in choices:
        _act(make, log, choice, data)
    again = SessionLog.resumed(log.header, log.since(0), clock=make.clock())
    assert (again.messages(), again[: len(log)]) == (log.messages(), log.since(0))


def test_messages_are_shared_and_not_derived_twice(make):
    log = make.log()
    log.append(UserMessage(make.user()))
    first = log.messages()
    log.append(EndSeed())
    assert log.messages().extends(first)


def test_messages_that_were_handed_out_stay_as_they_were(make):
    log = make.log()
    log.append(UserMessage(make.user(message_id="m1")))
    before = log.messages()
    log.append(UserMessage(make.user(message_id="m2")))
    both = log.messages()
    log.append(UserMessage(make.user(message_id="m3")), surface_op=Replace(0, 1), source_event_seqs=(0, 1))
    assert [[message.id for message in each] for each in (before, both, log.messages())] == [
        ["m1"],
        ["m1", "m2"],
        ["m3"],
    ]
    assert (both.extends(before), log.messages().extends(both)) == (True, False)


def test_last_finds_the_latest_event_of_the_types_asked_for(make):
    log = make.log()
    for payload in (TurnStart(1), StepStart(1, 1), make.chunk()):
        log.append(payload)
    assert (log.last(TurnStart, StepStart), log.last(EndSeed), log.last()) == (log[1], None, None)


def test_reads_by_index_range_and_direction_agree(make):
    log = make.log()
    make.turn(log, chunks=4)
    events = list(log)
    assert (list(reversed(log)), log[-1], log[2:5], log.since(3), log.since(-1), log[::-2]) == (
        events[::-1],
        events[-1],
        tuple(events[2:5]),
        tuple(events[3:]),
        tuple(events),
        tuple(events[::-2]),
    )


def test_a_packed_run_reads_like_its_events(make):
    log = make.log()
    make.turn(log, chunks=5)
    packed = make.log()
    for row in pack(log.since(0)):
        if "seq0" in row:
            packed.restore_row(unpack(row))
        else:
            packed.restore(log[row["seq"]])
    assert (list(packed), list(reversed(packed)), packed[-6:], packed.since(7), packed.last(AssistantChunk)) == (
        list(log),
        list(reversed(log)),
        log[-6:],
        log.since(7),
        log.last(AssistantChunk),
    )


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_events_without_chunks_are_found_behind_and_inside_packed_runs(make, packed):
    log = make.log()
    make.turn(log, chunks=5)
    read = make.log()
    for row in pack(log.since(0)) if packed else ():
        if "seq0" in row:
            read.restore_row(unpack(row))
        else:
            read.restore(log[row["seq"]])
    read = read if packed else log
    expected = [event for event in log if not isinstance(event.payload, AssistantChunk)]
    assert [list(read.without_chunks(first)) for first in (0, 8, -3, 99)] == [
        expected,
        [event for event in expected if event.seq >= 8],
        expected,
        [],
    ]


def test_a_packed_run_that_does_not_come_next_is_refused_whole(make):
    log = make.log()
    for text in "abc":
        log.append(make.chunk(text))
    (row,) = pack(log.since(0))
    with pytest.raises(InvalidEventError):
        log.restore_row(unpack(row))
    assert len(log) == 3


def test_an_event_out_of_range_is_an_index_error(make):
    with pytest.raises(IndexError):
        make.log()[0]
