"""The table of dialects: addresses, reader, renderer, error form and base URLs of each stand in its row.

Room: pure; the routes, the engine and the wrapped command come in. A new dialect is a new room and a new row here.
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.dialects import anthropic_messages, bedrock, gemini, ollama, openai_chat, openai_responses
from mock_provider.dialects.codec import Base, Dialect

# The first row whose address fits answers, unless a header or the path names another one; it is also the row whose
# error form an unknown client gets.
ROWS: tuple[Dialect, ...] = (
    openai_chat.DIALECT,
    openai_responses.DIALECT,
    anthropic_messages.DIALECT,
    gemini.DIALECT,
    ollama.DIALECT,
    bedrock.DIALECT,
)
DIALECTS: Mapping[str, Dialect] = {row.name: row for row in ROWS}
BASES: tuple[Base, ...] = tuple(base for row in ROWS for base in row.bases)
BASE_PATHS: Mapping[str, str] = {base.name: base.path for base in BASES}
