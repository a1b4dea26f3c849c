"""Break-it proofs on a small project: every verdict, and that the working tree never notices."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lanes.breakits import Outcome, run_proofs
from lanes.breakits_copy import tree_digest, tree_state
from lanes.bundle_reading import read_bundle
from lanes.claims import Claims, load_claims
from lanes.errors import UsageError
from lanes.proof_declaration import declared_ids, load_proofs, select_proofs
from lanes.proof_record import Result, proof_folder
from lanes.unit.lanes.conftest import Project
