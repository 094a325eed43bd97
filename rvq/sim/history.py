"""What happened in a world, as the checkers read it. Owns the kinds of events and the list of them.

Times are true times. A message is named by its stream and sequence; receivers and senders by their names in the world.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from rvq.wire.frames import Control


class Submitted(NamedTuple):
    """A sender was given a message."""

    at: float
    stream: int
    sequence: int
    key: str | bytes | None
    body: Any
    is_later: bool = False
    """It has a due time, and so is not in its key's order."""
    may_expire: bool = False
    """It has a time to live."""


class Owed(NamedTuple):
    """A group came into a sender's stamps: from sequence `first` on, it gets every message of the stream."""

    at: float
    stream: int
    group: str
    first: int


class GivenUp(NamedTuple):
    """A sender goes on without a group: what that had not done of the stream, up to sequence `last`, is lost."""

    at: float
    stream: int
    group: str
    last: int


class Started(NamedTuple):
    """A receiver began to handle a message."""

    at: float
    receiver: str
    group: str
    stream: int
    sequence: int
    key: str | bytes | None
    body: Any
    asked_at: float | None = None
    """When the receiver asked for the progress of the lane it inherited; None for a lane that was always its own."""
    rivals: tuple[str, ...] = ()
    """The other receivers of the group that could have started the same message at this moment."""
    wall: float = 0.0
    """What the receiver's wall clock showed."""
    due_at: float | None = None
    expires_at: float | None = None


class Finished(NamedTuple):
    """A receiver handled a message to the end and acknowledged it."""

    at: float
    receiver: str
    group: str
    stream: int
    sequence: int


class Failed(NamedTuple):
    """A handler raised; the receiver will try again, or give the message up."""

    at: float
    receiver: str
    group: str
    stream: int
    sequence: int
    again: bool = True


class Dead(NamedTuple):
    """A receiver gave a message up: it goes to the label of the dead, and is done for its sender."""

    at: float
    receiver: str
    group: str
    stream: int
    sequence: int
    attempts: int
    attempts_max: int


class Done(NamedTuple):
    """The sender recorded a message as done in a group."""

    at: float
    stream: int
    group: str
    sequence: int


class Recording(NamedTuple):
    """A recorder came: its group is a journal."""

    at: float
    receiver: str
    group: str


class Took(NamedTuple):
    """A recorder was given a message to store."""

    at: float
    receiver: str
    group: str
    stream: int
    sequence: int
    key: str | bytes | None
    body: Any
    asked_at: float | None = None
    rivals: tuple[str, ...] = ()
    """As of a message that was started."""


class Stored(NamedTuple):
    """A message is on a recorder's disk."""

    at: float
    receiver: str
    group: str
    stream: int
    sequence: int


class Recorded(NamedTuple):
    """A control frame is on a recorder's disk: what `who` said."""

    at: float
    receiver: str
    who: str
    frame: Control


class Seen(NamedTuple):
    """A tap was shown a message."""

    at: float
    tap: str
    stream: int
    sequence: int
    key: str | bytes | None
    body: Any


class Ended(NamedTuple):
    """A process is gone. `stream` is its own if it was a sender."""

    at: float
    process: str
    stream: int | None
    crashed: bool


class Broken(NamedTuple):
    """A machine raised, or its invariants do not hold."""

    at: float
    process: str
    error: str


class Deceived(NamedTuple):
    """On a sealed bus a machine was given what nobody said, or what was said to it before or before it came."""

    at: float
    process: str
    words: str


Event = (
    Submitted
    | Owed
    | GivenUp
    | Started
    | Finished
    | Failed
    | Dead
    | Done
    | Seen
    | Recording
    | Took
    | Stored
    | Recorded
    | Ended
    | Deceived
    | Broken
)


class History:
    """Everything that happened, in order, and what is handled to the end but not yet known to be done."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.journals: dict[str, None] = {}
        """The groups that record."""
        # Dicts stand for ordered sets: a set of names would be walked in another order in every Python process.
        self._unrecorded: dict[int, dict[tuple[str, int], None]] = {}
        self._recorded: set[tuple[int, str, int]] = set()

    def add(self, event: Event) -> None:
        self.events.append(event)
        if (
            isinstance(event, (Finished, Dead, Stored))
            and (event.stream, event.group, event.sequence) not in self._recorded
        ):
            self._unrecorded.setdefault(event.stream, {})[event.group, event.sequence] = None
        elif type(event) is Recording:
            self.journals[event.group] = None
        elif type(event) is Done:
            self._recorded.add((event.stream, event.group, event.sequence))
            self._unrecorded.get(event.stream, {}).pop((event.group, event.sequence), None)

    def unrecorded(self, stream: int) -> list[tuple[str, int]]:
        """(group, sequence) of what was handled to the end, and not yet seen as done at its sender."""
        return list(self._unrecorded.get(stream, ()))

    def is_recorded(self, stream: int, group: str, sequence: int) -> bool:
        """Was it seen as done at its sender?"""
        return (stream, group, sequence) in self._recorded

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def digest(self) -> str:
        """The same for the same history: shows that a seed gives the same world again."""
        return blake2b(repr(self.events).encode(), digest_size=8).hexdigest()
