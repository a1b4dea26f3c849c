"""The play: a cursor for each conversation and client, which step is next, what is left over.

Room: pure; the engine comes in and holds the lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mock_provider.asked import Asked, AskedMessage, history_digests
from mock_provider.expect import Difference, compare
from mock_provider.match import (
    Naming,
    Unmatched,
    by_when,
    called,
    explain_exhausted,
    explain_mismatch,
    explain_none,
    explain_several,
    explain_too_many,
    explain_unknown_name,
    open_doors,
)
from mock_provider.steps import AnyOrder, Conversation, Script, Step


@dataclass(slots=True)
class Cursor:
    """Where one client stands in one conversation.

    Shape: item is the index of the item whose turn it is, uses how often its step was taken,
    taken how often each step of a group was; requests counts accepted requests.
    """

    conversation: Conversation
    client: str
    item: int = 0
    uses: int = 0
    taken: dict[int, int] = field(default_factory=dict)
    requests: int = 0
    history: str | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """A step for a request.

    Shape: use counts the cursor's requests from 1; groups may be copied from; before is where the cursor stood.
    """

    cursor: Cursor
    step: Step
    use: int
    groups: Mapping[str, str]
    before: tuple[int, int, dict[int, int]]


class Playback:
    """All cursors of one script. Limits: not safe for threads; the engine locks."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._by_name = {conversation.name: conversation for conversation in script.conversations}
        self._cursors: dict[tuple[str, str], Cursor] = {}
        self._histories: dict[str, list[Cursor]] = {}

    def find(self, asked: Asked, naming: Naming | None, number: int) -> Cursor | Unmatched:
        """Find who plays: explicit name, background `when`, continuation, `when`, the single open conversation."""
        if naming is not None:
            named = self._by_name.get(naming.conversation)
            if named is None:
                return explain_unknown_name(self.script, naming)
            return self._enter(named, naming.client, asked)
        background = by_when(self.script, asked, background=True)
        if len(background) > 1:
            return explain_several(self.script, background, asked, number)
        if background:
            return self._enter(background[0], "", asked)
        continued = self._continued(asked)
        if continued is not None:
            return continued
        found = by_when(self.script, asked, background=False) or open_doors(self.script)
        if len(found) > 1:
            return explain_several(self.script, found, asked, number)
        if not found:
            return explain_none(self.script, asked, number)
        return self._enter(found[0], "", asked)

    def _enter(self, conversation: Conversation, client: str, asked: Asked) -> Cursor | Unmatched:
        """Take the client's cursor; a parallel conversation gives an unnamed client a free one."""
        key = (conversation.name, client)
        if client and key not in self._cursors:
            others = [name for name in self._cursors if name[0] == conversation.name]
            if len(others) >= conversation.parallel:
                return explain_too_many(self.script, conversation, client)
        if conversation.parallel > 1 and not client:
            continued = self._continued(asked, conversation)
            if continued is not None:
                return continued
            started = [cursor for (name, _), cursor in self._cursors.items() if name == conversation.name]
            if len(started) >= conversation.parallel:
                return min(started, key=lambda cursor: cursor.requests)
            client = f"#{len(started) + 1}"
        return self._cursor(conversation, client)

    def _cursor(self, conversation: Conversation, client: str) -> Cursor:
        return self._cursors.setdefault((conversation.name, client), Cursor(conversation, client))

    def _continued(self, asked: Asked, only: Conversation | None = None) -> Cursor | None:
        """The cursor whose exchange so far is the longest beginning of this request.

        Shape: None when cursors of two conversations are equal in that; of one conversation the least advanced.
        """
        for digest in reversed(history_digests(asked.messages)):
            cursors = self._histories.get(digest, [])
            if only is not None:
                cursors = [cursor for cursor in cursors if cursor.conversation is only]
            if cursors:
                is_one = all(cursor.conversation is cursors[0].conversation for cursor in cursors)
                return min(cursors, key=lambda cursor: cursor.requests) if is_one else None
        return None

    def take(self, cursor: Cursor, asked: Asked) -> Taken | Unmatched:
        """Take the next step that accepts the request; the cursor does not move when none does."""
        request = cursor.requests + 1
        tried: list[tuple[Step, list[Difference]]] = []
        item, uses, taken = cursor.item, cursor.uses, dict(cursor.taken)
        items = cursor.conversation.items
        while item < len(items):
            here = items[item]
            if isinstance(here, Step):
                outcome = compare(here.expect, asked)
                if not outcome.differences:
                    uses += 1
                    if here.repeat is not None and uses >= here.repeat:
                        item, uses = item + 1, 0
                    return self._took(cursor, here, item, uses, {}, outcome.groups)
                tried.append((here, outcome.differences))
                may_pass = here.is_optional or (here.repeat is None and uses > 0)
            else:
                for step in here.steps:
                    if taken.get(step.number, 0) >= (step.repeat or 1):
                        continue
                    outcome = compare(step.expect, asked)
                    if not outcome.differences:
                        taken[step.number] = taken.get(step.number, 0) + 1
                        if all(taken.get(one.number, 0) >= (one.repeat or 1) for one in here.steps):
                            item, taken = item + 1, {}
                        return self._took(cursor, step, item, 0, taken, outcome.groups)
                    tried.append((step, outcome.differences))
                may_pass = not _missing(here, taken)
            if not may_pass:
                return explain_mismatch(self.script, cursor.conversation, asked, request, tried)
            item, uses, taken = item + 1, 0, {}
        if tried and cursor.item < len(items):
            return explain_mismatch(self.script, cursor.conversation, asked, request, tried)
        return explain_exhausted(self.script, cursor.conversation, asked, request, cursor.client)

    def _took(
        self, cursor: Cursor, step: Step, item: int, uses: int, taken: dict[int, int], groups: Mapping[str, str]
    ) -> Taken:
        before = (cursor.item, cursor.uses, cursor.taken)
        cursor.item, cursor.uses, cursor.taken = item, uses, taken
        cursor.requests += 1
        return Taken(cursor, step, cursor.requests, groups, before)

    def give_back(self, taken: Taken) -> None:
        """Undo the last take of this cursor: its step could not be played."""
        taken.cursor.item, taken.cursor.uses, taken.cursor.taken = taken.before
        taken.cursor.requests -= 1

    def exchanged(self, cursor: Cursor, asked: Asked, reply: AskedMessage | None) -> None:
        """Remember what was exchanged, so that the next request is known as its continuation.

        Shape: reply None when the client got no whole answer; a retry then continues, too.
        """
        digests = history_digests((*asked.messages, reply) if reply else asked.messages)
        if cursor.history is not None:
            others = [one for one in self._histories.get(cursor.history, []) if one is not cursor]
            if others:
                self._histories[cursor.history] = others
            else:
                self._histories.pop(cursor.history, None)
        cursor.history = digests[-1] if digests else None
        if cursor.history is not None:
            self._histories.setdefault(cursor.history, []).append(cursor)

    def used(self) -> int:
        """How many requests got a step."""
        return sum(cursor.requests for cursor in self._cursors.values())

    def leftovers(self) -> tuple[str, ...]:
        """Steps that should have been taken and were not, in words."""
        lines: list[str] = []
        for conversation in self.script.conversations:
            if conversation.is_background:
                continue
            cursors = [cursor for (name, _), cursor in self._cursors.items() if name == conversation.name]
            for cursor in cursors or [Cursor(conversation, "")]:
                lines.extend(self._left(cursor))
        return tuple(lines)

    def _left(self, cursor: Cursor) -> list[str]:
        where = called(self.script, cursor.conversation.name)
        who = f', client "{cursor.client}"' if cursor.client else ""
        lines: list[str] = []
        for at, item in enumerate(cursor.conversation.items[cursor.item :]):
            if isinstance(item, AnyOrder):
                missing = _missing(item, cursor.taken if at == 0 else {})
                lines.extend(f"{where}{who}: step {step.number} was never taken" for step in missing)
            elif not item.is_optional:
                uses = cursor.uses if at == 0 else 0
                if uses == 0:
                    lines.append(f"{where}{who}: step {item.number} was never taken")
                elif item.repeat is not None:
                    lines.append(f"{where}{who}: step {item.number} was taken {uses} of {item.repeat} times")
        return lines

    def reset(self) -> None:
        """Begin the play again."""
        self._cursors.clear()
        self._histories.clear()


def _missing(group: AnyOrder, taken: Mapping[int, int]) -> list[Step]:
    return [step for step in group.steps if not step.is_optional and taken.get(step.number, 0) < (step.repeat or 1)]
