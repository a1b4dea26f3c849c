"""Reading the list of models from a script, with what each can do.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

from mock_provider.script_fields import Fields
from mock_provider.script_source import Entries, Scalar
from mock_provider.steps import ModelFacts

MODEL_KEYS = ("name", "images", "max_output_tokens", "context_tokens")
MAX_MODEL_TOKENS = 1 << 40


def read_models(fields: Fields) -> tuple[ModelFacts, ...]:
    """Read the key `models`: names, or mappings with a name and limits."""
    found: list[ModelFacts] = []
    for at, node in enumerate(fields.items("models") or ()):
        field = f"models[{at}]"
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
            facts = ModelFacts(node.value)
        elif isinstance(node, Entries):
            inner = Fields(node, field, fields.findings, MODEL_KEYS)
            inner.require("name", "the model's name")
            images = inner.boolean("images")
            facts = ModelFacts(
                name=inner.named("name") or "",
                takes_images=True if images is None else images,
                max_output_tokens=inner.integer("max_output_tokens", 1, MAX_MODEL_TOKENS),
                context_tokens=inner.integer("context_tokens", 1, MAX_MODEL_TOKENS),
            )
        else:
            fields.findings.wrong_type(node, field, "text, or a mapping with a name")
            continue
        if any(facts.name == other.name for other in found):
            fields.findings.add(node.mark, field, f"model '{facts.name}' is listed twice", "SCRIPT_DUPLICATE")
        found.append(facts)
    return tuple(found)
