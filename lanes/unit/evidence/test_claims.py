"""The claims file: what it says, and how its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.claims import CLAIMS_FILE, Claim, Claims, load_claims, parse_claims
from lanes.errors import ClaimsError

ROOT = CLAIMS_FILE.parent.parent
GOOD = """\
schema = "claims/1"

[[claim]]
id = "journey.fix-test"
sentence = "It is fixed."
surface = "headless"
required = ["offline", "snapshot"]
optional = ["real"]
min_answers = { offline = 3 }
nonce = true
condition = "429"
owner = "journeys"
folders = ["lanes/offline/fix"]
"""
JOURNEYS = (
    "journey.fix-test",
    "journey.resume-session",
    "journey.parallel-tools",
    "journey.tool-failures",
    "journey.cancel-mid-stream",
    "journey.retry-then-success",
    "journey.max-tokens",
    "journey.shell-time-limit",
)


def test_a_claim_says_what_each_lane_has_to_show() -> None:
    claim = parse_claims(GOOD).by_id["journey.fix-test"]

    assert claim == Claim(
        id="journey.fix-test",
        sentence="It is fixed.",
        surface="headless",
        required=("offline", "snapshot"),
        optional=("real",),
        min_answers={"offline": 3},
        nonce=True,
        condition="429",
        owner="journeys",
        folders=("lanes/offline/fix",),
        line=3,
    )
    assert (claim.lanes, [claim.answers_needed(lane) for lane in ("offline", "snapshot", "real")]) == (
        ("snapshot", "offline", "real"),
        [3, 0, 1],
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param('schema = "claims/1"', "", "lanes/claims.toml: schema is None [CLAIMS]", id="schema"),
        pytest.param(
            'schema = "claims/1"',
            'schema = "claims/1"\nclaims = 1',
            "field 'claims' is unknown; did you mean 'claim'?",
            id="top",
        ),
        pytest.param(
            "nonce = true",
            "nonse = true",
            "lanes/claims.toml:10: field 'nonse' is unknown; did you mean 'nonce'?",
            id="field",
        ),
        pytest.param(
            'sentence = "It is fixed."', "", "lanes/claims.toml:3: field 'sentence' is missing or empty", id="missing"
        ),
        pytest.param(
            '"journey.fix-test"', '"Journey"', "lanes/claims.toml:4, field 'id': id 'Journey' is malformed", id="id"
        ),
        pytest.param(
            '"snapshot"]',
            '"snapshots"]',
            "lanes/claims.toml:7, field 'required': lane 'snapshots' is unknown; did you mean 'snapshot'?",
            id="lane",
        ),
        pytest.param(
            '"snapshot"]', '"offline"]', "lanes/claims.toml:7: field 'required' names a lane twice", id="twice"
        ),
        pytest.param(
            '["real"]',
            '["offline"]',
            "lanes/claims.toml:8, field 'optional': lane 'offline' is both required and optional",
            id="both",
        ),
        pytest.param(
            'required = ["offline", "snapshot"]\noptional = ["real"]', "", "no lane is asked for", id="no-lane"
        ),
        pytest.param(
            "{ offline = 3 }",
            "{ unit = 3 }",
            "lanes/claims.toml:9, field 'min_answers': lane 'unit' is not asked for by this claim",
            id="not-asked",
        ),
        pytest.param(
            "{ offline = 3 }", "{ offline = -3 }", "lanes/claims.toml:9: min_answers.offline is -3", id="negative"
        ),
        pytest.param("{ offline = 3 }", "{ offline = true }", "min_answers.offline is True", id="true-is-no-number"),
        pytest.param("{ offline = 3 }", "3", "lanes/claims.toml:9: field 'min_answers' is 3", id="no-table"),
        pytest.param("nonce = true", "expected_usd = true", "field 'expected_usd' is True", id="cost-true"),
        pytest.param("nonce = true", "expected_usd = 0", "field 'expected_usd' is 0", id="cost-of-nothing"),
        pytest.param("nonce = true", "expected_usd = nan", "field 'expected_usd' is nan", id="cost-no-number"),
        pytest.param("nonce = true", 'nonce = "yes"', "lanes/claims.toml:10: field 'nonce' is 'yes'", id="flag"),
        pytest.param(
            'condition = "429"', "condition = 429", "lanes/claims.toml:11: field 'condition' is 429", id="text"
        ),
        pytest.param('["lanes/offline/fix"]', '["../secrets"]', "folder '../secrets' is malformed", id="folder"),
        pytest.param('["lanes/offline/fix"]', "[1]", "lanes/claims.toml:13: field 'folders' is [1]", id="list"),
        pytest.param("[[claim]]", "[claim]", "field 'claim' is no list of tables", id="no-list"),
        pytest.param("[[claim]]", "[[claim", "lanes/claims.toml: is no TOML: ", id="no-toml"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, message: str) -> None:
    with pytest.raises(ClaimsError) as caught:
        parse_claims(GOOD.replace(old, new))

    assert (message in str(caught.value), caught.value.exit_code) == (True, 2)


def test_every_mistake_is_told_at_once_with_file_line_and_field() -> None:
    text = """\
schema = "claims/1"
[[claim]]  # the first
id = "Broken"
sentence = "It holds."
surface = "wire"
required = ["ofline", "unit"]
min_answers = { unit = -1 }
nonce = "yes"
ovner = "me"
[[claim]]
id = "second.one"
sentence = "It holds, too."
surface = "wire"
optional = []
owner = "me"
"""

    with pytest.raises(ClaimsError) as caught:
        parse_claims(text)

    assert [line for line in str(caught.value).splitlines() if not line.startswith(" ")] == [
        "lanes/claims.toml:2: field 'owner' is missing or empty [CLAIMS]",
        "lanes/claims.toml:3, field 'id': id 'Broken' is malformed [CLAIMS]",
        "lanes/claims.toml:6, field 'required': lane 'ofline' is unknown; did you mean 'offline'? [CLAIMS]",
        "lanes/claims.toml:7: min_answers.unit is -1 [CLAIMS]",
        "lanes/claims.toml:8: field 'nonce' is 'yes' [CLAIMS]",
        "lanes/claims.toml:9: field 'ovner' is unknown; did you mean 'owner'? [CLAIMS]",
        "lanes/claims.toml:10, field 'required': no lane is asked for [CLAIMS]",
    ]


def test_two_claims_of_one_id_are_told_with_both_places() -> None:
    with pytest.raises(ClaimsError, match=r"claim 'journey\.fix-test' is there twice, first in line 3") as caught:
        parse_claims(GOOD + GOOD.partition("\n")[2])

    assert caught.value.where == "lanes/claims.toml:16, field 'id'"


def test_status_34_a_test_that_names_an_unknown_claim_is_told_the_nearest_one() -> None:
    claims = parse_claims(GOOD)

    with pytest.raises(ClaimsError) as caught:
        claims.check_ids(("journey.fix-test", "journey.fix-tset"), where="test_a.py::test_one")

    assert str(caught.value).splitlines()[0] == (
        "test_a.py::test_one: claim 'journey.fix-tset' is unknown; did you mean 'journey.fix-test'? [CLAIMS]"
    )


def test_a_test_speaks_for_the_claims_it_names_and_those_of_its_folder_once() -> None:
    claims = parse_claims(GOOD)

    found = (
        claims.ids_for("lanes/offline/fix/test_a.py::test_one", ("other.claim", "journey.fix-test")),
        claims.ids_for("lanes/offline/fix/test_a.py::test_one"),
        claims.ids_for("lanes/offline/fixes/test_a.py::test_one"),
        claims.ids_for("lanes/offline/test_a.py::test_one[lanes/offline/fix/]"),
    )

    assert found == (("other.claim", "journey.fix-test"), ("journey.fix-test",), (), ())


def test_a_claims_file_that_is_not_there_is_told_without_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(ClaimsError, match="cannot be read: No such file or directory"):
        load_claims(tmp_path / "claims.toml")


def test_a_claims_file_that_is_no_text_is_told_with_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_bytes(b'schema = "\xff"')

    with pytest.raises(ClaimsError, match="is not UTF-8: invalid start byte at byte 10"):
        load_claims(path)


def test_no_claims_are_no_error() -> None:
    assert len(Claims()) == len(parse_claims('schema = "claims/1"')) == 0


def test_the_eight_journeys_are_claims_that_offline_must_show() -> None:
    claims = load_claims()

    assert [claims.by_id[each].id for each in JOURNEYS if "offline" in claims.by_id[each].required] == list(JOURNEYS)


def test_the_first_journeys_are_pinned_in_snapshot_and_replayed() -> None:
    claims = load_claims()
    journeys = [claims.by_id[each] for each in JOURNEYS]
    bound = {lane: {claim.id for claim in journeys if lane in claim.lanes} for lane in ("snapshot", "replay")}

    assert (bound["snapshot"], bound["replay"]) == (
        {"journey.fix-test", "journey.parallel-tools"},
        {*JOURNEYS} - {"journey.parallel-tools", "journey.max-tokens", "journey.shell-time-limit"},
    )


def test_every_room_of_the_unit_suite_belongs_to_a_claim_and_the_other_way_round() -> None:
    claims = load_claims()
    unit = ROOT / "lanes" / "unit"
    rooms = {f"lanes/unit/{path.name}" for path in unit.iterdir() if any(path.glob("**/test_*.py"))}

    assert {folder for claim in claims for folder in claim.folders} == rooms


@pytest.mark.parametrize(
    ("local", "column", "expected"),
    [
        pytest.param(False, "real", True, id="hosted"),
        pytest.param(False, "real:lab", True, id="private-endpoint"),
        pytest.param(False, "real:local", False, id="not-for-a-tiny-model"),
        pytest.param(True, "real:local", True, id="for-a-tiny-model"),
        pytest.param(True, "real", False, id="only-for-a-tiny-model"),
        pytest.param(True, "replay", True, id="other-lanes-as-ever"),
        pytest.param(True, "unit", False, id="a-lane-it-does-not-ask-for"),
    ],
)
def test_a_claim_asks_for_the_columns_that_its_model_can_fill(local: bool, column: str, expected: bool) -> None:
    claim = Claim("a.b", "It holds.", "x", required=("replay",), optional=("real",), local=local)

    assert claim.asks(column) == expected
