"""The catalogue of counters. Owns their names and meaning; each machine counts in one of these."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Stats:
    """Counts since the start of one sender or receiver. Of messages, unless it says frames."""

    inserted: int = 0
    """Sender: accepted by `send`."""
    routed: int = 0
    """Sender: given a sequence and sent. Receiver: arrived and its own."""
    emitted: int = 0
    """Receiver: handed to the user; again for each retry."""
    acked: int = 0
    """Sender: done in every group. Receiver: acknowledged."""
    retried: int = 0
    """Receiver: to be handed out again."""
    dead: int = 0
    """Receiver: rejected for good."""
    expired: int = 0
    """Receiver: dropped because their time to live was over."""
    repaired: int = 0
    """Sender: frames sent again. Receiver: frames that were asked for."""
    duplicates: int = 0
    """Receiver: frames that came again."""
    bad_frames: int = 0
    """Datagrams that were no frames of this bus, and were dropped."""
    lost: int = 0
    """Receiver: messages given up because their sender died."""

    def as_dict(self) -> dict[str, int]:
        return asdict(self)
