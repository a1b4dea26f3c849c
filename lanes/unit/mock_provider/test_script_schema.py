"""The published schema is current, takes every script that the readers take, and refuses what they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml

from mock_provider.cli import main
from mock_provider.errors import ScriptError
from mock_provider.json_values import Json
from mock_provider.script import build_script, parse_script
from mock_provider.script_schema import script_schema
from mock_provider.starter import starter

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "schemas" / "mock-script-1.json"
VALIDATOR = jsonschema.Draft202012Validator(script_schema())


def examples() -> Iterator[tuple[str, object]]:
    """Every script in the documentation and among the scenarios."""
    for path in sorted((ROOT / "docs" / "mock-scripts").glob("*.yaml")):
        yield path.stem, yaml.safe_load(path.read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "mock-provider.md").read_text(encoding="utf-8")
    for number, block in enumerate(re.findall(r"```yaml\n(version: 1\n.*?)```", page, re.DOTALL)):
        yield f"page-{number}", yaml.safe_load(block)
    for path in sorted((ROOT / "lanes" / "scenarios").glob("*.json")):
        yield f"scenario-{path.stem}", json.loads(path.read_text(encoding="utf-8"))["script"]
    yield "starter", yaml.safe_load(starter("x.yaml"))


def steps(*listed: Json, **more: Json) -> dict[str, Json]:
    return {"version": 1, **more, "steps": list(listed)}


def test_the_published_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == PUBLISHED.read_text(encoding="utf-8")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(script_schema())


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in examples()])
def test_an_example_fits_the_schema(script: object) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(script)] == []


@pytest.mark.parametrize(
    "script",
    [
        pytest.param({"version": 1, "conversations": {"a": [{"reply": "x"}]}}, id="conversation-as-list"),
        pytest.param(steps({"reply": []}), id="empty-completion"),
        pytest.param(steps({"http_error": 503}, {"http_error": "quota"}), id="errors"),
        pytest.param(steps({"http_error": {"status": 200, "body": "{}"}}), id="own-body"),
        pytest.param(steps({"fault": {"kind": "refuse", "for_ms": 5}}), id="refuse"),
        pytest.param(steps({"reply": "a"}, fault={"random": {"weights": {"429": 1, "none": 2}}}), id="random"),
        pytest.param(steps({"reply": "a", "gate": ["g", {"name": "h", "after": 1}]}), id="gates"),
        pytest.param(steps({"reply": [{"tool_call": {"name": "f", "raw": "{", "id": None, "index": 0}}]}), id="call"),
        pytest.param(steps({"reply": "a", "finish": None, "usage": "none", "repeat": "forever"}), id="words"),
        pytest.param(steps({"reply": "a", "finish": {"raw": "odd"}}), id="raw-finish"),
        pytest.param(
            steps({"reply": "ab", "stream": {"split": ["a", "b"], "drip": {"bytes": 1}, "trailing": "x"}}), id="stream"
        ),
        pytest.param(steps({"any_order": [{"reply": "a"}, {"reply": "b"}]}), id="any-order"),
        pytest.param(steps({"reply": "a"}, models=["m", {"name": "n", "images": False}]), id="models"),
        pytest.param(
            steps(
                {
                    "expect": {
                        "system": {"absent": True},
                        "tools": {"exactly": []},
                        "messages": {"min": 1},
                        "tool_result": [{"name": "f"}, "x"],
                        "options": {"temperature": 0},
                        "headers": {"x": {"regex": "."}},
                        "json_path": {"a.b": {"contains": "c"}, "d": [1]},
                        "absent": ["e"],
                        "stream": True,
                    },
                    "reply": "a",
                }
            ),
            id="conditions",
        ),
    ],
)
def test_readers_and_schema_take_the_same(script: dict[str, Json]) -> None:
    build_script(script)
    assert [error.message for error in VALIDATOR.iter_errors(script)] == []


@pytest.mark.parametrize(
    "script",
    [
        pytest.param({"steps": [{"reply": "a"}]}, id="no-version"),
        pytest.param({"version": 2, "steps": [{"reply": "a"}]}, id="version"),
        pytest.param({"version": 1}, id="no-steps"),
        pytest.param({"version": 1, "steps": [{"reply": "a"}], "conversations": {"a": []}}, id="both"),
        pytest.param(steps(), id="empty"),
        pytest.param(steps({"rply": "a"}), id="key"),
        pytest.param(steps({"reply": 3}), id="type"),
        pytest.param(steps({"reply": [{"text": "a", "reasoning": "b"}]}), id="two-kinds-in-a-part"),
        pytest.param(steps({"reply": [{"tool_call": {"arguments": {}}}]}), id="call-without-name"),
        pytest.param(steps({"http_error": 200}), id="no-error"),
        pytest.param(steps({"http_error": "quotas"}), id="cause"),
        pytest.param(steps({"reply": "a", "repeat": 0}), id="repeat"),
        pytest.param(steps({"reply": "a", "finish": "end"}), id="finish"),
        pytest.param(steps({"reply": "a", "stream": {"split": "letters"}}), id="split"),
        pytest.param(steps({"reply": "a", "stream": {"split": {"chars": 1, "words": 1}}}), id="two-splits"),
        pytest.param(steps({"expect": {"last_user": {"equals": "a", "regex": "b"}}, "reply": "a"}), id="two-rules"),
        pytest.param(steps({"reply": "a"}, fault={"random": {"weights": {"rest": 1}}}), id="weight"),
        pytest.param(steps({"reply": "a"}, flavour="mistral"), id="flavour"),
        pytest.param({"version": 1, "conversations": {"a b": {"steps": [{"reply": "a"}]}}}, id="name"),
        pytest.param(steps({"reply": [{"hex": "f"}]}), id="hex"),
        pytest.param(steps({"reply": [{"gate": "a/b"}]}), id="gate"),
    ],
)
def test_readers_and_schema_refuse_the_same(script: dict[str, Json]) -> None:
    with pytest.raises(ScriptError):
        build_script(script)
    assert list(VALIDATOR.iter_errors(script)) != []


def test_the_starter_is_a_script() -> None:
    assert parse_script(starter("x.yaml"), "x.yaml").conversations[1].is_background
