"""Was I awake? Owns the moment at which this process meant to be called next.

Silence counts only while oneself was awake: a process that was stopped, or whose loop was blocked, must give its nap
to everyone before it judges anyone.
"""

from __future__ import annotations

import math


class Naps:
    """Tells how long the process slept past its own timer."""

    __slots__ = ("_due", "_slack")

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._due = math.inf

    def expect(self, due: float) -> None:
        """The driver was told to call at `due` at the latest."""
        self._due = due

    def slept(self, now: float) -> float:
        """How much too late this call comes; 0 within the slack."""
        late = now - self._due
        if late <= self._slack:
            return 0.0
        self._due = now
        return late
