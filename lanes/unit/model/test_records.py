"""A quicker way to fill a frozen dataclass."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest

from harness.log import events
from harness.model import chunks, messages
from harness.model.messages import MessageId, TextBlock, UserSource
from harness.model.records import made_often


@dataclasses.dataclass(frozen=True, slots=True)
class Slow:
    one: int
    two: tuple[int, ...] = ()
    three: str | None = None


@made_often
@dataclasses.dataclass(frozen=True, slots=True)
class Quick:
    one: int
    two: tuple[int, ...] = ()
    three: str | None = None


CALLS = {
    "in_order": ((1, (2,), "x"), {}),
    "by_name": ((), {"three": "x", "one": 1}),
    "defaults": ((1,), {}),
}


@pytest.mark.parametrize(("values", "named"), CALLS.values(), ids=CALLS.keys())
def test_it_is_filled_as_dataclass_would_fill_it(values, named):
    assert dataclasses.astuple(Quick(*values, **named)) == dataclasses.astuple(Slow(*values, **named))


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, (), None, 4), {}), ((1,), {"four": 4})], ids=str)
def test_what_dataclass_would_refuse_is_refused(values, named):
    for kind in (Slow, Quick):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_it_stays_frozen_comparable_and_copyable():
    value = Quick(1, (2,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.one = 2
    again = [dataclasses.replace(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))]  # noqa: S301 - our own
    assert (again, hash(value), repr(value)) == (
        [value] * 3,
        hash(Quick(1, (2,))),
        "Quick(one=1, two=(2,), three=None)",
    )


def test_a_default_factory_is_refused():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Fresh:
        items: list[int] = dataclasses.field(default_factory=list)

    with pytest.raises(TypeError, match=r"Fresh\.items"):
        made_often(Fresh)


def test_every_value_of_a_log_takes_the_fields_it_declares_in_their_order():
    for room in (messages, chunks, events):
        for kind in vars(room).values():
            if dataclasses.is_dataclass(kind):
                assert list(inspect.signature(kind).parameters) == [field.name for field in dataclasses.fields(kind)]


def test_a_message_is_made_by_name_too():
    message = messages.Message(id=MessageId("m"), role="user", content=(TextBlock("x"),), source=UserSource())
    assert message == messages.Message(MessageId("m"), "user", (TextBlock("x"),), UserSource())
