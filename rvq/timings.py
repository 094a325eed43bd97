"""The protocol's durations. Owns their defaults, their meaning and the relations between them.

All durations are seconds of each process's own monotonic clock; only rates are compared between hosts, and they
may differ by `CLOCK_RATE_ERROR`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvq.errors import BusError

CLOCK_RATE_ERROR = 0.1
"""How far two clocks' rates may be apart: heirs wait this much longer than a lease lasts."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Everyone on a bus should use the same. The defaults suit a LAN.

    heartbeat: pause between *I am alive*. Shorter finds the dead sooner and costs a small frame per member each time.
    expiry: silence after which a peer is taken for dead. At least three heartbeats, so one lost frame kills nobody.
    lease: how long an echo lets a receiver start messages. Shorter means faster takeover; it must outlast a lost echo.
    settle: how long a keeper lets joiners gather before it writes a table.
    orphan_for: how long owners go on with a stream whose sender is gone, counted from its last echo.
    report: longest pause between progress and its report; what a death can repeat is what was handled in it.
    """

    heartbeat: float = 0.2
    expiry: float = 1.0
    lease: float = 1.0
    settle: float = 0.05
    orphan_for: float = 5.0
    report: float = 0.02

    def __post_init__(self) -> None:
        for name in ("heartbeat", "expiry", "lease", "settle", "orphan_for", "report"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < 3600:
                raise BusError(f"{name}={value!r} is not a duration: give seconds above 0 and below 3600")
        self._at_least("expiry", 3 * self.heartbeat, "three heartbeats, or one lost frame expels a receiver")
        self._at_least("lease", 3 * self.heartbeat, "three heartbeats, or one lost echo stops a receiver")
        self._at_least("orphan_for", self.lease + self.expiry, "lease + expiry, or no stream is ever finished")

    def _at_least(self, name: str, least: float, why: str) -> None:
        value = getattr(self, name)
        if value < least - 1e-9:
            raise BusError(f"{name}={value:g} is too short: it must be at least {least:g} ({why})")

    @property
    def settle_max(self) -> float:
        """The longest that a stream of joiners can put off a table."""
        return 20 * self.settle

    @property
    def first_table(self) -> float:
        """How long a receiver that hears of no table waits before it writes the first."""
        return 3 * self.heartbeat

    @property
    def heir_wait(self) -> float:
        """When the lease of one who was heard just now must be over, by anyone's clock."""
        return self.lease * (1 + CLOCK_RATE_ERROR)

    @property
    def orphan_after(self) -> float:
        """Silence of a sender after which a receiver says so: early enough for all to agree before a lease is over."""
        return 0.6 * self.lease

    @property
    def orphan_wait(self) -> float:
        """When one who was heard just now must have stopped even if it took the stream for orphaned."""
        return self.orphan_for * (1 + CLOCK_RATE_ERROR)

    @property
    def flow_silence(self) -> float:
        """A receiver silent for this long no longer holds flow back."""
        return 2 * self.heartbeat
