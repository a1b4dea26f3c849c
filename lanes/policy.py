"""The one table: what each lane may claim, reach and carry, and the texts of its column.

Anyone may come in; this room imports `lanes.errors` only. No test, option or variable changes it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from lanes.errors import UsageError

Provenance = Literal["none", "scripted", "recorded", "live"]
Network = Literal["loopback", "none", "providers", "local"]
Channel = Literal["scripted", "loopback", "session-log", "cassette", "live"]
Marker = Literal["tox", "self"]

PROVENANCES: tuple[Provenance, ...] = ("none", "scripted", "recorded", "live")  # weakest first
DUMMY_KEY = "no-key-in-this-lane"  # what a client is given when it insists on a key; the guard knows it by value


@dataclass(frozen=True, slots=True)
class ColumnText:
    """What is printed with a column, in every output.

    Shape: DATE, MODEL and HOST in a sub-heading are filled in from the evidence, and never by hand.
    """

    heading: str
    sub_heading: str
    supports: str
    does_not_prove: str


@dataclass(frozen=True, slots=True)
class LanePolicy:
    """One lane.

    Shape: `ceiling` is the strongest class its records may have; `network` the addresses its processes may reach;
    `keys` says whether provider keys are kept; `channels` are the kinds of channel that its tests can get; `part` is
    the folder in the lane's own that this environment of it runs, empty for all of it; `folder` is the lane's own,
    where a project keeps its tests elsewhere.
    Limits: `retries` further attempts after a failed one; every attempt is kept and shown.
    """

    name: str
    ceiling: Provenance
    network: Network
    keys: Literal["removed", "required"]
    retries: int
    channels: frozenset[Channel]
    text: ColumnText
    part: str = ""
    folder: str = ""

    @property
    def keyless(self) -> bool:
        """Whether no key may reach the lane."""
        return self.keys == "removed"

    @property
    def is_live(self) -> bool:
        """Whether a model answers; nothing that could answer in its place may be loaded then."""
        return self.ceiling == "live"

    @property
    def home(self) -> str:
        """The folder of the lane, from the project's root."""
        return self.folder or f"lanes/{self.name}"

    @property
    def suite(self) -> str:
        """The folder of the tests that run, from the project's root."""
        return f"{self.home}/{self.part}" if self.part else self.home

    @property
    def heading(self) -> str:
        """The column's heading."""
        return self.text.heading

    @property
    def sub_heading(self) -> str:
        """Who answers in this lane."""
        return self.text.sub_heading

    @property
    def supports(self) -> str:
        """What a pass in this column supports."""
        return self.text.supports

    @property
    def does_not_prove(self) -> str:
        """What a pass in this column leaves open."""
        return self.text.does_not_prove


_UNIT = LanePolicy(
    name="unit",
    ceiling="scripted",
    network="loopback",
    keys="removed",
    retries=0,
    channels=frozenset({"scripted"}),
    text=ColumnText(
        heading="Unit",
        sub_heading="parts in isolation; stand-in answers, if any",
        supports="these functions and state machines do what their tests say",
        does_not_prove="that the parts are wired together; anything about a model or a wire",
    ),
)
_SNAPSHOT = LanePolicy(
    name="snapshot",
    ceiling="scripted",
    network="none",
    keys="removed",
    retries=0,
    channels=frozenset({"scripted"}),
    text=ColumnText(
        heading="Snapshot",
        sub_heading="scripted answers, whole program",
        supports="the assembled program turns these given answers into exactly this transcript, log and request header",
        does_not_prove=(
            "that a model would ever give these answers, or that the expected output was right when accepted; "
            "that a real client accepts this transcript"
        ),
    ),
)
_REPLAY = LanePolicy(
    name="replay",
    ceiling="recorded",
    network="none",
    keys="removed",
    retries=0,
    channels=frozenset({"session-log", "cassette"}),
    text=ColumnText(
        heading="Replay",
        sub_heading="recorded answers, recorded on DATE from MODEL",
        supports="the loop reproduces these past conversations from their recordings",
        does_not_prove="today's model, endpoint or prompts; any path the recording did not take; other clients",
    ),
)
_OFFLINE = LanePolicy(
    name="offline",
    ceiling="scripted",
    network="loopback",
    keys="removed",
    retries=0,
    channels=frozenset({"loopback"}),
    text=ColumnText(
        heading="Offline",
        sub_heading="scripted mock model over loopback, no key",
        supports="the adapter, retry rules and loop handle this wire behaviour",
        does_not_prove="that the provider behaves like the mock; cost, latency or quality of a real model",
    ),
)
_REAL = LanePolicy(
    name="real",
    ceiling="live",
    network="providers",
    keys="required",
    retries=2,
    channels=frozenset({"live"}),
    text=ColumnText(
        heading="Real API",
        sub_heading="live, MODEL at HOST, on DATE",
        supports="in this run, on this commit, this model completed these tasks",
        does_not_prove="other models, other days, unlisted tasks, repeatability beyond the attempts shown",
    ),
)

LANES: Mapping[str, LanePolicy] = MappingProxyType(
    {policy.name: policy for policy in (_UNIT, _SNAPSHOT, _REPLAY, _OFFLINE, _REAL)}
)

LOCAL_ENVIRONMENT = "real-local"
# The lane `real` with the model that it starts itself: no key comes in, and nothing but that model's port is reached.
_REAL_LOCAL = replace(_REAL, network="local", keys="removed", part="local")

GUARDS = ColumnText(
    heading="Guards",
    sub_heading="break-it proofs",
    supports="these tests can fail, and fail for the stated reason",
    does_not_prove="that untested behaviour is correct",
)

# Which lane an environment fills. None: it fills no column.
ENVIRONMENTS: Mapping[str, str | None] = MappingProxyType(
    {
        "unit": "unit",
        "snapshot": "snapshot",
        "replay": "replay",
        "offline": "offline",
        "offline-clients": "offline",
        "real": "real",
        LOCAL_ENVIRONMENT: "real",
        "record": None,
    }
)

MODULES_REFUSED_WITHOUT_KEY: tuple[str, ...] = ("uvloop", "pycurl", "curl_cffi", "grpc")  # they bring their own sockets
MODULES_REFUSED_WITH_KEY: tuple[str, ...] = ("respx", "vcr", "mock_provider")  # they answer in a provider's place


def weakest(classes: tuple[Provenance, ...]) -> Provenance:
    """Return the weakest of the classes, `none` for no class at all."""
    return min(classes, key=PROVENANCES.index, default="none")


def lane_policy(name: str) -> LanePolicy:
    """Return the policy of the lane of that name.

    Raises: UsageError that suggests the nearest name.
    """
    policy = LANES.get(name)
    if policy is not None:
        return policy
    near = difflib.get_close_matches(name, LANES, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    message = f"lane {name!r} is unknown{suggestion}"
    raise UsageError(message, expected=f"one of {', '.join(LANES)}")


def lane_of_environment(environment: str) -> LanePolicy:
    """Return the policy of the lane that an environment fills.

    Raises: UsageError for an environment that fills no column or is unknown.
    """
    name = ENVIRONMENTS.get(environment, environment)
    if name is None:
        message = f"environment {environment!r} is not a lane and fills no column"
        raise UsageError(message, expected=f"one of {', '.join(LANES)}")
    return _REAL_LOCAL if environment == LOCAL_ENVIRONMENT else lane_policy(name)


def check_marker(asked: str, mark: str | None, tox_environment: str | None) -> tuple[LanePolicy, Marker]:
    """Return the lane, and who says so, when argument, marker and active environment agree.

    Shape: outside tox nothing but the argument speaks, and the marker is `self`.
    Raises: UsageError that names all three when they disagree.
    """
    policy = lane_of_environment(asked)
    voices = {"argument": asked, "LANE_MARK": mark, "TOX_ENV_NAME": tox_environment}
    for voice, said in voices.items():
        if said and ENVIRONMENTS.get(said) != policy.name:
            told = ", ".join(f"{name} {value!r}" for name, value in voices.items() if value)
            message = f"{voice} does not name lane {policy.name!r}: {told}"
            raise UsageError(
                message,
                expected="argument, marker and active environment that agree, or no marker at all",
                fix="start lanes with `tox -e LANE`, or outside tox with neither variable set",
                code="LANE_MARK",
            )
    return policy, ("tox" if mark and tox_environment else "self")
