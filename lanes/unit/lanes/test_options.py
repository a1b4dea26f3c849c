"""The words of the command line: what cannot be meant is refused before anything is started or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.errors import UsageError
from lanes.live_run import LiveWish
from lanes.options import (
    parse_live_wish,
    parse_number,
    parse_out,
    parse_root,
    parse_run_id,
    parse_shard,
    parse_workers,
)
from lanes.policy import LOCAL_ENVIRONMENT, LanePolicy, lane_of_environment, lane_policy

LONG = "9" * 5_000  # Python itself refuses to make a number of that many digits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(None, "", id="not-given"),
        pytest.param("nightly-2031-03-04", "nightly-2031-03-04", id="a-name"),
        pytest.param("9", "9", id="one-digit"),
        pytest.param("a" * 64, "a" * 64, id="as-long-as-may-be"),
    ],
)
def test_a_run_id_is_a_name(text: str | None, found: str) -> None:
    assert parse_run_id(text) == found


@pytest.mark.parametrize("text", ["", "../x", "-x", ".x", "a b", "a/b", "a\n", "\u00e4", "\ud800", "a" * 65])
def test_whatever_else_is_no_run_id(text: str) -> None:
    with pytest.raises(UsageError, match="--run-id is"):
        parse_run_id(text)


def test_a_shard_is_one_of_ten_thousand_at_most() -> None:
    assert [parse_shard(text) for text in ("1/1", "2/3", "10000/10000")] == [(1, 1), (2, 3), (10_000, 10_000)]


@pytest.mark.parametrize(
    "text", ["", "1", "0/2", "3/2", "1/10001", "-1/2", "1/2/3", f"1/{LONG}", "\u0661/\u0662", "a/b"]
)
def test_whatever_else_is_no_shard(text: str) -> None:
    with pytest.raises(UsageError, match="--shard is"):
        parse_shard(text)


@pytest.mark.parametrize("text", ["many", "-1", "65", LONG, "", "1.5"])
def test_a_number_of_workers_is_a_small_one_or_auto(text: str) -> None:
    assert [parse_workers(each) for each in ("auto", "0", "64")] == ["auto", "0", "64"]
    with pytest.raises(UsageError, match="-n is"):
        parse_workers(text)


@pytest.mark.parametrize("text", ["0", "10", LONG, "two", "\u0663"])
def test_a_number_lies_between_its_ends(text: str) -> None:
    assert parse_number("lanes x", "--y", "9", least=1, most=9) == 9
    with pytest.raises(UsageError, match="--y is"):
        parse_number("lanes x", "--y", text, least=1, most=9)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "lanes").mkdir()
    (tmp_path / "file").write_text("", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("", "names nothing", id="empty"),
        pytest.param("nowhere", "there is no folder", id="missing"),
        pytest.param("file", "there is no folder", id="file"),
        pytest.param("file/below", "there is no folder", id="below-a-file"),
        pytest.param("lanes", "there is no folder lanes here", id="no-project"),
    ],
)
def test_a_root_is_the_folder_of_a_project(root: Path, name: str, said: str) -> None:
    assert parse_root(str(root)) == root
    with pytest.raises(UsageError, match=said):
        parse_root(str(root / name) if name else "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("", "names nothing", id="empty"),
        pytest.param("file", "is no folder", id="file"),
        pytest.param("file/below/that", "is no folder", id="below-a-file"),
    ],
)
def test_evidence_lies_in_a_folder_that_is_there_or_can_be(root: Path, name: str, said: str) -> None:
    assert parse_out(root, "to/come") == root / "to" / "come"
    assert not (root / "to").exists()
    with pytest.raises(UsageError, match=said):
        parse_out(root, name)


def wish_of(policy: LanePolicy, **given: str) -> LiveWish:
    texts = [given.get(name) for name in ("target", "model", "attempts", "budget_usd")]
    return parse_live_wish(policy, *texts)


def test_the_lane_with_its_own_model_takes_a_number_of_attempts_and_no_other_word_for_models() -> None:
    local = lane_of_environment(LOCAL_ENVIRONMENT)

    assert wish_of(local, attempts="7").attempts == 7
    with pytest.raises(UsageError, match="--model, --budget-usd is for hosted models"):
        wish_of(local, model="m", budget_usd="1")


def test_the_model_of_this_machine_as_a_target_names_its_environment() -> None:
    with pytest.raises(UsageError) as refused:
        wish_of(lane_policy("real"), target="local")

    assert refused.value.fix == "tox -e real-local"
