"""One who gives an order to a receiver or a group, and hears what became of it. Owns finding whom it is for, repeating,
and the answers.

It listens for a few heartbeats first: so it knows who is there, and of a group's pause which order would be newer. Then
it says the order until everybody whom it is for has answered, or is gone. It is no member of anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from rvq.core.belief import check_counters
from rvq.core.end import End
from rvq.core.machine import Address, Route, Wall
from rvq.errors import WireError
from rvq.limits import MEMBERS_MAX
from rvq.timings import Timings
from rvq.wire.codec import decode_control, peek
from rvq.wire.frames import NO_PAUSE, Alive, Goodbye, Order, OrderDone, OrderKind, OrderOutcome, Pause, label_tag

LISTEN_BEATS = 3.5
"""Heartbeats that it waits for before it says who is not there: as many as may get lost before one counts as dead."""

PATIENCE_EXPIRIES = 5.0
"""An order that nobody has answered for so long was not carried out, as far as is known."""

SEEN_MAX = MEMBERS_MAX
"""Receivers of the label that it looks at."""


class Wish(NamedTuple):
    """What is wanted: of the receiver whose id begins so, or of all of a group."""

    what: OrderKind
    whom: str
    """Hexadecimal digits of an id; or the name of a group, for a pause and its end."""
    value: int = 0

    @property
    def is_of_group(self) -> bool:
        return self.what in (OrderKind.PAUSE, OrderKind.RESUME)


@dataclass(slots=True)
class Seen:
    """A receiver of the label, as its last heartbeat told."""

    id: int
    address: Address
    group: str
    pause: Pause
    expires_at: float


class AskerMachine(End):
    """One order, from looking for whom it is for to the last answer."""

    def __init__(
        self,
        label: str,
        id: int,
        wish: Wish,
        *,
        nonce: int,
        by: str,
        timings: Timings,
        now: float,
        wall_offset: float = 0,
    ) -> None:
        super().__init__(label_tag(label), timings.heartbeat, now)
        self.label, self.id, self.wish = label, id, wish
        self.wall = Wall(wall_offset)
        self.seen: dict[int, Seen] = {}
        self.answers: dict[int, OrderOutcome] = {}
        """What was answered, by whom."""
        self.fault: str | None = None
        """Why it was not carried out; None as long as that is not known, or if it was."""
        self._nonce, self._by, self._timings = nonce, by, timings
        self._order: Order | None = None
        self._decide_at = now + LISTEN_BEATS * timings.heartbeat
        self._give_up_at = math.inf
        self._wake_at(self._decide_at)

    @property
    def over(self) -> bool:
        """Is it known what became of the order?"""
        return self._ended

    @property
    def group(self) -> str | None:
        """Of the receivers that it is for, once they are found."""
        return self._order.group if self._order is not None else None

    @property
    def ordered(self) -> list[int]:
        """Those who did what was asked, or had done so before."""
        good = (OrderOutcome.CARRIED_OUT, OrderOutcome.WAS_SO)
        return sorted(id for id, outcome in self.answers.items() if outcome in good)

    # --- frames in ------------------------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came. Strangers' are passed over."""
        if self._ended:
            return
        try:
            if peek(datagram)[1] != self._tag:
                return
            frame = decode_control(datagram)
            check_counters(frame, self.wall.read(now))
        except WireError:
            self._refuse(datagram, source)
            return
        seen = self.seen.get(frame.source)
        if seen is not None and seen.address != source:
            self.stats.refused += 1
            return
        match frame:
            case Alive() if frame.label == self.label and (frame.source in self.seen or len(self.seen) < SEEN_MAX):
                self._on_alive(now, frame, source)
            case Goodbye() if frame.label == self.label and self.seen.pop(frame.source, None) is not None:
                if self._order is not None and self._order.what == OrderKind.DRAIN:
                    self.answers.setdefault(frame.source, OrderOutcome.CARRIED_OUT)
            case OrderDone() if frame.source in self.seen and frame.nonce == self._nonce and self._order is not None:
                self.answers[frame.source] = OrderOutcome(frame.outcome)
            case _:
                return
        self._look(now)

    def _on_alive(self, now: float, frame: Alive, source: Address) -> None:
        until = now + self._timings.expiry + self._timings.heartbeat
        self.seen[frame.source] = Seen(frame.source, source, frame.group, frame.pause, until)
        order = self._order
        if order is None:
            if self.wish.whom == f"{frame.source:016x}" and not self.wish.is_of_group:
                self._decide(now)
        elif not order.to and frame.group == order.group and frame.pause == order.pause:
            self.answers.setdefault(frame.source, OrderOutcome.CARRIED_OUT)  # another of the group told it

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Whatever is due."""
        if self._ended:
            return
        nap = self._naps.slept(now)
        for seen in self.seen.values():
            seen.expires_at += nap
        self.seen = {id: seen for id, seen in self.seen.items() if seen.expires_at > now}
        if self._order is None and now >= self._decide_at:
            self._decide(now)
        if self._order is not None and not self._ended:
            self._say(Route.CONTROL, self._order)
            self._look(now)
        if not self._ended:
            self._wake_at(now + self._timings.heartbeat if self._order is not None else self._decide_at)

    def _decide(self, now: float) -> None:
        """Who it is for, by now."""
        wish = self.wish
        if wish.is_of_group:
            states = [seen.pause for seen in self.seen.values() if seen.group == wish.whom]
            counter = max(states, default=NO_PAUSE).counter + 1
            order = self._make_order(wish.whom, 0, counter) if states else None
        else:
            found = [seen for seen in self.seen.values() if f"{seen.id:016x}".startswith(wish.whom)]
            if len(found) > 1:
                self._end(
                    f"{wish.whom} begins the ids of {len(found)} receivers, {self._names(found)}: give more digits"
                )
                return
            order = self._make_order(found[0].group, found[0].id, 0) if found else None
        if order is None:
            self._end(self._nobody())
            return
        self._order = order
        self._give_up_at = now + PATIENCE_EXPIRIES * self._timings.expiry
        self._at_latest(now)

    def _make_order(self, group: str, to: int, counter: int) -> Order:
        wish = self.wish
        return Order(self.id, self.label, group, to, self._nonce, int(wish.what), wish.value, counter, self._by)

    def _look(self, now: float) -> None:
        """Has everybody answered whom it is for?"""
        order = self._order
        if order is None:
            return
        waited_for = self._waited_for(order)
        if self.answers and not waited_for:
            self._end(self._fault_of_answers())
        elif now >= self._give_up_at:
            who = self._names(waited_for) if waited_for else "those that it was for, who are gone"
            self._end(f"no answer from {who}: see that its network is whole, and try again")

    def _waited_for(self, order: Order) -> list[Seen]:
        return [
            seen
            for seen in self.seen.values()
            if seen.id not in self.answers and (seen.group == order.group if not order.to else seen.id == order.to)
        ]

    def _fault_of_answers(self) -> str | None:
        outcomes = set(self.answers.values())
        if OrderOutcome.OVERRULED in outcomes:
            return "another order to pause or to go on came at the same time, and stands: look, and try again"
        if OrderOutcome.REFUSED in outcomes:
            return "it refused: it is leaving, or its table has no room for that weight"
        return None

    def _nobody(self) -> str:
        if not self.seen:
            return f"no receiver of {self.label!r} is there"
        there = self._names(list(self.seen.values()))
        if self.wish.is_of_group:
            groups = ", ".join(repr(group) for group in sorted({seen.group for seen in self.seen.values()}))
            return f"nobody of group {self.wish.whom!r} listens to {self.label!r}: there are {groups}"
        return f"no receiver {self.wish.whom} of {self.label!r}: there are {there}"

    @staticmethod
    def _names(found: list[Seen], most: int = 8) -> str:
        names = [f"{seen.id:016x}" for seen in sorted(found, key=lambda seen: seen.id)]
        return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

    def _end(self, fault: str | None) -> None:
        self.fault = fault
        self._ended = True
        self._deadline = math.inf

    def check_invariants(self) -> None:
        assert self.fault is None or self._ended
        assert self._order is not None or not self.answers
        assert len(self.seen) <= SEEN_MAX
