"""A regular expression that goes astray fails its request, by name, and holds nobody else up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from mock_provider.cli import main
from mock_provider.json_values import JsonObject
from mock_provider.replies import conversation, script, step
from mock_provider.server import serve
from mock_provider.text_pattern import PatternError, PatternTooSlow, TextPattern

# Patterns with a text on which the standard library's matcher would be at work for hours.
ASTRAY = {
    "nested": (r"^(a|aa)+$", "a" * 60 + "b"),
    "counted": (r"^(.*?,){25}P$", "1,2,3,4,5,6,7,8,9,10," * 8),
    "polynomial": (r"a.*a.*a.*a.*a.*a.*b", "a" * 20_000),
}
HEADERS = {"authorization": "Bearer x"}


def asking(words: str) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": words}]}


@pytest.mark.parametrize(("pattern", "text"), ASTRAY.values(), ids=ASTRAY)
def test_a_search_is_given_up_when_its_time_is_over(pattern: str, text: str) -> None:
    with pytest.raises(PatternTooSlow) as caught:
        TextPattern(pattern).search(text)
    assert (caught.value.pattern, caught.value.length) == (pattern, len(text))


@pytest.mark.parametrize("where", ["expect", "when"])
async def test_its_request_is_refused_and_the_next_client_is_served(where: str) -> None:
    pattern, text = ASTRAY["nested"]
    rule: JsonObject = {"last_user": {"regex": pattern}}
    slow = conversation(step("never", expect=rule)) if where == "expect" else conversation(step("never"), when=rule)
    played = script(conversations={"slow": slow, "other": conversation(step("hi"))})
    async with serve(played) as mock, httpx.AsyncClient(headers=HEADERS) as client:
        named = mock.base_url(conversation="slow") if where == "expect" else mock.base_url()
        both = await asyncio.gather(
            client.post(f"{named}/chat/completions", json=asking(text)),
            client.post(f"{mock.base_url(conversation='other')}/chat/completions", json=asking("x")),
        )
        error = both[0].json()["error"]
        assert [answer.status_code for answer in both] == [400, 200]
        assert (error["code"], "[SCRIPT_REGEX]" in error["message"], pattern in error["message"]) == (
            "mock_unmatched",
            True,
            True,
        )
        assert [entry.rule for entry in mock.journal.entries] == ["SCRIPT_REGEX", None]


def test_the_groups_of_the_first_fit_are_found() -> None:
    found = TextPattern(r"(?P<verb>read|write) (?P<what>\w+)(?P<more>!)?")
    assert (found.search("please write a; read b"), found.search("nothing")) == (
        {"verb": "write", "what": "a", "more": ""},
        None,
    )
    assert found.group_names() == {"verb", "what", "more"}


@pytest.mark.parametrize("text", ["(", "(?P<a>x)(?P<a>y)", "a{99999999999999999999}", "[z-a]", "(?<=a*)b"])
def test_what_is_no_regular_expression_is_said_so(text: str) -> None:
    with pytest.raises(PatternError):
        TextPattern(text)


def test_explain_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern, text = ASTRAY["nested"]
    (tmp_path / "s.json").write_text(
        json.dumps(script(step("never", expect={"last_user": {"regex": pattern}}))), "utf-8"
    )
    (tmp_path / "r.json").write_text(json.dumps(asking(text)), "utf-8")
    assert main(["explain", str(tmp_path / "s.json"), str(tmp_path / "r.json")]) == 3
    said = capsys.readouterr()
    assert ("more than 0.25 s" in said.out, said.err) == (True, "")
