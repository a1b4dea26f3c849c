"""The file of servers is checked whole before anything starts, and a mistake is named with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities.mcp_config import HttpServer, StdioServer, load_servers
from harness.errors import UsageError
from harness.loop.redaction import Secrets

ENVIRON = {"GIT_TOKEN": "secret-1", "HOME": "/home/one"}


def load(folder: Path, text: str | bytes, name: str = "mcp.json", **options: Any) -> Any:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return load_servers(path, environ=ENVIRON, **options)


TOML = """\
[servers.git]
command = "mcp-server-git"
args = ["--repository", "."]
env = { TOKEN = "Bearer ${GIT_TOKEN}" }
cwd = "sub"
timeout_s = 30

[servers.search]
url = "https://example.com/mcp"
headers = { Authorization = "Bearer ${GIT_TOKEN}" }
"""


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_both_forms_of_the_file_say_the_same(tmp_path: Path, kind: str) -> None:
    import tomllib

    (tmp_path / "sub").mkdir()
    text = TOML if kind == "toml" else json.dumps(tomllib.loads(TOML))
    assert load(tmp_path, text, f"mcp.{kind}") == (
        StdioServer(
            "git",
            "mcp-server-git",
            ("--repository", "."),
            {"TOKEN": "Bearer secret-1"},
            tmp_path / "sub",
            30.0,
            Secrets(("secret-1",)),
        ),
        HttpServer(
            "search", "https://example.com/mcp", {"Authorization": "Bearer secret-1"}, 120.0, Secrets(("secret-1",))
        ),
    )


def test_S12_what_comes_from_variables_is_secret_but_for_places_and_what_every_server_gets(tmp_path: Path) -> None:
    environ = {"GIT_TOKEN": "secret-1", "HOME": "/no/such/home", "DATA": str(tmp_path), "OTHER": "secret-2"}
    path = tmp_path / "mcp.toml"
    path.write_text(
        '[servers.a]\ncommand = "a"\nenv = { A = "${HOME}/x", B = "${DATA}", C = "${GIT_TOKEN}", D = "literal-1" }\n'
        '[servers.b]\nurl = "https://example.com"\nheaders = { H = "${OTHER}" }\n'
    )
    assert [server.secrets for server in load_servers(path, environ=environ)] == [
        Secrets(("secret-1",)),
        Secrets(("secret-2",)),
    ]


def test_a_command_with_a_slash_is_found_from_the_files_folder_on(tmp_path: Path) -> None:
    (server,) = load(tmp_path, '{"servers": {"a": {"command": "./bin/serve"}}}')
    assert server.command == str(tmp_path / "bin/serve")


def test_no_value_of_env_or_headers_is_shown_by_a_server() -> None:
    shown = repr((StdioServer("a", "b", env={"K": "hidden"}), HttpServer("a", "b", headers={"K": "hidden"})))
    assert "hidden" not in shown


def one(fields: str) -> str:
    return '{\n  "servers": {\n    "git": {\n' + fields + "\n    }\n  }\n}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{", "mcp.json:1: is no JSON: Expecting property name", id="no-json"),
        pytest.param("[]", "mcp.json: holds no object", id="no-object"),
        pytest.param(
            '{\n"mcpServers": {}}',
            "mcp.json:2, mcpServers: field 'mcpServers' is unknown; did you mean 'servers'?",
            id="other-name",
        ),
        pytest.param("{}", "mcp.json, servers: no server is named", id="no-servers"),
        pytest.param('{"servers": {}}', "mcp.json:1, servers: no server is named", id="empty"),
        pytest.param('{"servers": {\n"a__b": {}}}', "mcp.json:2, servers.a__b: 'a__b' cannot name a server", id="name"),
        pytest.param('{"servers": {\n"git": 5}}', "mcp.json:2, servers.git: is no table", id="no-table"),
        pytest.param('{"servers": {"a": {}, "a": {}}}', "mcp.json:1, a: field 'a' is there twice", id="twice"),
        pytest.param(
            one('"comand": "x"'),
            "mcp.json:4, servers.git.comand: field 'comand' is unknown; did you mean 'command'?",
            id="near-miss",
        ),
        pytest.param(one('"args": []'), "mcp.json:3, servers.git: neither 'command' nor 'url' is given", id="neither"),
        pytest.param(
            one('"command": "a", "url": "http://b"'), "mcp.json:3, servers.git: both 'command' and 'url'", id="both"
        ),
        pytest.param(
            one('"command": "a",\n"headers": {}'),
            "mcp.json:5, servers.git.headers: field 'headers' does not go with 'command'",
            id="headers-of-a-program",
        ),
        pytest.param(
            one('"url": "http://b",\n"args": []'),
            "mcp.json:5, servers.git.args: field 'args' does not go with 'url'",
            id="arguments-of-an-address",
        ),
        pytest.param(one('"command": 5'), "mcp.json:4, servers.git.command: is 5", id="command-number"),
        pytest.param(one('"command": " "'), "mcp.json:4, servers.git.command: is empty", id="command-empty"),
        pytest.param(one('"command": "a\\u0000"'), "mcp.json:4, servers.git.command: holds a character", id="nul"),
        pytest.param(one('"command": "a", "args": "b"'), "mcp.json:4, servers.git.args: is 'b'", id="args-text"),
        pytest.param(
            one('"command": "a", "args": ["b", 3]'), "mcp.json:4, servers.git.args: argument 2 is 3", id="args-number"
        ),
        pytest.param(
            one('"command": "a", "cwd": "gone"'), "mcp.json:4, servers.git.cwd: 'gone' is not a folder", id="cwd"
        ),
        pytest.param(one('"command": "a", "env": []'), "mcp.json:4, servers.git.env: is a list", id="env-list"),
        pytest.param(
            one('"command": "a", "env": {"A-B": "c"}'),
            "mcp.json:4, servers.git.env.A-B: 'A-B' cannot name",
            id="env-name",
        ),
        pytest.param(
            one('"command": "a", "env": {"A": 5}'), "mcp.json:4, servers.git.env.A: the value is a int", id="env-number"
        ),
        pytest.param(
            one('"command": "a", "env": {"A": "${GIT_TOKN}"}'),
            "mcp.json:4, servers.git.env.A: variable 'GIT_TOKN' is not set; did you mean 'GIT_TOKEN'?",
            id="variable",
        ),
        pytest.param(
            one('"url": "http://b", "headers": {"A": "b\\nc"}'),
            "mcp.json:4, servers.git.headers.A: the value holds a character a header cannot hold",
            id="header-lines",
        ),
        pytest.param(
            one('"url": "http://b", "headers": {"A B": "c"}'),
            "mcp.json:4, servers.git.headers.A B: 'A B' cannot name a header",
            id="header-name",
        ),
        pytest.param(one('"url": "ftp://b"'), "mcp.json:4, servers.git.url: is no web address", id="scheme"),
        pytest.param(one('"url": "http://b:99999"'), "mcp.json:4, servers.git.url: cannot be read", id="port"),
        pytest.param(one('"url": "http://u:p@b"'), "mcp.json:4, servers.git.url: holds a user name", id="password"),
        pytest.param(
            one('"url": "http://b", "timeout_s": 0'), "mcp.json:4, servers.git.timeout_s: 0 is out", id="zero"
        ),
        pytest.param(
            one('"url": "http://b", "timeout_s": true'), "mcp.json:4, servers.git.timeout_s: is True", id="timeout-true"
        ),
        pytest.param(
            one('"url": "http://b", "timeout_s": NaN'), "mcp.json:4, servers.git.timeout_s: is nan", id="timeout-nan"
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_and_field(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)) as raised:
        load(tmp_path, text)
    assert (raised.value.error_code, raised.value.exit_code) == ("MCP_CONFIG", 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[servers.git]\ncomand = 'x'\n", "mcp.toml:2, servers.git.comand: field 'comand'", id="field"),
        pytest.param("[servers.git]\nurl = 'x\n", "mcp.toml: is no TOML", id="no-toml"),
        pytest.param("[servers]\na = { command = 5 }\n", "mcp.toml:2, servers.a.command: is 5", id="inline"),
    ],
)
def test_a_mistake_in_toml_is_named_too(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)):
        load(tmp_path, text, "mcp.toml")


def test_a_host_outside_the_allowed_ones_is_refused(tmp_path: Path) -> None:
    text = one('"url": "https://example.com/mcp"')
    with pytest.raises(UsageError, match=r"host 'example\.com' is not allowed in this run") as raised:
        load(tmp_path, text, allowed_hosts=frozenset({"127.0.0.1"}))
    assert raised.value.error_code == "ENDPOINT_REFUSED"
    assert len(load(tmp_path, text, allowed_hosts=frozenset({"example.com"}))) == 1


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        pytest.param("mcp.yaml", b"", "mcp.yaml: is neither JSON nor TOML by its name", id="yaml"),
        pytest.param("mcp.json", b"\xff", "mcp.json: is not UTF-8: invalid start byte at byte 0", id="bytes"),
        pytest.param("mcp.json", None, "mcp.json: cannot be read: no such file or directory", id="gone"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, content: bytes | None, expected: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(expected)):
        load_servers(tmp_path / name, environ={})


def test_no_secret_stands_in_a_message(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load(tmp_path, one('"url": "http://b", "headers": {"A": "${GIT_TOKEN}\\n"}'))
    assert "secret-1" not in str(raised.value)
