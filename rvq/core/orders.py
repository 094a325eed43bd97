"""What people who run the bus ask of one receiver. Owns what was answered to each order, and whether the group pauses.

A pause is a word that the whole group has: whoever knows a newer one takes it over, from an order or from another's
heartbeat. So it outlives whoever heard the order, and newcomers learn it. Carries nothing out itself.
"""

from __future__ import annotations

from rvq.limits import ORDERS_REMEMBERED_MAX
from rvq.wire.frames import NO_PAUSE, Order, OrderOutcome, Pause


class Orders:
    """One receiver's."""

    __slots__ = ("_answered", "asked", "pause")

    def __init__(self) -> None:
        self.pause = NO_PAUSE
        """The newest word on whether the group is paused."""
        self.asked = False
        """Is it known what the group says of that? A newcomer starts nothing before, or it would start in a pause."""
        self._answered: dict[tuple[int, int], OrderOutcome] = {}

    @property
    def rests(self) -> bool:
        """May nothing be started?"""
        return self.pause.paused or not self.asked

    def hear(self, pause: Pause) -> bool:
        """What another of the group says. True if that changes whether it is paused."""
        before, self.pause = self.pause, max(self.pause, pause)
        return before.paused != self.pause.paused

    def set_pause(self, order: Order) -> OrderOutcome:
        """An order to pause or to go on."""
        wanted = order.pause
        if wanted < self.pause and wanted.paused != self.pause.paused:
            return OrderOutcome.OVERRULED
        return OrderOutcome.CARRIED_OUT if self.hear(wanted) else OrderOutcome.WAS_SO

    def answered(self, order: Order) -> OrderOutcome | None:
        """What was answered to it; None if it is new."""
        return self._answered.get((order.source, order.nonce))

    def remember(self, order: Order, outcome: OrderOutcome) -> None:
        self._answered[order.source, order.nonce] = outcome
        if len(self._answered) > ORDERS_REMEMBERED_MAX:
            del self._answered[next(iter(self._answered))]

    def check_invariants(self) -> None:
        assert len(self._answered) <= ORDERS_REMEMBERED_MAX
