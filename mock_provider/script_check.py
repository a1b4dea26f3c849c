"""From the tree of a script to the script: every rule of the whole checked, all problems at once.

Room: pure; script and the builders come in.
"""

from __future__ import annotations

import hashlib
import math
import re

from mock_provider.dialects.openai_flavours import FLAVOURS
from mock_provider.errors import ScriptError
from mock_provider.expect import Expect
from mock_provider.expect_read import read_expect
from mock_provider.fault_read import read_random
from mock_provider.json_values import canonical_json
from mock_provider.limits import Limits
from mock_provider.model_read import read_models
from mock_provider.script_fields import Fields, Findings, near_miss
from mock_provider.script_fit import FITS
from mock_provider.script_source import Entries, Entry, Items, Node, Scalar, plain
from mock_provider.step_read import Defaults, accepts_everything, read_step
from mock_provider.steps import AnyOrder, Conversation, ModelFacts, RandomFaults, Script, Step, StreamPlan
from mock_provider.stream_read import read_stream

SCRIPT_KEYS = (
    "version",
    "name",
    "model",
    "models",
    "flavour",
    "dialect",
    "api_key",
    "created",
    "strict_fields",
    "stream",
    "fault",
    "conversations",
    "steps",
)
CONVERSATION_KEYS = ("when", "steps", "parallel", "background")
VERSION = 1
MAX_PARALLEL = 100_000
MAX_CREATED = 1 << 37  # the year 6325: four digits are all that some dialects have for a year
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_NAME = re.compile(NAME_PATTERN)  # it must fit a path, a header and the end of a key


def check_script(root: Node, name: str, limits: Limits, dialects: tuple[str, ...] = ()) -> Script:
    """Turn a tree into a script. Shape: dialects are those it has to fit, beside those it names.

    Raises: ScriptError with every problem of the file.
    """
    findings = Findings(name)
    _check_numbers(root, "", findings)
    fields = Fields(root, "", findings, SCRIPT_KEYS)
    if isinstance(root, Entries):
        _check_top(fields)
    own_dialects = _dialects(fields)
    fitted = tuple(dict.fromkeys((*own_dialects, *dialects)))
    default = Defaults(read_stream(fields, StreamPlan()), _random(fields), limits.event_bytes, fitted)
    conversations = _conversations(fields, default)
    models = read_models(fields)
    script = Script(
        name=fields.text("name") or name,
        digest=hashlib.sha256(canonical_json(plain(root)).encode("ascii")).hexdigest(),
        conversations=conversations,
        model=fields.named("model"),
        models=tuple(facts.name for facts in models),
        facts=tuple(facts for facts in models if facts != ModelFacts(facts.name)),
        flavour=fields.choice("flavour", tuple(FLAVOURS)) or "openai",
        api_key=fields.named("api_key"),
        created=_created(fields),
        refuses_extra_fields=fields.boolean("strict_fields") or False,
        dialects=own_dialects,
    )
    if script.flavour != "openai" and fitted and not any(one.startswith("openai_") for one in fitted):
        what = f"flavour '{script.flavour}' without a dialect of OpenAI"
        fields.add("flavour", what, "SCRIPT_DIALECT", expected="no flavour, or openai_chat among the dialects")
    if script.models and script.model is not None and script.model not in script.models:
        fields.add("model", f"'{script.model}' is not in models", "SCRIPT_VALUE", expected="one of models")
    if findings.problems:
        raise ScriptError(findings.problems)
    return script


def _check_numbers(node: Node, field: str, findings: Findings) -> None:
    """Note numbers that no JSON can hold, wherever they stand: they would be sent, compared or counted as such."""
    if isinstance(node, Scalar):
        if isinstance(node.value, float) and not math.isfinite(node.value):
            what = f"{node.value} is no number of JSON"
            findings.add(node.mark, field, what, "SCRIPT_VALUE", expected="a finite number, or a text in quotes")
    elif isinstance(node, Items):
        for at, item in enumerate(node.items):
            _check_numbers(item, f"{field}[{at}]", findings)
    else:
        for entry in node.entries:
            _check_numbers(entry.value, f"{field}.{entry.key}" if field else entry.key, findings)


def _dialects(fields: Fields) -> tuple[str, ...]:
    """The dialects that a script is written for: one, a list, or none for any."""
    node = fields.node("dialect")
    given = fields.texts("dialect") or () if isinstance(node, Items) else (fields.text("dialect"),) if node else ()
    words = [word for word in given if word is not None]
    known = tuple(FITS)
    for word in words:
        if word not in FITS:
            what = f"dialect '{word}' is unknown{near_miss(word, known)}"
            fields.add("dialect", what, "SCRIPT_VALUE", expected=f"one or more of {', '.join(known)}")
    if isinstance(node, Items) and not node.items:
        fields.add("dialect", "no dialect", "SCRIPT_MISSING", expected="at least one, or no 'dialect'")
    return tuple(dict.fromkeys(word for word in words if word in FITS))


def _random(fields: Fields) -> RandomFaults | None:
    """The faults by lot of every step that has none of its own."""
    node = fields.node("fault")
    if node is None:
        return None
    inner = Fields(node, "fault", fields.findings, ("random",))
    if isinstance(node, Entries):
        inner.require("random", "{weights, seed}")
    return read_random(inner)


def _created(fields: Fields) -> int:
    created = fields.integer("created", 0, MAX_CREATED)
    return 1_700_000_000 if created is None else created


def _check_top(fields: Fields) -> None:
    if fields.require("version", str(VERSION)):
        version = fields.integer("version", 0, 1 << 31)
        if version is not None and version != VERSION:
            what = f"version {version} is unknown"
            fields.add("version", what, "SCRIPT_VALUE", expected=str(VERSION), fix="use a provider that knows it")
    if fields.has("steps") and fields.has("conversations"):
        fields.add("steps", "both steps and conversations", "SCRIPT_VALUE", expected="one of them")
    elif not fields.has("steps"):
        fields.require("conversations", "a mapping from name to {when, steps} (or steps: for a single one)")


def _conversations(fields: Fields, default: Defaults) -> tuple[Conversation, ...]:
    found: list[Conversation] = []
    steps_node = fields.node("steps")
    if steps_node is not None:
        items = _items(steps_node, "steps", fields.findings, default)
        found.append(Conversation("", items, mark=steps_node.mark))
    entries = fields.entries("conversations")
    if entries is not None and not entries:
        fields.add("conversations", "no conversation", "SCRIPT_MISSING", expected="at least one")
    for entry in entries or ():
        found.append(_conversation(entry, f"conversations.{entry.key}", fields.findings, default))
    _check_ways_in(found, fields.findings)
    return tuple(found)


def _conversation(entry: Entry, field: str, findings: Findings, default: Defaults) -> Conversation:
    if not _NAME.fullmatch(entry.key):
        what = f"'{entry.key}' is no conversation name"
        findings.add(entry.mark, field, what, "SCRIPT_VALUE", expected="letters, digits, . _ -; at most 64")
    node = entry.value
    if isinstance(node, Items):
        return Conversation(entry.key, _items(node, field, findings, default), mark=entry.mark)
    fields = Fields(node, field, findings, CONVERSATION_KEYS)
    when_node = fields.node("when")
    when: Expect | None = read_expect(when_node, f"{field}.when", findings) if when_node else None
    if when_node is not None and isinstance(when_node, Entries) and not when_node.entries:
        fields.add("when", "no condition", "SCRIPT_VALUE", expected="at least one, or no 'when'")
    steps_node = fields.node("steps")
    if steps_node is None and isinstance(node, Entries):
        fields.require("steps", "a list")
    is_background = fields.boolean("background") or False
    if is_background and when is None:
        fields.add("background", "a background conversation without 'when'", "SCRIPT_VALUE", expected="when: …")
    return Conversation(
        name=entry.key,
        items=_items(steps_node, f"{field}.steps", findings, default) if steps_node else (),
        when=when,
        parallel=fields.integer("parallel", 1, MAX_PARALLEL) or 1,
        is_background=is_background,
        mark=entry.mark,
    )


def _items(node: Node, field: str, findings: Findings, default: Defaults) -> tuple[Step | AnyOrder, ...]:
    if not isinstance(node, Items):
        findings.wrong_type(node, field, "a list of steps")
        return ()
    if not node.items:
        findings.add(node.mark, field, "no steps", "SCRIPT_MISSING", expected="at least one step")
    items: list[Step | AnyOrder] = []
    number = 0
    swallower: int | None = None
    for at, item in enumerate(node.items):
        here = f"{field}[{at}]"
        if swallower is not None:
            what = f"never reached: step {swallower} is repeated forever and accepts every request"
            findings.add(item.mark, here, what, "SCRIPT_UNREACHABLE", fix="give that step an expect, or move it last")
            swallower = None
        if isinstance(item, Entries) and any(entry.key == "any_order" for entry in item.entries):
            group = _group(item, here, findings, number, default)
            items.append(group)
            number += len(group.steps)
            continue
        number += 1
        step = read_step(item, here, findings, number, default)
        items.append(step)
        if step.repeat is None and accepts_everything(step.expect):
            swallower = number
    return tuple(items)


def _group(node: Entries, field: str, findings: Findings, number: int, default: Defaults) -> AnyOrder:
    fields = Fields(node, field, findings, ("any_order",))
    inner = fields.items("any_order") or ()
    steps: list[Step] = []
    for at, item in enumerate(inner):
        here = f"{field}.any_order[{at}]"
        step = read_step(item, here, findings, number + at + 1, default)
        if step.repeat is None:
            what = "'repeat: forever' inside any_order"
            findings.add(item.mark, here, what, "SCRIPT_VALUE", expected="a number")
        steps.append(step)
    if fields.has("any_order") and not inner:
        fields.add("any_order", "no steps", "SCRIPT_MISSING", expected="at least two steps")
    return AnyOrder(tuple(steps), node.mark)


def _check_ways_in(conversations: list[Conversation], findings: Findings) -> None:
    """Note conversations that every request would find together."""
    seen: dict[str, Conversation] = {}
    for conversation in conversations:
        if conversation.when is None:
            continue
        spelled = repr(conversation.when)
        first = seen.setdefault(spelled, conversation)
        if first is not conversation:
            what = f"the same 'when' as conversation '{first.name}', so a request would fit both"
            findings.add(conversation.mark, f"conversations.{conversation.name}", what, "SCRIPT_DUPLICATE")
