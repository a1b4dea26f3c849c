"""An address means a dialect and an operation, under every prefix it may have."""

from __future__ import annotations

import pytest

from mock_provider.dialects.codec import PLAIN
from mock_provider.dialects.places import PLACES, Place
from mock_provider.dialects.table import BASE_PATHS, DIALECTS
from mock_provider.routes import SUPPORTED, find_route


@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.name))
def test_every_address_is_found_under_every_prefix_of_its_dialect(place: Place) -> None:
    headers = dict.fromkeys(place.marks, "x")
    special = DIALECTS[place.name].addresses
    for address, (method, spelled) in zip(place.addresses, place.lines, strict=True):
        path = spelled.replace("{model*}", "a/b").replace("{", "").replace("}", "").replace("*", "")
        for prefix in place.prefixes:
            route = find_route(method, prefix + path, headers)
            assert (route.operation, route.dialect, route.address) == (
                "found",
                place.name,
                special.get(address, PLAIN),
            )


@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.name))
def test_what_is_special_about_an_address_belongs_to_one_of_the_place(place: Place) -> None:
    assert DIALECTS[place.name].name == place.name
    assert set(DIALECTS[place.name].addresses) <= set(place.addresses)


def test_what_stands_in_braces_is_unquoted_and_may_hold_slashes() -> None:
    assert find_route("GET", "/v1/models/org%2Fa/b%20c", {}).arguments == {"model": "org/a/b c"}


@pytest.mark.parametrize(
    ("path", "headers", "dialect"),
    [
        pytest.param("/v1/nothing", {}, "openai_chat", id="nobody-known"),
        pytest.param("/v1/nothing", {"anthropic-version": "2023-06-01"}, "anthropic_messages", id="by-header"),
        pytest.param("/anthropic/v1/nothing", {}, "anthropic_messages", id="by-path"),
    ],
)
def test_an_unknown_address_keeps_the_dialect_that_the_client_speaks(
    path: str, headers: dict[str, str], dialect: str
) -> None:
    route = find_route("GET", path, headers)
    assert (route.operation, route.dialect, route.address) == ("unknown", dialect, None)


def test_another_method_is_told_from_an_unknown_address() -> None:
    assert [find_route(method, "/v1/messages", {}).operation for method in ("POST", "GET")] == ["found", "wrong_method"]


def test_a_head_request_is_answered_like_a_get() -> None:
    assert [find_route("HEAD", path, {}).operation for path in ("/v1/models", "/", "/nothing")] == [
        "found",
        "alive",
        "unknown",
    ]


def test_every_dialect_has_a_base_url_of_its_name_and_a_line_in_the_list_of_the_supported() -> None:
    assert set(DIALECTS) <= set(BASE_PATHS)
    assert [line.strip().partition(":")[0] for line in SUPPORTED.splitlines()[1:]] == list(DIALECTS)
