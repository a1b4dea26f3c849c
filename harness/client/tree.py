"""Which sessions belong together: children are learned from what the server tells, and never forgotten.

Room: pure; the client comes in.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.messages import Json, JsonObject


class SessionTree:
    """Edges from child to parent, for the life of one server process.

    Shape: learn takes every notification before anybody else sees it. A later start moves a child to its new parent;
    an end moves nothing, so an old run that ends late goes to its old parent only.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def learn(self, method: str, params: JsonObject) -> None:
        """Take an edge from a start; empty ids and children that are their own parent are ignored."""
        if method != "subagent.started":
            return
        parent, child = _text(params.get("parentSessionId")), _text(params.get("childSessionId"))
        if parent and child and parent != child:
            self._parents[child] = parent

    def belongs(self, root: str, method: str, params: JsonObject) -> bool:
        """Whether a notification is about that session or one below it."""
        if not method.startswith("subagent."):
            return self._reaches(_text(params.get("sessionId")), root)
        return _text(params.get("childSessionId")) == root or self._reaches(_text(params.get("parentSessionId")), root)

    def _reaches(self, session: str, root: str) -> bool:
        seen: set[str] = set()
        while session and session not in seen:
            if session == root:
                return True
            seen.add(session)
            session = self._parents.get(session, "")
        return False


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def inserted_ids(event: JsonObject) -> tuple[str, ...]:
    """The ids of the messages that an inbox splice brought in; none for anything else, and for a malformed one."""
    data = event.get("data")
    inserted = (
        data.get("inserted") if event.get("type") == "agent/inbox/spliced" and isinstance(data, Mapping) else None
    )
    if not isinstance(inserted, list | tuple):
        return ()
    return tuple(item["id"] for item in inserted if isinstance(item, Mapping) and isinstance(item.get("id"), str))  # type: ignore[misc] # looked at
