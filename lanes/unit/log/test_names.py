"""Names of folders."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.log.names import MAX_SLUG, NO_PROJECT, segment_of, slug_of
from harness.model.messages import SessionId

IDS = st.text(st.characters(codec=None, categories=None), min_size=1, max_size=30)

HOSTILE = {
    "parent": "../../etc/passwd",
    "dot": ".",
    "two_dots": "..",
    "nul": "a\x00b",
    "slash": "a/b",
    "backslash": "a\\b",
    "lone_surrogate": "\ud83d",
    "newline": "a\nb",
    "percent": "%2e%2e",
    "tilde": "~root",
    "very_long": "x" * 5000,
    "upper": "ABC",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_P02_a_hostile_id_stays_one_plain_folder_name(name):
    segment = segment_of(SessionId(name))
    assert set(segment) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_%~")
    assert 0 < len(segment.encode()) < 200


@settings(deadline=None)
@given(one=IDS, other=IDS)
@example(one="a", other="A")
@example(one=".", other="%2e")
@example(one="x" * 300, other="x" * 301)
@example(one="\ud83d", other="%ed%a0%bd")
def test_P02_two_ids_never_share_a_name_even_where_case_is_one(one, other):
    same = segment_of(SessionId(one)).casefold() == segment_of(SessionId(other)).casefold()
    assert same == (one == other)


def test_P02_the_names_of_hostile_ids_are_all_different():
    assert len({segment_of(SessionId(name)) for name in HOSTILE.values()}) == len(HOSTILE)


def test_P02_an_ordinary_id_is_its_own_name():
    assert segment_of(SessionId("session-0f3a_1")) == "session-0f3a_1"


def test_P02_an_empty_id_is_refused():
    with pytest.raises(UsageError):
        segment_of(SessionId(""))


SLUGS = {
    "absent": (None, NO_PROJECT),
    "plain": ("/home/ada/my project", "home-ada-my-project"),
    "root": ("/", "root"),
    "dots": ("/../..", "root"),
    "hidden": ("/.cache", "cache"),
    "letters_of_the_world": ("/価格", "root"),
}


@pytest.mark.parametrize(("cwd", "slug"), SLUGS.values(), ids=SLUGS.keys())
def test_a_project_folder_is_readable(cwd, slug):
    assert slug_of(cwd) == slug


@settings(deadline=None)
@given(cwd=IDS.map(lambda path: "/" + path))
def test_a_project_folder_is_bounded_and_never_hidden(cwd):
    slug = slug_of(cwd)
    assert 0 < len(slug) <= MAX_SLUG
    assert slug[0] not in ".-"
    assert "/" not in slug
