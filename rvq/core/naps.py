"""Was I awake? Owns the moment at which this process meant to be called next.

Silence counts only while oneself was awake: a process that was stopped, or whose loop was blocked, must give its nap
to everyone before it judges anyone.
"""

from __future__ import annotations

import math


class Naps:
    """Tells how long the process slept past its own timer."""

    __slots__ = ("_awake_at", "_due", "_slack", "late_at")

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._awake_at = -math.inf
        """When it was last asked: up to then nobody slept, however long ago something was due."""
        self._due = math.inf
        self.late_at = math.inf
        """A call up to then is no nap: who is called often compares with it before asking."""

    def expect(self, due: float) -> None:
        """The driver was told to call at `due` at the latest."""
        self._due = max(due, self._awake_at)
        self.late_at = self._due + self._slack

    def slept(self, now: float) -> float:
        """How much too late this call comes; 0 within the slack."""
        self._awake_at = now
        if now <= self.late_at:
            return 0.0
        late = now - self._due
        self.expect(now)
        return late
