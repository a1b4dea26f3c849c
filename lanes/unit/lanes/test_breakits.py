"""Break-it proofs on a small project: every verdict, and a working tree that never notices."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lanes.breakits import Outcome, run_proofs
from lanes.breakits_copy import Copy, lend_bytecode, tree_digest, tree_state
from lanes.bundle_reading import read_bundle
from lanes.claims import load_claims
from lanes.errors import UsageError
from lanes.proof_declaration import Proof, load_proofs, select_proofs
from lanes.proof_edit import watched_lines
from lanes.proof_record import Result, proof_folder, read_proof
from lanes.proof_verdict import Observation, judge
from reports.proof_words import proofs_exit_code, result_lines, total_line

# One set-up runs every declaration below: some twenty lane runs, too many for the usual time on a loaded machine.
pytestmark = pytest.mark.timeout(400)

CODE = """\
def add(prices):
    total = sum(prices)
    return total


def check(age):
    if age < 18:
        raise ValueError(f"too young: {age}")
    return True


def forgotten(number):
    double = number * 2
    return number


def unused(number):
    double = number + number
    return double
"""
TESTS = """\
import pytest

from shop import tills


@pytest.fixture(scope="module")
def sum_of_two():
    return tills.add([1, 2])


def test_first_of_the_file():
    assert tills.forgotten(3) == 3


def test_adds(sum_of_two):
    assert sum_of_two == 3, "the sum is wrong"


def test_adds_nothing():
    assert tills.add([]) == 0, "the sum is wrong"


def test_young():
    with pytest.raises(ValueError, match="too young"):
        tills.check(17)


def test_old():
    assert tills.check(18)
"""
CLAIMS = """\
schema = "claims/1"

[[claim]]
id = "shop.tills"
sentence = "The tills add up and sell to adults alone."
surface = "none"
required = ["unit"]
owner = "us"
"""
SCOPE = "lanes/unit/test_tills.py"
STOPPED = "stopped: what was running is ended, the working tree was not touched\n"
SEEN = """\
from pathlib import Path
    seen = Path(__file__).with_name('seen')
    again = seen.exists()
    seen.touch()"""
HANGS = """\
import os, subprocess, sys, time
    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)
    with open({pids!r}, 'w') as file:
        file.write(f'{{os.getpid()}} {{child.pid}}')
    time.sleep(300)"""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a declaration of these tests says beyond claim, why and scope."""

    anchor: str
    replace: str
    expect_red: tuple[str, ...]
    must_match: str = "."
    file: str = "shop/tills.py"
    scope: str = SCOPE
    more: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The declaration as a file."""
        red = ", ".join(f'"{self.scope}::{name}"' for name in self.expect_red)
        more = "".join(f"{name} = {value}\n" for name, value in self.more.items())
        return (
            f'claim = "shop.tills"\nwhy = "it matters"\nscope = ["{self.scope}"]\nexpect_red = [{red}]\n'
            f"must_match = '''{self.must_match}'''\n{more}\n"
            f"[[edits]]\nfile = \"{self.file}\"\nanchor = '''{self.anchor}'''\nreplace = '''{self.replace}'''\n"
        )


NO_LIMIT = ("age < 18", "age < 0", ("test_young",))
VERDICTS: Mapping[str, Declared] = {
    "proven": Declared(*NO_LIMIT, must_match="DID NOT RAISE"),
    "survived": Declared("number * 2", "number * 3", ("test_first_of_the_file",)),
    "wider": Declared("    return total\n", "    return total + 1\n", ("test_adds",), "the sum is wrong"),
    "narrower": Declared("age < 18", "age < 0", ("test_young", "test_old")),
    "wrong-reason": Declared(*NO_LIMIT, must_match="too old"),
    "not-applied": Declared("return", "yield", ("test_young",)),
    "no-effect": Declared("age < 18", "age < 18", ("test_young",)),
    "did-not-build": Declared("def add", "import nowhere_to_be_found\n\n\ndef add", ("test_young",)),
    "no-python": Declared("age < 18:", "age <", ("test_young",)),
    "not-reached": Declared("number + number", "number - number", ("test_adds",)),
    "hung": Declared("total = sum(prices)", "HANGS", ("test_adds",), more={"timeout_s": "12"}),
    "unstable": Declared(
        "total = sum(prices)", f"{SEEN}\n    total = 7 if again else sum(prices)", ("test_adds",), more={"repeat": "2"}
    ),
    "baseline-red": Declared(*NO_LIMIT, scope="lanes/unit/test_broken.py"),
    "no-such-test": Declared("age < 18", "age < 0", ("test_old_and_grey",)),
    "fixture": Declared("return total\n\n\ndef check", "return -1\n\n\ndef check", ("test_adds", "test_adds_nothing")),
    "read": Declared(
        "tills", "sells", ("test_reads_the_source",), file="shop/words.txt", scope="lanes/unit/test_words.py"
    ),
    "source": Declared(
        "def unused",
        "import secrets\n\n\ndef unused",
        ("test_imports_nothing",),
        scope="lanes/unit/test_words.py",
        more={"reach": '"read"'},
    ),
}


def write_project(project, declarations: Mapping[str, Declared]) -> None:
    project.write("shop/__init__.py", "")
    project.write("shop/tills.py", CODE)
    project.write("shop/words.txt", "tills\n")
    project.write(SCOPE, TESTS)
    project.write("lanes/unit/test_broken.py", "def test_young():\n    assert False, 'broken before'\n")
    project.write(
        "lanes/unit/test_words.py",
        "from pathlib import Path\n"
        "SHOP = Path(__file__).parents[2] / 'shop'\n"
        "def test_reads_the_source():\n"
        "    assert SHOP.joinpath('words.txt').read_text() == 'tills\\n'\n"
        "def test_imports_nothing():\n"
        "    assert 'import' not in SHOP.joinpath('tills.py').read_text()\n",
    )
    project.write("lanes/claims.toml", CLAIMS)
    project.write(".gitignore", "__pycache__/\nreports/out/\n")
    for name, declared in declarations.items():
        text = declared.text()
        if declared.replace == "HANGS":
            text = text.replace("HANGS", HANGS.format(pids=str(project.root / "pids")))
        project.write(f"lanes/proofs/{name}.toml", text)
    git = ["git", "-C", str(project.root), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "start"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    project.write("shop/untracked.txt", "nobody's")


@dataclass(frozen=True, slots=True)
class Ran:
    """One run over all declarations of these tests."""

    root: Path
    outcome: Outcome
    before: str
    after: str

    @property
    def by_id(self) -> dict[str, Result]:
        """The results by the id of their proof."""
        return {result.proof.id: result for result in self.outcome.results}


@pytest.fixture(scope="module")
def ran(make_project: Callable[[str], object]) -> Ran:
    project = make_project("shop")
    write_project(project, VERDICTS)
    root = project.root
    before = tree_digest(tree_state(root))
    proofs = load_proofs(root, load_claims(root / "lanes/claims.toml"))
    outcome = run_proofs(root, root / "reports/out", proofs, os.environ, tell=lambda result: None)
    return Ran(root, outcome, before, tree_digest(tree_state(root)))


@pytest.mark.parametrize(
    ("name", "verdict", "counts", "text"),
    [
        pytest.param("proven", "proven", "5 passed; 1 failed, 4 passed; 5 passed", "", id="proven"),
        pytest.param("survived", "survived", "5 passed; 5 passed; 5 passed", "", id="survived"),
        pytest.param(
            "wider", "wider", "5 passed; 2 failed, 3 passed; 5 passed", f"also red: {SCOPE}::test_adds_nothing", id="77"
        ),
        pytest.param(
            "narrower", "narrower", "5 passed; 1 failed, 4 passed; 5 passed", f"not red: {SCOPE}::test_old", id="less"
        ),
        pytest.param(
            "wrong-reason",
            "wrong reason",
            "5 passed; 1 failed, 4 passed; 5 passed",
            f"another message: {SCOPE}::test_young",
            id="76",
        ),
        pytest.param(
            "not-applied",
            "not applied",
            "5 passed; not run; 5 passed",
            "shop/tills.py: the anchor occurs 4 times: return",
            id="73",
        ),
        pytest.param(
            "no-effect",
            "not applied",
            "5 passed; not run; 5 passed",
            "shop/tills.py: the edit changes nothing",
            id="without-effect",
        ),
        pytest.param(
            "did-not-build",
            "did not build",
            "5 passed; nothing ran; 5 passed",
            "module shop.tills does not load: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
            id="74",
        ),
        pytest.param(
            "no-python",
            "did not build",
            "5 passed; not run; 5 passed",
            "shop/tills.py: invalid syntax (<unknown>, line 7)",
            id="no-python",
        ),
        pytest.param("not-reached", "not reached", "5 passed; 5 passed; 5 passed", "", id="75"),
        pytest.param("hung", "hung", "5 passed; hung; 5 passed", "the time limit was met", id="78"),
        pytest.param(
            "unstable",
            "unstable",
            "5 passed; 1 failed, 4 passed; 5 passed",
            "2 different sets in 2 runs",
            id="unstable",
        ),
        pytest.param(
            "baseline-red",
            "baseline red",
            "1 failed; not run; not run",
            "lanes/unit/test_broken.py::test_young fails before anything is edited: "
            "lanes/unit/test_broken.py:2: AssertionError",
            id="baseline-red",
        ),
        pytest.param(
            "no-such-test",
            "baseline red",
            "5 passed; not run; 5 passed",
            f"{SCOPE}::test_old_and_grey does not exist",
            id="no-such-test",
        ),
        pytest.param("fixture", "proven", "5 passed; 2 failed, 3 passed; 5 passed", "", id="shared-fixture"),
        pytest.param("read", "proven", "2 passed; 1 failed, 1 passed; 2 passed", "", id="file-that-is-no-code"),
        pytest.param("source", "proven", "2 passed; 1 failed, 1 passed; 2 passed", "", id="reads-the-source"),
    ],
)
def test_proofs_73_to_78_every_verdict_with_its_counts_and_its_reason(
    ran: Ran, name: str, verdict: str, counts: str, text: str
) -> None:
    result = ran.by_id[name]

    assert (result.ruling.verdict, result.counts, result.ruling.text) == (verdict, counts, text)


def test_proofs_79_the_working_tree_is_what_it_was(ran: Ran) -> None:
    assert (ran.outcome.changed, ran.before, ran.outcome.digest) == ((), ran.after, ran.after)


def test_proofs_78_a_mutant_that_hangs_is_killed_with_the_child_that_left_its_session(ran: Ran) -> None:
    pids = [int(pid) for pid in (ran.root / "pids").read_text().split()]

    assert [pid for pid in pids if is_alive(pid)] == []


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_proof_leaves_a_record_from_which_it_is_judged_again(ran: Ran) -> None:
    bundles = {name: read_bundle(proof_folder(ran.root / "reports/out", name)) for name in VERDICTS}
    shown = {name: read_proof(bundle.records[0]) for name, bundle in bundles.items()}

    assert [bundle.problems for bundle in bundles.values() if bundle.problems] == []
    assert {name: judge(proof.seen).verdict for name, proof in shown.items() if proof is not None} == {
        name: result.ruling.verdict for name, result in ran.by_id.items()
    }
    assert "-    if age < 18:\n+    if age < 0:" in shown["proven"].diffs["shop/tills.py"]
    assert all(bundle.records[0].subject == ran.outcome.subject for bundle in bundles.values())


def test_the_exit_code_tells_a_guard_that_fails_from_a_proof_that_says_nothing(ran: Ran) -> None:
    codes = {
        result.ruling.verdict: proofs_exit_code([ran.by_id["proven"], result], has_changed=False)
        for result in ran.outcome.results
    }

    assert codes == {
        "proven": 0,
        "survived": 1,
        "wider": 1,
        "narrower": 1,
        "wrong reason": 1,
        "hung": 1,
        "not applied": 3,
        "did not build": 3,
        "not reached": 3,
        "unstable": 3,
        "baseline red": 3,
    }
    assert proofs_exit_code([ran.by_id["proven"]], has_changed=True) == 3


def test_a_result_is_told_in_one_line_and_what_is_no_proof_says_why(ran: Ran) -> None:
    proven, wider = result_lines(ran.by_id["proven"]), result_lines(ran.by_id["wider"])

    assert proven.startswith("proven         proven  5 passed; 1 failed, 4 passed; 5 passed  (")
    assert wider.splitlines()[1:] == [
        f"  more turned red than was declared: also red: {SCOPE}::test_adds_nothing",
        "  declared in lanes/proofs/wider.toml: it matters",
    ]
    assert total_line(ran.outcome.results).startswith("guards: 4 proven, 1 survived, 1 wider, 1 narrower")


RED = frozenset({"a", "b"})


@pytest.mark.parametrize(
    ("seen", "verdict", "counts"),
    [
        pytest.param(Observation(RED, red=(RED,), is_reached=True), "proven", True, id="proven"),
        pytest.param(Observation(RED, red=(RED, RED), is_reached=True), "proven", True, id="repeats-agree"),
        pytest.param(Observation(RED, red=(RED,)), "not reached", False, id="red-without-reach"),
        pytest.param(
            Observation(RED, red=(RED,), is_reached=True, is_green_after=False), "unstable", False, id="after"
        ),
        pytest.param(Observation(RED, halt="hung", may_hang=True), "hung", True, id="may-hang"),
        pytest.param(Observation(RED, halt="hung"), "hung", False, id="hung"),
        pytest.param(Observation(RED, halt="did not build", may_hang=True), "did not build", False, id="not-built"),
        pytest.param(Observation(RED, red=(frozenset("ac"),), is_reached=True), "wider", False, id="other-items"),
        pytest.param(Observation(RED), "not applied", False, id="nothing-ran"),
    ],
)
def test_a_verdict_follows_from_what_was_seen(seen: Observation, verdict: str, counts: bool) -> None:
    ruling = judge(seen)

    assert (ruling.verdict, ruling.counts) == (verdict, counts)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("def f():\n    a = 1\n", "def f():\n    a = 2\n", {2}, id="one-line"),
        pytest.param(
            "def f():\n    g(\n        1,\n        2,\n    )\n",
            "def f():\n    g(\n        1,\n        3,\n    )\n",
            {2, 3, 4, 5},
            id="inside-a-statement",
        ),
        pytest.param(
            "def f():\n    if a:\n        b()\n", "def f():\n    if c:\n        b()\n", {2}, id="head-of-a-block"
        ),
        pytest.param("def f():\n    a()\n    b()\n    c()\n", "def f():\n    a()\n    c()\n", {2, 3}, id="taken-out"),
        pytest.param("A = 1\n", "A = 2\n", set(), id="outside-functions"),
    ],
)
def test_the_lines_that_show_reach_are_whole_statements_inside_functions(
    before: str, after: str, expected: set[int]
) -> None:
    assert watched_lines(before, after) == expected


GOOD = Declared(*NO_LIMIT).text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(("why =", "wy ="), "lanes/proofs/a.toml, wy: is unknown; did you mean 'why'? [PROOF]", id="field"),
        pytest.param(('why = "it matters"\n', ""), "lanes/proofs/a.toml, why: is missing [PROOF]", id="missing"),
        pytest.param(
            ("shop.tills", "shop.till"),
            "lanes/proofs/a.toml, claim: claim 'shop.till' is unknown; did you mean 'shop.tills'? [PROOF]",
            id="claim",
        ),
        pytest.param(
            ("shop/tills.py", "shop/tils.py"),
            "lanes/proofs/a.toml, edits[1].file: 'shop/tils.py' is not there [PROOF]",
            id="file",
        ),
        pytest.param(("age < 18", " "), "lanes/proofs/a.toml, edits[1].anchor: is empty [PROOF]", id="anchor"),
        pytest.param(
            (f'scope = ["{SCOPE}"]', f'scope = ["{SCOPE}::test_young"]'),
            f"lanes/proofs/a.toml, scope: '{SCOPE}::test_young' is no file or folder [PROOF]",
            id="scope-below-a-file",
        ),
        pytest.param(
            (f'"{SCOPE}::test_young"', '"lanes/unit/test_words.py::test_young"'),
            "lanes/proofs/a.toml, expect_red: 'lanes/unit/test_words.py::test_young' is not in the scope [PROOF]",
            id="outside-the-scope",
        ),
        pytest.param(
            ("must_match = '''.'''", "must_match = {}"),
            f"lanes/proofs/a.toml, must_match: no pattern for '{SCOPE}::test_young' [PROOF]",
            id="no-pattern",
        ),
        pytest.param(
            ("must_match = '''.'''", "must_match = '('"),
            "lanes/proofs/a.toml, must_match: '(' is no pattern: "
            "missing ), unterminated subpattern at position 0 [PROOF]",
            id="broken-pattern",
        ),
        pytest.param(("scope =", "repeat = 0\nscope ="), "lanes/proofs/a.toml, repeat: is 0 [PROOF]", id="no-repeat"),
        pytest.param(
            ("scope =", "lane = 'real'\nscope ="), "lanes/proofs/a.toml, lane: is 'real' [PROOF]", id="lane-with-a-key"
        ),
        pytest.param(
            ("[[edits]]", "[edits]"), "lanes/proofs/a.toml, edits: no edit is declared [PROOF]", id="no-list-of-edits"
        ),
        pytest.param(
            ("why =", "why"),
            "lanes/proofs/a.toml: the file cannot be read: "
            "Expected '=' after a key in a key/value pair (at line 2, column 5) [PROOF]",
            id="no-toml",
        ),
    ],
)
def test_a_faulty_declaration_is_named_by_file_and_field(project, change: tuple[str, str], message: str) -> None:
    write_project(project, {})
    assert GOOD.count(change[0]) >= 1
    project.write("lanes/proofs/a.toml", GOOD.replace(change[0], change[1]))

    with pytest.raises(UsageError) as raised:
        load_proofs(project.root, load_claims(project.root / "lanes/claims.toml"))

    lines = str(raised.value).splitlines()
    assert (lines[0], lines[1].startswith("  expected: ")) == (message, True)


def test_a_scope_never_leaves_out_the_test_file_of_an_edited_room(project) -> None:
    write_project(project, {})
    project.write("harness/log/load.py", "def load():\n    return 1\n")
    project.write("lanes/unit/log/test_load.py", "def test_loads():\n    pass\n")
    project.write("lanes/proofs/a.toml", Declared("1", "2", ("test_old",), file="harness/log/load.py").text())

    with pytest.raises(UsageError, match=r"scope: leaves out lanes/unit/log/test_load\.py"):
        load_proofs(project.root, load_claims(project.root / "lanes/claims.toml"))


def test_proofs_are_chosen_by_id_or_by_the_mark_of_the_sample() -> None:
    proofs = [Proof(name, "c", "w", (), (), sample=name == "quick") for name in ("long", "quick")]

    assert [
        [each.id for each in select_proofs(proofs, ids, sample=sample)]
        for ids, sample in (
            ((), False),
            ((), True),
            (("quick", "quick"), False),
            (("long",), True),
        )
    ] == [["long", "quick"], ["quick"], ["quick"], []]
    with pytest.raises(UsageError, match=r"proof 'quik' is not declared; did you mean 'quick'\?"):
        select_proofs(proofs, ["quik"], sample=False)


def test_proofs_are_chosen_by_the_words_their_ids_begin_with() -> None:
    proofs = [Proof(name, "c", "w", (), ()) for name in ("acp", "acp-fence", "acp-fence-late", "acpx-run", "log-acp")]

    def chosen(*words: str) -> list[str]:
        return [each.id for each in select_proofs(proofs, words, sample=False)]

    assert chosen("acp-fence") == ["acp-fence"]
    assert chosen("acp") == ["acp"]
    assert (chosen("log"), chosen("acp-fence", "log")) == (["log-acp"], ["acp-fence", "log-acp"])
    assert [each.id for each in select_proofs(proofs[1:], ["acp"], sample=False)] == ["acp-fence", "acp-fence-late"]
    with pytest.raises(UsageError, match="proof 'ac' is not declared"):
        chosen("ac")


def test_a_proof_that_needs_another_environment_runs_there_or_when_it_is_named() -> None:
    proofs = [Proof("acp-here", "c", "w", (), ()), Proof("acp-there", "c", "w", (), (), environment="clients")]

    def chosen(*words: str, environment: str = "") -> list[str]:
        return [each.id for each in select_proofs(proofs, words, sample=False, environment=environment)]

    assert (chosen(), chosen("acp"), chosen("acp-there")) == (["acp-here"], ["acp-here"], ["acp-there"])
    assert (chosen(environment="clients"), chosen("acp", environment="clients")) == (["acp-there"], ["acp-there"])


def test_the_command_proves_and_says_so(project) -> None:
    write_project(project, {"limit": VERDICTS["proven"]})

    ended = project.run("proofs")

    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.startswith("proven         limit  5 passed; 1 failed, 4 passed; 5 passed  (")
    assert "guards: 1 proven in " in ended.stdout
    assert "working tree unchanged: sha256:" in ended.stdout
    assert "proven: limit" in (project.root / "reports/out/board.txt").read_text("utf-8")


def test_a_project_without_proofs_says_that_none_was_run(project) -> None:
    write_project(project, {})

    ended = project.run("proofs")

    assert (ended.exit_code, ended.stdout) == (5, "guards: not run: no proof is declared in lanes/proofs\n")


def test_a_folder_that_is_no_repository_is_refused(project) -> None:
    write_project(project, {"limit": VERDICTS["proven"]})
    Path(project.root / ".git").rename(project.root / "git")

    ended = project.run("proofs", GIT_CEILING_DIRECTORIES=str(project.root.parent))

    assert ended.exit_code == 2
    assert ended.stderr.startswith("lanes proofs: this folder is in no git repository [USAGE]\n")


@pytest.fixture
def meeting(tmp_path: Path) -> Path:
    path = tmp_path / "meeting"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupted", "terminated"])
def test_proofs_79_a_run_that_is_stopped_ends_its_children_and_leaves_nothing(
    project, meeting: Path, number: signal.Signals
) -> None:
    write_project(project, {"limit": VERDICTS["proven"]})
    project.write(
        SCOPE,
        TESTS + "\n\ndef test_waits():\n"
        "    import os, time\n"
        f"    with open({str(meeting)!r}, 'w') as file:\n"
        "        file.write(str(os.getpid()))\n"
        "    time.sleep(300)\n",
    )
    temporary = project.root / "temporary"
    temporary.mkdir()
    before = tree_state(project.root)

    process = project.start("proofs", TMPDIR=str(temporary))
    pid = int(meeting.read_text("utf-8"))
    process.send_signal(number)
    _stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stderr) == (130, STOPPED)
    assert (is_alive(pid), list(temporary.iterdir()), tree_state(project.root)) == (False, [], before)


@pytest.mark.parametrize(
    ("name", "lent_too"),
    [("two", ["test_doors.cpython-311-pytest-9.0.2.pyc"]), ("another", [])],
    ids=["places of one length", "places that differ in length"],
)
def test_a_copy_is_lent_the_bytecode_of_unedited_files_alone(tmp_path: Path, name: str, lent_too: list[str]) -> None:
    lender, copy = (
        Copy(tmp_path / name / "tree", tmp_path / name / "bytecode", tmp_path / name / "tmp") for name in ("one", name)
    )
    held = lender.bytecode / lender.root.relative_to(lender.root.anchor) / "shop"
    held.mkdir(parents=True)
    for file in (
        "tills.cpython-311.pyc",  # its file is edited
        "tills_open.cpython-311.pyc",
        "doors.cpython-311.pyc",
        "doors.cpython-311.pyc.140234",  # being written
        "test_doors.cpython-311-pytest-9.0.2.pyc",
    ):
        (held / file).write_bytes(b"code of " + os.fsencode(lender.root))
    drawn_from = Path(".hypothesis") / "constants"
    (lender.root / drawn_from).mkdir(parents=True)
    for file in ("532afe026d6f95aa", ".tmp-being-written"):
        (lender.root / drawn_from / file).write_text("[18]", "utf-8")

    lend_bytecode(lender, copy, {"shop/tills.py"})

    lent = copy.bytecode / copy.root.relative_to(copy.root.anchor) / "shop"
    assert sorted(path.name for path in lent.iterdir()) == sorted(
        ["doors.cpython-311.pyc", "tills_open.cpython-311.pyc", *lent_too]
    ), "bytecode was lent for other files"
    assert [path.name for path in (copy.root / drawn_from).iterdir()] == ["532afe026d6f95aa"]
    for file in lent_too:
        assert (lent / file).read_bytes() == b"code of " + os.fsencode(copy.root), "it names the place of the lender"
