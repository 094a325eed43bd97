"""A receiver's dead letters on their way. Owns the sender to the label of the dead; opened with the first of them."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from rvq import limits
from rvq.aio.driver import logger
from rvq.aio.sender import Sender
from rvq.aio.tracing import carried
from rvq.bus import Bus
from rvq.dead import DeadLetter, dead_label
from rvq.errors import BadMessage, MessageTooLarge, NotDelivered, RvqError
from rvq.wire.records import Record, make_record

LINGER_S = 5.0
"""How long a receiver that leaves waits for someone who is there to take its dead letters."""


class DeadLetters:
    """Those of one receiver. They live in its process until somebody who listens to the label has taken them."""

    def __init__(self, label: str, bus: Bus, *, window: int = limits.RETAINED_BYTES) -> None:
        self.left: list[str] = []
        """The ids of those that nobody took, once it is closed."""
        self._label = dead_label(label)
        self._bus = bus
        self._window = window
        self._sender: Sender | None = None
        self._ids: deque[str] = deque()
        """Of those that nobody has taken yet, as far as is known: the last so many."""

    def bury(self, letter: DeadLetter) -> None:
        """Send it, as soon as anybody listens."""
        if self._label is None:
            logger.warning("dead letter %s was rejected in turn, and is dropped: %s", letter.id, letter.error)
            return
        try:
            sent = self._open_sender(self._label).submit(_record(letter))
        except RvqError as error:
            logger.error("dead letter %s is lost, since it cannot be sent: %s", letter.id, error)
            return
        if sent:
            self._ids.append(letter.id)
            while len(self._ids) > self.undone:
                self._ids.popleft()
        else:
            logger.error("dead letter %s is lost: nobody takes those of %s, and no more fit", letter.id, letter.label)

    def _open_sender(self, label: str) -> Sender:
        if self._sender is None:
            sender = Sender(label, bus=self._bus, window=self._window)
            sender.open()
            self._sender = sender
        return self._sender

    @property
    def has_room(self) -> bool:
        """Is there room for another one?"""
        return self._sender is None or self._sender.has_room

    @property
    def undone(self) -> int:
        """Dead letters that nobody has taken yet."""
        return self._sender.undone if self._sender is not None else 0

    async def aclose(self) -> None:
        """Wait a little for whoever listens; then what nobody took is gone, and said."""
        sender, self._sender = self._sender, None
        if sender is None:
            return
        try:
            with suppress(NotDelivered):
                await sender.flush(self._bus.expiry)  # by then it is known whether anybody listens
            sender.linger = LINGER_S if sender.has_listeners else 0.0
            if sender.undone and sender.linger:
                letters = f"{sender.undone} dead letter{'s' * (sender.undone != 1)}"
                logger.warning("waiting up to %g s for those on %s to take %s", LINGER_S, self._label, letters)
            with suppress(NotDelivered):
                await sender.aclose()
        finally:
            sender.end()
            self._tell_of_the_left(sender.undone)

    def _tell_of_the_left(self, undone: int) -> None:
        if undone:
            self.left = list(self._ids)[-undone:]
            shown = ", ".join(self.left[:10]) + (", …" if len(self.left) > 10 else "")
            logger.error(
                "%d dead letter%s with this process, since nobody took %s from %s: %s",
                undone,
                *((" ends", "it") if undone == 1 else ("s end", "them")),
                self._label,
                shown,
            )


def _record(letter: DeadLetter) -> Record:
    """Without what makes it too large or too deep for a message, which is then said. Its trace's context goes along."""
    try:
        return make_record(letter.as_body(), None, carried(letter.headers))
    except MessageTooLarge as error:
        return make_record(letter.without_body(error.size).as_body())
    except BadMessage as error:
        return make_record(letter.without_body(error).as_body())
