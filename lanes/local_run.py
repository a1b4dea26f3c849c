"""A run against the model on this machine, as it is left in the spool for the processes of the lane.

Room: the runner writes it, the channels read it there.
"""

from __future__ import annotations

from pathlib import Path

from lanes.errors import GuardError
from lanes.live_run import LiveRun, LiveTarget, LiveWish, write_live_run
from lanes.local_model import RunningModel, running_from_json
from lanes.local_table import LOCAL_NAME
from lanes.spool import read_document, write_document

LOCAL_FILE = "local-model.json"
ATTEMPTS = 5  # a model of this size fails now and then; a rate says how often, a single pass would not


def write_local_run(spool: Path, running: RunningModel, wish: LiveWish) -> None:
    """Leave who was started and how many attempts each test has."""
    write_document(spool / LOCAL_FILE, running.to_json())
    target = LiveTarget(LOCAL_NAME, running.model)
    write_live_run(spool, LiveRun((target,), attempts=wish.attempts or ATTEMPTS))


def load_local_run(spool: Path) -> RunningModel:
    """The model that the lane of this process has started.

    Raises: GuardError where none was.
    """
    document = read_document(spool / LOCAL_FILE)
    if document is None:
        raise GuardError(
            "this lane has started no model", fix="tox -e real-local, or lanes run real-local", code="LOCAL_MODEL"
        )
    return running_from_json(document)
