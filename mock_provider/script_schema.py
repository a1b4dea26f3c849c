"""The JSON Schema of scripts, so that editors complete and check them; made of the tables the readers use.

Room: pure; the command comes in. A key that a reader knows and the schema does not, or the other way round, is an error
as soon as the schema is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mock_provider.causes import CAUSES
from mock_provider.dialects.openai_flavours import FLAVOURS
from mock_provider.expect_read import EXPECT_KEYS, MAX_MESSAGES, RANGE_KEYS, RESULT_KEYS, TEXT_KEYS, TOOLS_KEYS
from mock_provider.fault_read import FAULT_KEYS, MAX_IN_A_ROW, MAX_WEIGHT, RANDOM_KEYS
from mock_provider.json_values import Json, JsonObject
from mock_provider.model_read import MAX_MODEL_TOKENS, MODEL_KEYS
from mock_provider.part_read import (
    CALL_KEYS,
    ERROR_KEYS,
    EVENT_CAUSES,
    EVENT_KEYS,
    MAX_INDEX,
    MAX_NAME,
    MAX_RETRY_S,
    PART_FAULTS,
    PART_KEYS,
)
from mock_provider.random_faults import NAMES
from mock_provider.script_check import CONVERSATION_KEYS, MAX_CREATED, MAX_PARALLEL, NAME_PATTERN, SCRIPT_KEYS, VERSION
from mock_provider.script_fit import FITS
from mock_provider.step_read import (
    FINISHES,
    GATE_KEYS,
    MAX_AFTER,
    MAX_REPEAT,
    MAX_TIMES,
    MAX_TOKENS,
    STEP_KEYS,
    USAGE_KEYS,
)
from mock_provider.steps import FAULT_KINDS
from mock_provider.stream_read import (
    DRIP_KEYS,
    MAX_END_MARKS,
    MAX_PIECES,
    MAX_SEED,
    MAX_WAIT_MS,
    SPLIT_KEYS,
    STREAM_KEYS,
)

TEXT: JsonObject = {"type": "string"}
TRUTH: JsonObject = {"type": "boolean"}
ANY: JsonObject = {}
NAMES_LIST: JsonObject = {"type": "array", "items": TEXT}
HEADERS: JsonObject = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}


def script_schema() -> JsonObject:
    """The whole schema. Raises: ValueError when readers and schema know different keys."""
    definitions: JsonObject = {
        **_conditions(),
        **_faults(),
        **_streams(),
        **_parts(),
        "step": _step(),
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [{"$ref": "#/$defs/step"}, {"$ref": "#/$defs/any_order"}]},
        },
        "any_order": _object(
            ("any_order",),
            {"any_order": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}}},
            "Steps that parallel requests may take in any order.",
            ("any_order",),
        ),
        "conversation": _object(
            CONVERSATION_KEYS,
            {
                "when": _told(_ref("expect"), "How a request finds this conversation."),
                "steps": _ref("steps"),
                "parallel": _whole(1, MAX_PARALLEL, "How many clients may play it at once, each with its own cursor."),
                "background": _told(TRUTH, "Extra requests that never take a step of another conversation."),
            },
            required=("steps",),
        ),
        "model": _object(
            MODEL_KEYS,
            {
                "name": TEXT,
                "images": _told(TRUTH, "false: pictures are refused."),
                "max_output_tokens": _whole(1, MAX_MODEL_TOKENS, "A request that asks for more is refused."),
                "context_tokens": _whole(1, MAX_MODEL_TOKENS, "A longer request is refused."),
            },
            required=("name",),
        ),
    }
    top = _object(
        SCRIPT_KEYS,
        {
            "version": {"const": VERSION},
            "name": _told(TEXT, "What messages call this script."),
            "model": _told(TEXT, "Echoed in answers unless a step says otherwise."),
            "models": {
                "type": "array",
                "items": _either(TEXT, _ref("model")),
                "description": "The only models there are; others are refused.",
            },
            "flavour": _told(_word(tuple(FLAVOURS)), "A service that speaks the OpenAI formats in a way of its own."),
            "dialect": _told(
                _either(_word(tuple(FITS)), {"type": "array", "minItems": 1, "items": _word(tuple(FITS))}),
                "The dialects it is written for: what they have no place for is refused, and so are other dialects.",
            ),
            "api_key": _told(TEXT, "The only key that is taken; any key is, without."),
            "created": _whole(0, MAX_CREATED, "Seconds since 1970 in every answer."),
            "strict_fields": _told(TRUTH, "true: unknown fields of requests are refused."),
            "stream": _ref("stream"),
            "fault": _told(
                _object(("random",), {"random": _ref("random")}, required=("random",)),
                "Faults by lot for every step that has no fault of its own.",
            ),
            "conversations": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": f"^{NAME_PATTERN}$"},
                "additionalProperties": _either(_ref("conversation"), _ref("steps")),
            },
            "steps": _ref("steps"),
        },
        required=("version",),
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Script of the mock provider, version {VERSION}",
        "description": "What a scripted model answers, in which order, and what it expects to be asked.",
        **top,
        "oneOf": [{"required": ["steps"]}, {"required": ["conversations"]}],
        "$defs": definitions,
    }


def _object(
    keys: Sequence[str], properties: Mapping[str, Json], description: str = "", required: Sequence[str] = ()
) -> JsonObject:
    """A mapping with exactly the keys that its reader knows."""
    if set(keys) != set(properties):
        raise ValueError(f"reader and schema differ in {sorted(set(keys) ^ set(properties))}")
    shape: JsonObject = {"type": "object", "additionalProperties": False}
    if description:
        shape["description"] = description
    if required:
        shape["required"] = list(required)
    return {**shape, "properties": {key: properties[key] for key in keys}}


def _ref(name: str) -> JsonObject:
    return {"$ref": f"#/$defs/{name}"}


def _told(shape: JsonObject, description: str) -> JsonObject:
    return {**shape, "description": description}


def _either(*shapes: JsonObject) -> JsonObject:
    return {"anyOf": list(shapes)}


def _word(words: Sequence[str]) -> JsonObject:
    return {"enum": list(words)}


def _whole(least: int, most: int, description: str = "") -> JsonObject:
    shape: JsonObject = {"type": "integer", "minimum": least, "maximum": most}
    return {**shape, "description": description} if description else shape


def _number(least: float, most: float, description: str = "") -> JsonObject:
    shape: JsonObject = {"type": "number", "minimum": least, "maximum": most}
    return {**shape, "description": description} if description else shape


def _conditions() -> JsonObject:
    text_words: JsonObject = {"equals": TEXT, "contains": TEXT, "regex": {"type": "string", "format": "regex"}}
    one_word: JsonObject = {"minProperties": 1, "maxProperties": 1}
    result = _object(
        RESULT_KEYS,
        {
            **text_words,
            "call": _told(TEXT, "The id of the call."),
            "name": _told(TEXT, "The name of the tool."),
            "is_error": TRUTH,
            "anywhere": _told(TRUTH, "In any round, not only the last."),
        },
    )
    one_result = _either(TEXT, result)
    counted = _object(RANGE_KEYS, {"min": _whole(0, MAX_MESSAGES), "max": _whole(0, MAX_MESSAGES)})
    return {
        "text": _either(TEXT, {**_object(TEXT_KEYS, {**text_words, "absent": {"const": True}}), **one_word}),
        "expect": _object(
            EXPECT_KEYS,
            {
                "system": _told(_ref("text"), "The system prompt; a bare text means contains."),
                "last_user": _told(_ref("text"), "The last message of the user; a bare text means contains."),
                "user_contains": _told(_ref("text"), "Any message of the user; a bare text means contains."),
                "any_message": _told(_ref("text"), "Any message or tool result; a bare text means contains."),
                "model": _told(_ref("text"), "A bare text means equals."),
                "tools": _either(
                    NAMES_LIST, {**_object(TOOLS_KEYS, dict.fromkeys(TOOLS_KEYS, NAMES_LIST)), **one_word}
                ),
                "messages": _either(_whole(0, MAX_MESSAGES, "How many, the system prompt included."), counted),
                "tool_result": _either(one_result, {"type": "array", "items": one_result}),
                "options": _told({"type": "object"}, "Fields of the body that are equal."),
                "headers": {"type": "object", "additionalProperties": _ref("text")},
                "json_path": _told({"type": "object"}, "Paths of the body with a value or a text condition."),
                "absent": _told(NAMES_LIST, "Paths that the body does not have."),
                "stream": _told(TRUTH, "Whether streaming is asked for."),
            },
            "Conditions; every one given must hold.",
        ),
    }


def _faults() -> JsonObject:
    statuses: JsonObject = {"pattern": "^[45][0-9][0-9]$"}
    return {
        "random": _object(
            RANDOM_KEYS,
            {
                "weights": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": _either(_word(NAMES), statuses),
                    "additionalProperties": _number(0, MAX_WEIGHT),
                },
                "seed": _whole(0, MAX_SEED, "The same seed draws the same faults."),
                "in_a_row": _whole(0, MAX_IN_A_ROW, "How many requests of a step in a row may be hit; 0: any number."),
            },
            "Faults by lot; a request that is hit does not use its step up.",
            ("weights",),
        ),
        "fault": _either(
            _word(FAULT_KINDS),
            _object(
                FAULT_KEYS,
                {
                    "kind": _word(FAULT_KINDS),
                    "after": _whole(0, MAX_PIECES, "After that many pieces; without: before any byte."),
                    "for_ms": _whole(1, MAX_WAIT_MS, "With refuse: how long the port stays closed."),
                    "every_ms": _whole(1, MAX_WAIT_MS, "With keep_alive: the time between two signs of life."),
                    "random": _ref("random"),
                },
            ),
        ),
    }


def _streams() -> JsonObject:
    size = _whole(1, MAX_PIECES)
    return {
        "split": _either(
            _word(("whole", "words")),
            _told(NAMES_LIST, "The pieces themselves."),
            {
                **_object(SPLIT_KEYS, {"chars": size, "words": size, "bytes": size, "list": NAMES_LIST}),
                "minProperties": 1,
                "maxProperties": 1,
            },
        ),
        "stream": _object(
            STREAM_KEYS,
            {
                "split": _told(_ref("split"), "How texts are cut into pieces."),
                "first_ms": _whole(0, MAX_WAIT_MS, "The wait before the first piece."),
                "every_ms": _whole(0, MAX_WAIT_MS, "The wait before each later piece."),
                "tokens_per_s": _number(0, MAX_PIECES, "A further wait for each token of a piece."),
                "jitter_ms": _whole(0, MAX_WAIT_MS, "So much may be added to or taken from each wait, by lot."),
                "seed": _whole(0, MAX_SEED, "For the lots of jitter_ms."),
                "events_per_write": _whole(0, MAX_PIECES, "How many events go out in one write; 0: all."),
                "bytes_per_write": _whole(0, MAX_PIECES, "Cuts writes into smaller ones; 0: leaves them."),
                "drip": _object(
                    DRIP_KEYS,
                    {"bytes": size, "every_ms": _whole(0, MAX_WAIT_MS)},
                    "So many bytes a write, with a wait before each but the first.",
                ),
                "keep_alive_ms": _whole(0, MAX_WAIT_MS, "A sign of life that often during longer waits; 0: none."),
                "end_marks": _whole(0, MAX_END_MARKS, "How often the end mark is sent."),
                "trailing": _told(TEXT, "Sent after the end."),
            },
        ),
    }


def _parts() -> JsonObject:
    part = _object(
        PART_KEYS,
        {
            "text": _told(TEXT, "Answer text."),
            "reasoning": _told(TEXT, "Thinking text."),
            "refusal": _told(TEXT, "The model declines."),
            "tool_call": _ref("tool_call"),
            "gate": _told(_ref("gate_name"), "Wait here until the test opens the gate."),
            "fault": _told(_word(PART_FAULTS), "The stream dies here, or its next event is harmed."),
            "malformed": _told(TEXT, "An event whose data is this text."),
            "hex": {"type": "string", "pattern": "^\\s*([0-9A-Fa-f]{2}\\s*)*$", "description": "Raw bytes."},
            "comment": _told(TEXT, "A keep-alive comment."),
            "error_event": _ref("error_event"),
            "http_error": _ref("http_error"),
        },
    )
    listed: JsonObject = _either(TEXT, {**part, "minProperties": 1, "maxProperties": 1})
    return {
        "gate_name": {"type": "string", "pattern": "^[\\w.-]+$", "maxLength": MAX_NAME},
        "tool_call": _object(
            CALL_KEYS,
            {
                "name": TEXT,
                "arguments": _either({"type": "object"}, _told(TEXT, "A JSON object as text.")),
                "raw": _told(TEXT, "Any text in place of arguments, JSON or not."),
                "id": _told({"type": ["string", "null"]}, "null leaves the id out; without, one is derived."),
                "index": _whole(0, MAX_INDEX, "The place in the stream that the fragments name."),
            },
            required=("name",),
        ),
        "error_event": _either(
            TEXT,
            _object(
                EVENT_KEYS,
                {"message": TEXT, "code": TEXT, "type": TEXT, "cause": _word(EVENT_CAUSES)},
                "An error inside an answer that began with status 200.",
            ),
        ),
        "http_error": _either(
            _whole(400, 599),
            _word(CAUSES),
            _object(
                ERROR_KEYS,
                {
                    "status": _whole(200, 599, "Below 400 only with a body."),
                    "cause": _told(_word(CAUSES), "What went wrong, in the words of each dialect."),
                    "code": TEXT,
                    "message": TEXT,
                    "type": TEXT,
                    "retry_after": _number(0, MAX_RETRY_S, "Seconds."),
                    "retry_after_ms": _whole(0, MAX_RETRY_S * 1000),
                    "headers": HEADERS,
                    "body": _told(TEXT, "In place of the dialect's error body; may be empty."),
                    "content_type": TEXT,
                },
            ),
        ),
        "reply": _either(listed, {"type": "array", "items": listed}),
    }


def _step() -> JsonObject:
    count = _whole(0, MAX_TOKENS)
    gate = _either(
        _ref("gate_name"),
        _object(GATE_KEYS, {"name": _ref("gate_name"), "after": _whole(0, MAX_AFTER)}, required=("name",)),
    )
    finish = _either(_word(FINISHES), {"type": "null"}, _object(("raw",), {"raw": TEXT}))
    usage = _object(
        USAGE_KEYS,
        {
            "input": count,
            "output": count,
            "cached": count,
            "reasoning": count,
            "times": _whole(1, MAX_TIMES, "How often a stream says them."),
        },
    )
    return _object(
        STEP_KEYS,
        {
            "expect": _ref("expect"),
            "reply": _told(_ref("reply"), "What the model says; an empty list is an empty completion."),
            "http_error": _told(_ref("http_error"), "An error in place of a reply."),
            "fault": _told(_ref("fault"), "How the answer breaks."),
            "gate": _either(gate, {"type": "array", "items": gate}),
            "finish": _told(finish, "Chosen from the parts when absent; null leaves it out."),
            "usage": _told(_either({"const": "none"}, usage), "Counted by a local rule where absent."),
            "stream": _ref("stream"),
            "repeat": _either(_whole(1, MAX_REPEAT), {"const": "forever"}),
            "optional": _told(TRUTH, "May be passed over."),
            "model": TEXT,
            "headers": _told(HEADERS, "Further headers of the answer."),
            "content_type": TEXT,
        },
        "One request and its answer.",
    )
