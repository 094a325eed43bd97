"""What rvq raises. One root; facts are attributes; each message says what is wrong, with what, and what to do.

A stranger's bad datagram is `WireError`, which never leaves the receive path: it is counted there and dropped.
"""

from __future__ import annotations


class RvqError(Exception):
    """Root of everything that rvq raises on purpose."""


class NotDelivered(RvqError):
    """Messages that were sent were not done in time. `undone` says how many."""

    def __init__(self, undone: int, why: str = "") -> None:
        self.undone = undone
        self.why = why
        text = f"{undone} message{'s' if undone != 1 else ''} not done"
        super().__init__(f"{text}: {why}" if why else f"{text}: raise linger=/timeout=, or see why receivers lag")


class MessageTooLarge(RvqError):
    """A packed message is larger than the limit."""

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            f"message of {size:,} bytes is over the limit of {limit:,}: send a reference, or cut it in parts"
        )


class BadArgument(RvqError, ValueError, TypeError):
    """An argument or setting of the wrong kind, or out of range. Python's own names for that catch it too."""


class BadMessage(RvqError, TypeError):
    """A body, key or header that cannot be put on the wire."""


class BadLabel(RvqError, ValueError):
    """A label or group name that cannot be used."""


class BusError(RvqError):
    """The bus cannot be reached as configured: no such interface, port taken, no multicast, wrong setting."""


class Closed(RvqError):
    """A call on a sender or receiver that is closed."""


class OrderFailed(RvqError):
    """An order to receivers was not carried out, as far as is known: nobody there, no answer, refused."""


class LedgerError(RvqError):
    """The ledger cannot be used: out of reach, not a ledger, another version, no driver, a wait that was too long."""


class AlreadyDone(RvqError):
    """The ledger has the mark of this message: its effect is there. `mark` says which. Nothing is left to do."""

    def __init__(self, mark: tuple[str, str, int, int]) -> None:
        self.mark = mark
        label, group, sender, sequence = mark
        super().__init__(
            f"message {sequence} of sender {sender:016x} to {label} is done in group {group}: acknowledge it"
        )


class JournalError(RvqError):
    """The journal cannot be used as asked: not there, of another version or group, a full disk. `path` says where."""

    def __init__(self, path: object, words: str) -> None:
        self.path = str(path)
        self.words = words
        super().__init__(path, words)  # as they came, so that it can be sent from one process to another

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


class JournalDamaged(JournalError):
    """Bytes that were on disk and synced are not what was written. `path` and `position` say which."""

    def __init__(self, path: object, position: int, words: str) -> None:
        super().__init__(path, words)
        self.position = position
        self.args = (path, position, words)

    def __str__(self) -> str:
        return (
            f"{self.path}: damaged at byte {self.position:,}: {self.words}. Nothing was changed: take the segment from"
            " the other copy of the journal, or move it away and lose what it alone has"
        )


class JournalExpired(JournalError):
    """A position in a journal at which there is nothing any more. `path` and `position` say which."""

    def __init__(self, path: object, position: int, words: str) -> None:
        super().__init__(path, words)
        self.position = position
        self.args = (path, position, words)

    def __str__(self) -> str:
        return f"{self.path}: nothing to read at byte {self.position:,}: {self.words}"


class SparkError(RvqError, ValueError):
    """Spark cannot be used as asked: a wrong option, column or offset, a journal that is not there, no Java."""


class WebError(RvqError):
    """The page cannot be served: no aiohttp, or an address or port that cannot be had."""


class WireError(RvqError):
    """Bytes that are not a frame of this protocol. Counted and dropped by whoever reads a socket."""
