"""The environment of a lane's processes: built from an allow-list, so that what nobody thought of is not in it.

Room: the runner builds it, the plugin checks it from inside. Values of keys are counted and compared, never written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lanes.guard import GUARD_VARIABLE, LOOP_PACKAGE, PACKAGE_VARIABLE, SPOOL_VARIABLE, encode_rule
from lanes.namespace import OUTER_VARIABLE
from lanes.policy import DUMMY_KEY, MODULES_REFUSED_WITH_KEY, MODULES_REFUSED_WITHOUT_KEY, LanePolicy
from lanes.providers import Provider
from lanes.reach import REACH_VARIABLE

LANE_VARIABLE = "LANES_LANE"
OUT_VARIABLE = "LANES_OUT"
RUN_VARIABLE = "LANES_RUN_ID"
SHARD_VARIABLE = "LANES_SHARD"
MARK_VARIABLE = "LANE_MARK"
TOX_VARIABLE = "TOX_ENV_NAME"
HOSTS_VARIABLE = "HARNESS_ALLOWED_HOSTS"
NO_HOST = "none.invalid"  # RFC 6761: never resolves, so an allow-list that holds it alone allows nobody

STARTUP_FOLDER = Path(__file__).parent / "startup"
MIN_SECRET_CHARS = 8  # shorter values are words like "true", which occur by chance

_KEPT = frozenset(
    {
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TERM",
        "COLUMNS",
        "NO_COLOR",
        "FORCE_COLOR",
        "CI",
        "GITHUB_SHA",
        "GITHUB_RUN_ID",
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
        "LANE_WORKERS",
        REACH_VARIABLE,
        TOX_VARIABLE,
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONFAULTHANDLER",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "PYTHONPYCACHEPREFIX",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
    }
)
# What `tox -e coverage` tells the children of a process that it measures. It can name code to load, so no lane that
# holds a key keeps it.
_KEPT_WITHOUT_KEY = frozenset({"COVERAGE_PROCESS_CONFIG"})
_KEY_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_ADDRESS_NAME = re.compile(
    r"(?i)(.*_proxy|(ssl|curl|requests)_c(a|ert)_?(file|dir|bundle)|.*_base_url|.*_api_base|netrc|sslkeylogfile)"
)
_LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class LaneEnvironment:
    """What a lane's first process is given.

    Shape: `keys_removed` counts the variables that look like keys and were left out; `secrets` are the values of all
    of them in the environment the lane was started from, so that its output can be searched for them.
    """

    variables: Mapping[str, str]
    keys_removed: int
    secrets: frozenset[str] = field(repr=False)


def build_environment(
    environ: Mapping[str, str],
    policy: LanePolicy,
    *,
    mark: str,
    home: Path,
    spool: Path,
    out: Path,
    run_id: str,
    outside: str,
    providers: Sequence[Provider],
    shard: str = "1/1",
    server: str = "",
    addresses: Sequence[str] = (),
    package: str = LOOP_PACKAGE,
) -> LaneEnvironment:
    """Build the environment of a lane from the one it was started in.

    Shape: server is the HOST:PORT it started itself; addresses are those, as ADDRESS:PORT, that the names of private
    endpoints lead to: the guard lets them through and no other private one.
    """
    names = _KEPT | _KEPT_WITHOUT_KEY if policy.keyless else _KEPT
    kept = {name: value for name, value in environ.items() if name in names or name.startswith("LC_")}
    keys = {name for name, value in environ.items() if is_key_name(name) and value.strip()}
    if not policy.keyless:
        allowed = {provider.key for provider in providers}
        kept.update({name: environ[name] for name in keys & allowed})
    hosts = (server,) if policy.network == "local" else tuple(provider.host for provider in providers)
    tunnels = tuple(each.tunnel.rpartition(":")[0] for each in providers if each.tunnel)
    paths = [str(STARTUP_FOLDER), *filter(None, [environ.get("PYTHONPATH")])]
    secrets = frozenset(environ[name].strip() for name in keys if len(environ[name].strip()) >= MIN_SECRET_CHARS)
    variables = kept | {
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "MOCK_PROVIDER_PLAIN": "1",  # its fast event loop opens sockets where the guard does not see them
        HOSTS_VARIABLE: ",".join(_allowed_hosts(policy, hosts)),
        MARK_VARIABLE: mark,
        LANE_VARIABLE: policy.name,
        OUT_VARIABLE: str(out),
        RUN_VARIABLE: run_id,
        SHARD_VARIABLE: shard,
        SPOOL_VARIABLE: str(spool),
        PACKAGE_VARIABLE: package,
        OUTER_VARIABLE: outside,
        GUARD_VARIABLE: encode_rule(
            policy.name, policy.network, refused_modules(policy), (*hosts, *tunnels, *addresses)
        ),
    }
    return LaneEnvironment(variables, len(keys - kept.keys()), secrets)


def refused_modules(policy: LanePolicy) -> tuple[str, ...]:
    """Return the modules that may not be loaded in the lane."""
    return MODULES_REFUSED_WITH_KEY if policy.is_live else MODULES_REFUSED_WITHOUT_KEY


def is_key_name(name: str) -> bool:
    """Whether a variable of that name looks as if it held a key."""
    return _KEY_NAME.search(name) is not None


def find_strays(environ: Mapping[str, str], policy: LanePolicy, providers: Sequence[Provider]) -> tuple[str, ...]:
    """Return the names of variables that may not be set inside the lane: keys, proxies, authorities, base URLs."""
    allowed = set() if policy.keyless else {provider.key for provider in providers}
    return tuple(
        sorted(
            name
            for name, value in environ.items()
            if value
            and value != DUMMY_KEY
            and name not in allowed
            and (is_key_name(name) or _ADDRESS_NAME.fullmatch(name))
        )
    )


def override_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of variables that aim a client elsewhere: base URLs, proxies, certificate authorities."""
    return tuple(sorted(name for name, value in environ.items() if value and _ADDRESS_NAME.fullmatch(name)))


def _allowed_hosts(policy: LanePolicy, hosts: Sequence[str]) -> Sequence[str]:
    if policy.network == "loopback":
        return _LOOPBACK_HOSTS
    if policy.network in {"providers", "local"}:
        return hosts
    return (NO_HOST,)
