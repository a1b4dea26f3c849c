"""Secrets among the variables of an environment: which hold one, and what a shell command may see.

Room: pure but for a look at whether a path is there; settings come in, with the environment they read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

LEAST_SECRET = 8  # as harness.loop.redaction has it
PLAIN_WORD = 20  # POSTGRES_PASSWORD=postgres is no secret; what is longer than words are is one
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:PAT|PASS)(?:_|$)|KEYS?(?:_|$)|TOKENS?(?:_|$)|SECRETS?(?:_|$)|PASSWO?R?D(?:_|$)|PASSPHRASE|CREDENTIALS?|_PWD(?:_|$)",
    re.IGNORECASE,
)
_KEPT_SETTINGS = frozenset({"HARNESS_SHELL", "HARNESS_ALLOWED_HOSTS"})  # both only restrict what a nested run may do


def shell_environment(environ: Mapping[str, str], api_key: str | None) -> Mapping[str, str]:
    """What a shell command may see of the environment: everything but keys and our own settings.

    Limits: a secret is known by its variable's name or by being the key in use; others cannot be told from ordinary
    values.
    """
    return {
        name: value
        for name, value in environ.items()
        if not _SECRET_NAME.search(name)
        and (name in _KEPT_SETTINGS or not name.startswith("HARNESS_"))
        and (api_key is None or api_key not in value)
    }


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values that nothing may write down: those of variables whose names say that they hold a secret.

    Limits: a short value, a plain word, a number and the path of something that is there are no secrets, whatever they
    are called; taking them out would cut holes into ordinary text.
    """
    return tuple(
        dict.fromkeys(
            value for name, value in sorted(environ.items()) if _SECRET_NAME.search(name) and _may_be_secret(value)
        )
    )


def _may_be_secret(value: str) -> bool:
    if len(value) < LEAST_SECRET or (len(value) < PLAIN_WORD and (value.isalpha() or value.isdigit())):
        return False
    try:
        return not Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long for a path, or none at all
        return True
