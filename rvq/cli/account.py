"""What `rvq-send` has sent, and what of it is done. Owns the count and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rvq


class Account:
    """What was sent, and how much of it is not known to be done."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.sent = 0
        self.undone = 0

    @property
    def done(self) -> int:
        return self.sent - self.undone

    def take(self, sender: rvq.Sender) -> None:
        self.sent, self.undone = sender.stats.inserted, sender.undone

    def summary(self, now: float) -> str:
        return f"sent {self.sent}, done {self.done}, undone {self.undone} in {now - self.began:.2f} s"
