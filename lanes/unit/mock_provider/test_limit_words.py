"""Limits as a person writes them."""

from __future__ import annotations

import pytest

from mock_provider.errors import UsageError
from mock_provider.limit_words import read_limits
from mock_provider.limits import Limits


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        pytest.param([], Limits(), id="none"),
        pytest.param(["body=64MiB"], Limits(body_bytes=64 << 20), id="mib"),
        pytest.param(["header=8kib", "script=1GiB"], Limits(header_bytes=8 << 10, script_bytes=1 << 30), id="two"),
        pytest.param(["event=100"], Limits(event_bytes=100), id="bytes"),
        pytest.param(["receive=5s", "idle=7"], Limits(receive_s=5, idle_s=7), id="times"),
        pytest.param(["connections=0"], Limits(connections=0), id="as-many-as-there-are"),
        pytest.param(["body=1", "body=2"], Limits(body_bytes=2), id="the-last-counts"),
    ],
)
def test_a_limit_is_read(words: list[str], limits: Limits) -> None:
    assert read_limits(words) == limits


@pytest.mark.parametrize(
    ("word", "what"),
    [
        pytest.param("bdy=1", "limit 'bdy=1' is unknown; did you mean 'body'?", id="name"),
        pytest.param("body", "limit 'body' is unknown", id="no-size"),
        pytest.param("body=large", "limit 'body=large' has no size", id="word"),
        pytest.param("body=5s", "limit 'body=5s' has no size", id="time-for-a-size"),
        pytest.param("receive=5MiB", "limit 'receive=5MiB' has no size", id="size-for-a-time"),
        pytest.param("body=0", "limit 'body=0' lets nothing through", id="zero"),
        pytest.param("body=-1", "limit 'body=-1' has no size", id="negative"),
    ],
)
def test_a_mistake_is_told(word: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_limits([word])
    assert str(caught.value).startswith(f"--limit: {what}")
