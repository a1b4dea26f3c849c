from __future__ import annotations

import pytest

from lanes.errors import UsageError
from lanes.policy import ENVIRONMENTS, LANES, LOCAL_ENVIRONMENT, check_marker, lane_of_environment, lane_policy, weakest


def test_the_lanes_stand_in_the_order_of_the_columns() -> None:
    assert list(LANES) == ["unit", "snapshot", "replay", "offline", "real"]


def test_only_real_has_keys_retries_and_the_live_ceiling() -> None:
    facts = {name: (each.keyless, each.retries, each.ceiling) for name, each in LANES.items()}

    assert facts == {
        "unit": (True, 0, "scripted"),
        "snapshot": (True, 0, "scripted"),
        "replay": (True, 0, "recorded"),
        "offline": (True, 0, "scripted"),
        "real": (False, 2, "live"),
    }


def test_snapshot_and_replay_are_shut_completely_and_unit_and_offline_keep_loopback() -> None:
    assert {name: each.network for name, each in LANES.items()} == {
        "unit": "loopback",
        "snapshot": "none",
        "replay": "none",
        "offline": "loopback",
        "real": "providers",
    }


def test_every_column_says_what_it_does_not_prove() -> None:
    assert {each.heading: each.does_not_prove for each in LANES.values()} == {
        "Unit": "that the parts are wired together; anything about a model or a wire",
        "Snapshot": (
            "that a model would ever give these answers, or that the expected output was right when accepted; "
            "that a real client accepts this transcript"
        ),
        "Replay": "today's model, endpoint or prompts; any path the recording did not take; other clients",
        "Offline": "that the provider behaves like the mock; cost, latency or quality of a real model",
        "Real API": "other models, other days, unlisted tasks, repeatability beyond the attempts shown",
    }


def test_an_unknown_lane_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UsageError) as caught:
        lane_policy("ofline")

    assert str(caught.value) == (
        "lane 'ofline' is unknown; did you mean 'offline'? [USAGE]\n"
        "  expected: one of unit, snapshot, replay, offline, real"
    )


@pytest.mark.parametrize(
    ("asked", "mark", "tox_environment", "expected"),
    [
        pytest.param("unit", None, None, ("unit", "self"), id="bare-command"),
        pytest.param("unit", "unit", "unit", ("unit", "tox"), id="tox"),
        pytest.param("offline", "offline-clients", "offline-clients", ("offline", "tox"), id="long-environment"),
        pytest.param("unit", "unit", None, ("unit", "self"), id="marker-without-tox"),
    ],
)
def test_the_marker_says_who_set_it(
    asked: str, mark: str | None, tox_environment: str | None, expected: tuple[str, str]
) -> None:
    policy, marker = check_marker(asked, mark, tox_environment)

    assert (policy.name, marker) == expected


@pytest.mark.parametrize(
    ("asked", "mark", "tox_environment"),
    [
        pytest.param("real", "unit", "unit", id="another-lane-asked"),
        pytest.param("unit", "offline", "unit", id="another-mark"),
        pytest.param("unit", "unit", "real", id="another-environment"),
        pytest.param("unit", "unit", "lint", id="no-lane-environment"),
    ],
)
def test_argument_marker_and_environment_that_disagree_start_nothing(
    asked: str, mark: str, tox_environment: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_marker(asked, mark, tox_environment)

    assert caught.value.error_code == "LANE_MARK"


def test_an_environment_that_fills_no_column_is_no_lane() -> None:
    assert ENVIRONMENTS["record"] is None
    with pytest.raises(UsageError, match="fills no column"):
        check_marker("record", None, None)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param((), "none", id="no-answer"),
        pytest.param(("live", "scripted"), "scripted", id="one-scripted"),
        pytest.param(("live", "recorded"), "recorded", id="one-recorded"),
        pytest.param(("live", "live"), "live", id="all-live"),
    ],
)
def test_mixed_answers_have_the_class_of_the_weakest(classes: tuple[str, ...], expected: str) -> None:
    assert weakest(classes) == expected


def test_the_model_of_this_machine_is_asked_in_the_lane_real_with_no_key_and_no_network() -> None:
    local, real = lane_of_environment(LOCAL_ENVIRONMENT), LANES["real"]

    assert (local.name, local.ceiling, local.retries, local.text) == (real.name, real.ceiling, real.retries, real.text)
    assert (local.network, local.keyless, local.is_live, local.suite) == ("local", True, True, "lanes/real/local")
