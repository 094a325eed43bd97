"""A message as its receiver sees it. Owns its facts; acknowledging is handed to whoever gave it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rvq.wire.records import Content, shard_of

if TYPE_CHECKING:
    from rvq.ledger.ledger import Transaction


class Settler(Protocol):
    """Takes the outcome of a message: the receiver that gave it out."""

    def ack(self, message: Message) -> None: ...
    def retry(self, message: Message, delay: float) -> None: ...
    def reject(self, message: Message, reason: str, trace: str, attempts: int) -> None: ...
    def transaction(self, message: Message) -> Transaction: ...
    def lost(self, message: Message) -> Lost: ...


class Origin(Protocol):
    """Where a message came from: what all messages of one frame and lane have in common."""

    sent_at: float
    retries: dict[int, int]

    @property
    def label(self) -> str: ...
    @property
    def group(self) -> str | None: ...
    @property
    def stream(self) -> int: ...
    @property
    def settler(self) -> Settler | None: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def asked_at(self) -> float | None: ...
    @property
    def receiver_index(self) -> int | None: ...
    def sequence_of(self, place: int) -> int: ...
    def may_continue(self, now: float) -> bool: ...


class Lost(Protocol):
    """An asyncio.Event-like flag: the lane was lost, or its lease is over."""

    def is_set(self) -> bool: ...
    async def wait(self) -> bool: ...


class Message:
    """One message. `body`, `key` and `headers` are as sent.

    Under `ack="manual"` exactly one of `ack()`, `retry()` and `reject()` is called; later calls change nothing. A tap
    owns nothing: at its messages they change nothing at all.
    """

    # Hot: one is made per message, so everything that a frame's messages share stays with their origin, and what most
    # messages do not have is an attribute of the class.
    __slots__ = ("body", "origin", "place")

    key: str | bytes | None = None
    headers: dict[str, Any] | None = None
    due_at: float | None = None
    """Not to be handled before this: seconds since 1970."""
    ttl: float | None = None
    """Not to be handled later than so many seconds after it was sent."""
    urgent: bool = False

    def __init__(self, body: Any, origin: Origin, place: int) -> None:
        self.body = body
        self.origin = origin
        self.place = place

    @property
    def label(self) -> str:
        return self.origin.label

    @property
    def group(self) -> str | None:
        """The group that it was received for; None at a tap."""
        return self.origin.group

    @property
    def sender(self) -> int:
        """The id of the sender."""
        return self.origin.stream

    @property
    def sequence(self) -> int:
        """Its number in the sender's stream, from 1."""
        return self.origin.sequence_of(self.place)

    @property
    def id(self) -> str:
        """Sender and sequence in one text: the same for every delivery of this message."""
        return f"{self.sender:016x}-{self.sequence}"

    @property
    def sent_at(self) -> float:
        """When its frame was sent, by the sender's clock: seconds since 1970."""
        return self.origin.sent_at

    @property
    def shard(self) -> int | None:
        """0 to 1023 for a message with a key."""
        return None if self.key is None else shard_of(self.key)

    @property
    def lane(self) -> int | None:
        """The slot that it belongs to; None at a tap."""
        return self.origin.slot

    @property
    def receiver_index(self) -> int | None:
        """The place of this receiver in the table that the message was sent under; None if it was not in it."""
        return self.origin.receiver_index

    @property
    def lane_asked_at(self) -> float | None:
        """When this receiver asked for the progress of a lane that it inherited; None for a lane of its own."""
        return self.origin.asked_at

    @property
    def attempt(self) -> int:
        """1 when it is handed out first, one more each time that it was tried, here or by one that died over it."""
        return 1 + self.origin.retries.get(self.place, 0)

    @property
    def expires_at(self) -> float | None:
        """When its time to live is over: seconds since 1970."""
        return None if self.ttl is None else self.sent_at + self.ttl

    @property
    def redelivered(self) -> bool:
        """It may have been handled before: it was tried here, or its lane was another's."""
        return self.attempt > 1 or self.origin.asked_at is not None

    @property
    def lost(self) -> Lost:
        """A flag like asyncio.Event: the message is no longer this receiver's to handle."""
        return self._settler.lost(self)

    def ack(self) -> None:
        """It is done."""
        self._settler.ack(self)

    def retry(self, delay: float = 0.0) -> None:
        """Hand it out again, here, after `delay` seconds."""
        self._settler.retry(self, delay)

    def reject(self, reason: str = "") -> None:
        """It will never be handled: it goes to the label `<label>.dead`, and is done for its sender."""
        self._settler.reject(self, reason, "", 0)

    def bury(self, error: str, *, trace: str = "", attempts: int = 0) -> None:
        """As `reject`, with a traceback; and with how often it was tried, if not `attempt` times."""
        self._settler.reject(self, error, trace, attempts)

    def transaction(self) -> Transaction:
        """What the handler writes, and the mark that this message is done, together or not at all.

        `async with message.transaction() as tx` in a coroutine, `with` in a plain function. Needs a ledger.
        """
        return self._settler.transaction(self)

    @property
    def _settler(self) -> Settler:
        settler = self.origin.settler
        assert settler is not None, "messages of a simulation are settled by their world"
        return settler

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self.label!r}>"


def make_messages(bodies: Sequence[Any], origin: Origin, place: int) -> list[Message]:
    """The messages of one origin at consecutive places, from `place` on. Hot: without a call in Python for each."""
    made: list[Message] = []
    for body in bodies:
        message = PlainMessage()
        message.body = body
        message.origin = origin
        message.place = place
        place += 1
        made.append(message)
    return made


class PlainMessage(Message):
    """One with a body alone. Made without arguments, and filled by whoever makes it: that saves a call in Python."""

    __slots__ = ()
    __init__ = object.__init__


class RichMessage(Message):
    """One with more than a body."""

    __slots__ = ("due_at", "headers", "key", "ttl", "urgent")

    def __init__(self, content: Content, origin: Origin, place: int) -> None:
        self.origin = origin
        self.place = place
        self.body, self.key, self.headers, self.due_at, self.ttl, self.urgent = content
