"""The play: a cursor for each conversation and client, which step is next, what is left over.

Room: pure; the engine comes in and holds the lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mock_provider.asked import Asked, AskedMessage, history_digests
from mock_provider.expect import Difference, Expect, compare, try_fit
from mock_provider.match import (
    NEAREST_LIMIT,
    Naming,
    Unmatched,
    called,
    explain_exhausted,
    explain_mismatch,
    explain_none,
    explain_several,
    explain_too_many,
    explain_unknown_name,
)
from mock_provider.selection import Selection
from mock_provider.steps import AnyOrder, Conversation, Script, Step
from mock_provider.values import value


@dataclass(slots=True)
class Cursor:
    """Where one client stands in one conversation.

    Shape: item is the index of the item whose turn it is, uses how often its step was taken; of a group, taken is how
    often each step was and full counts those that are used up. requests counts accepted requests, history is the
    digest of what was exchanged. lots counts by step how often there was a lot, and how often in a row it was a fault.
    """

    conversation: Conversation
    client: str
    item: int = 0
    uses: int = 0
    taken: dict[int, int] = field(default_factory=dict)
    full: int = 0
    requests: int = 0
    history: str | None = None
    lots: dict[int, tuple[int, int]] = field(default_factory=dict)


@value
class Taken:
    """A step for a request; nothing has moved yet.

    Shape: item is the index of the step, or of the group it is in; use counts the cursor's requests from 1;
    groups may be copied from.
    """

    cursor: Cursor
    item: int
    step: Step
    use: int
    groups: Mapping[str, str]


class History:
    """The messages of a request with the digest of every beginning, worked out when somebody asks."""

    __slots__ = ("_digests", "_messages")

    def __init__(self, messages: tuple[AskedMessage, ...]) -> None:
        self._messages = messages
        self._digests: list[str] | None = None

    @property
    def messages(self) -> tuple[AskedMessage, ...]:
        """The messages themselves."""
        return self._messages

    def digests(self) -> list[str]:
        """One digest for each message that is not a system prompt."""
        if self._digests is None:
            self._digests = history_digests(self._messages)
        return self._digests

    def with_reply(self, reply: AskedMessage | None) -> str | None:
        """The digest of everything, the reply included; None for an empty history."""
        digests = self.digests()
        so_far = digests[-1] if digests else ""
        return (history_digests((reply,), so_far)[0] if reply else so_far) or None


class Playback:
    """All cursors of one script.

    Shape: find and take look; enter and move change. remembers says that exchanges are known again by their history,
    also where only one conversation could be meant. Limits: not safe for threads; the engine locks.
    """

    def __init__(self, script: Script, *, remembers: bool = False) -> None:
        self.script = script
        self._by_name = {conversation.name: conversation for conversation in script.conversations}
        self._cursors: dict[str, dict[str, Cursor]] = {name: {} for name in self._by_name}
        self._histories: dict[str, list[Cursor]] = {}
        first = script.conversations[0] if len(script.conversations) == 1 else None
        self.is_single = first is not None and first.when is None and first.parallel == 1
        self.remembers = remembers or not self.is_single
        self._background = Selection([one for one in script.conversations if one.is_background], _when)
        self._others = Selection([one for one in script.conversations if not one.is_background], _when)
        self._open = [one for one in script.conversations if one.when is None]
        self._groups: dict[int, Selection[Step]] = {}

    # Looking

    def find(self, asked: Asked, naming: Naming | None, number: int, history: History) -> Cursor | Unmatched:
        """Find who plays: explicit name, background `when`, continuation, `when`, the single open conversation."""
        if naming is not None:
            named = self._by_name.get(naming.conversation)
            if named is None:
                return explain_unknown_name(self.script, naming)
            return self._client(named, naming.client, history)
        if self.is_single:
            only = self._open[0]
            return self._cursors[only.name].get("") or Cursor(only, "")
        background = self._background.fitting(asked)
        if len(background) > 1:
            return explain_several(self.script, background, asked, number)
        if background:
            return self._client(background[0], "", history)
        continued = self._continued(history)
        if continued is not None:
            return continued
        found = self._others.fitting(asked) or self._open
        if len(found) > 1:
            return explain_several(self.script, found, asked, number)
        if not found:
            return explain_none(self.script, asked, number)
        return self._client(found[0], "", history)

    def _client(self, conversation: Conversation, client: str, history: History) -> Cursor | Unmatched:
        """The client's cursor; a parallel conversation gives an unnamed client a free one."""
        cursors = self._cursors[conversation.name]
        if client and client not in cursors and len(cursors) >= conversation.parallel:
            return explain_too_many(self.script, conversation, client)
        if conversation.parallel > 1 and not client:
            continued = self._continued(history, conversation)
            if continued is not None:
                return continued
            if len(cursors) >= conversation.parallel:
                return min(cursors.values(), key=lambda cursor: cursor.requests)
            client = f"#{len(cursors) + 1}"
        return cursors.get(client) or Cursor(conversation, client)

    def _continued(self, history: History, only: Conversation | None = None) -> Cursor | None:
        """The cursor whose exchange so far is the longest beginning of this request.

        Shape: None when cursors of two conversations are equal in that; of one conversation the least advanced.
        """
        if not self._histories:
            return None
        for digest in reversed(history.digests()):
            cursors = self._histories.get(digest, [])
            if only is not None:
                cursors = [cursor for cursor in cursors if cursor.conversation is only]
            if cursors:
                is_one = all(cursor.conversation is cursors[0].conversation for cursor in cursors)
                return min(cursors, key=lambda cursor: cursor.requests) if is_one else None
        return None

    def begun(self, naming: Naming | None) -> Cursor | None:
        """The cursor of a client that is told by its name alone; None where more has to be looked at, or it is new."""
        if self.remembers:
            return None
        if naming is None:
            return self._cursors[self._open[0].name].get("")
        cursors = self._cursors.get(naming.conversation)
        return None if cursors is None else cursors.get(naming.client)

    def take(self, cursor: Cursor, asked: Asked) -> Taken | Unmatched:
        """The next step that accepts the request."""
        request = cursor.requests + 1
        tried: list[tuple[Step, list[Difference]]] = []
        item, uses, counts = cursor.item, cursor.uses, cursor.taken
        items = cursor.conversation.items
        while item < len(items):
            here = items[item]
            if isinstance(here, Step):
                groups = try_fit(here.expect, asked)
                if groups is not None:
                    return Taken(cursor, item, here, request, groups)
                tried.append((here, compare(here.expect, asked).differences))
                may_pass = here.is_optional or (here.repeat is None and uses > 0)
            else:
                for step in self._candidates(here, asked):
                    if counts.get(step.number, 0) < (step.repeat or 1):
                        groups = try_fit(step.expect, asked)
                        if groups is not None:
                            return Taken(cursor, item, step, request, groups)
                unused = [step for step in here.steps if counts.get(step.number, 0) < (step.repeat or 1)]
                tried += [(step, compare(step.expect, asked).differences) for step in unused[:NEAREST_LIMIT]]
                may_pass = not _missing(here, counts)
            if not may_pass:
                return explain_mismatch(self.script, cursor.conversation, asked, request, tried)
            item, uses, counts = item + 1, 0, {}
        if tried and cursor.item < len(items):
            return explain_mismatch(self.script, cursor.conversation, asked, request, tried)
        return explain_exhausted(self.script, cursor.conversation, asked, request, cursor.client)

    def _candidates(self, group: AnyOrder, asked: Asked) -> Iterable[Step]:
        """The steps of a group that may fit, in their order."""
        selection = self._groups.get(id(group))
        if selection is None:
            selection = self._groups[id(group)] = Selection(list(group.steps), _expect)
        return selection.candidates(asked)

    def seal(self, history: History, reply: AskedMessage | None) -> str | None:
        """What to remember of an exchange, so that the next request is known as its continuation.

        Shape: reply None when the client got no whole answer; a retry then continues, too.
        """
        return history.with_reply(reply) if self.remembers else None

    def goes_on(self, history: History, name: str | None) -> bool:
        """Whether a request continues a conversation, of this name if one is given, that has steps left."""
        if not any(message.role == "assistant" for message in history.messages):
            return False
        only = None if name is None else self._by_name.get(name)
        if name is not None and only is None:
            return False
        cursor = self._continued(history, only)
        return cursor is not None and cursor.item < len(cursor.conversation.items)

    # Moving

    def enter(self, conversation: str, client: str) -> Cursor:
        """Count a client as a player of a conversation."""
        cursors = self._cursors[conversation]
        if client not in cursors:
            cursors[client] = Cursor(self._by_name[conversation], client)
        return cursors[client]

    def move(self, conversation: str, client: str, item: int, step: int, history: str | None) -> None:
        """Use a step up, and remember what was exchanged."""
        cursor = self._cursors[conversation].get(client) or self.enter(conversation, client)
        if item != cursor.item:
            cursor.item, cursor.uses, cursor.taken, cursor.full = item, 0, {}, 0
        here = cursor.conversation.items[item]
        if isinstance(here, Step):
            self.use(cursor, here)
            is_over = False
        else:
            cursor.requests += 1
            count = cursor.taken[step] = cursor.taken.get(step, 0) + 1
            cursor.full += count == (here.steps[step - here.steps[0].number].repeat or 1)
            is_over = cursor.full == len(here.steps)
        if is_over:
            cursor.item, cursor.uses, cursor.taken, cursor.full = item + 1, 0, {}, 0
        if self.remembers:
            self._remember(cursor, history)

    def use(self, cursor: Cursor, step: Step) -> None:
        """Use the step up at which a cursor stands, once."""
        cursor.requests += 1
        cursor.uses += 1
        if step.repeat is not None and cursor.uses >= step.repeat:
            cursor.item, cursor.uses, cursor.taken, cursor.full = cursor.item + 1, 0, {}, 0

    def note_lot(self, conversation: str, client: str, step: int, history: str | None, *, is_hit: bool) -> None:
        """Count a lot. A request that was hit used nothing up, and the next try is known as its continuation."""
        cursor = self.enter(conversation, client)
        draws, in_a_row = cursor.lots.get(step, (0, 0))
        cursor.lots[step] = (draws + 1, in_a_row + 1 if is_hit else 0)
        if is_hit:
            self._remember(cursor, history)

    def _remember(self, cursor: Cursor, history: str | None) -> None:
        if cursor.history is not None:
            others = [one for one in self._histories.get(cursor.history, []) if one is not cursor]
            if others:
                self._histories[cursor.history] = others
            else:
                self._histories.pop(cursor.history, None)
        cursor.history = history
        if history is not None:
            self._histories.setdefault(history, []).append(cursor)

    def reset(self) -> None:
        """Begin the play again."""
        for cursors in self._cursors.values():
            cursors.clear()
        self._histories.clear()

    # Judging

    def used(self) -> int:
        """How many requests got a step."""
        return sum(cursor.requests for cursors in self._cursors.values() for cursor in cursors.values())

    def leftovers(self, *, only_begun: bool = False) -> tuple[str, ...]:
        """Steps that should have been taken and were not, in words; on request only of conversations that began."""
        lines: list[str] = []
        for conversation in self.script.conversations:
            if not conversation.is_background:
                cursors = self._cursors[conversation.name]
                for cursor in list(cursors.values()) or ([] if only_begun else [Cursor(conversation, "")]):
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


def _when(conversation: Conversation) -> Expect | None:
    return conversation.when


def _expect(step: Step) -> Expect | None:
    return step.expect


def _missing(group: AnyOrder, taken: Mapping[int, int]) -> list[Step]:
    return [step for step in group.steps if not step.is_optional and taken.get(step.number, 0) < (step.repeat or 1)]
