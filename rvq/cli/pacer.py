"""At most so many messages per second. Owns the allowance; `now` is handed in."""

from __future__ import annotations

BURST_S = 0.05
"""What may be caught up after a pause: enough to make up for a late timer, too little to notice."""

STEP_S = 0.01
"""The shortest wait: shorter ones would cost more than they even out."""


class Pacer:
    """A bucket that fills at `rate` and holds `BURST_S` of it, or one message."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._full = max(1.0, rate * BURST_S)
        self._allowance = 1.0
        self._at = now

    def take(self, now: float, wanted: int) -> int:
        """How many of the wanted may go now. They count as gone."""
        self._allowance = min(self._full, self._allowance + (now - self._at) * self._rate)
        self._at = now
        taken = min(wanted, int(self._allowance + 1e-9))
        self._allowance -= taken
        return taken

    def wait_s(self) -> float:
        """How long to wait before the next `take`."""
        return max(STEP_S, (1.0 - self._allowance) / self._rate)
