"""Values that write their own constructor are dataclasses all the same."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, asdict, fields, replace
from inspect import signature
from typing import Any

import pytest

from harness.log.events import EndSeed, Event
from harness.model.messages import Message, MessageId, TextBlock, UserSource

MESSAGE = Message(MessageId("m"), "user", (TextBlock("hi"),), UserSource())
EVENT = Event(3, 5, EndSeed(), None, (1, 2), True)
VALUES = pytest.mark.parametrize("value", [MESSAGE, EVENT], ids=["message", "event"])


@VALUES
def test_its_constructor_takes_its_fields_in_order_with_their_defaults(value: Any) -> None:
    taken = [(name, taken.default) for name, taken in signature(type(value)).parameters.items()]
    assert [name for name, _ in taken] == [field.name for field in fields(value)]
    assert [default for _, default in taken][-3:] == (
        [None, None, False] if value is EVENT else [signature(Message).empty] * 3
    )


@VALUES
def test_it_is_built_compared_copied_and_frozen_like_one(value: Any) -> None:
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    assert type(value)(**parts) == value == replace(value) == pickle.loads(pickle.dumps(value))  # noqa: S301 - our own
    assert list(asdict(value)) == list(parts)
    with pytest.raises(FrozenInstanceError):
        setattr(value, next(iter(parts)), 1)
