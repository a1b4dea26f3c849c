"""An address means a dialect and an operation, under every prefix it may have."""

from __future__ import annotations

import pytest

from mock_provider.dialects.table import BASE_PATHS, DIALECTS, ROWS
from mock_provider.routes import SUPPORTED, find_route


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_address_is_found_under_every_prefix_of_its_dialect(row: object) -> None:
    dialect = DIALECTS[getattr(row, "name", "")]
    headers = dict.fromkeys(dialect.marks, "x")
    for address in dialect.addresses:
        path = address.path.replace("{model*}", "a/b").replace("{", "").replace("}", "").replace("*", "")
        for prefix in dialect.prefixes:
            route = find_route(address.method, prefix + path, headers)
            assert (route.operation, route.dialect, route.address) == ("found", dialect.name, address)


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
