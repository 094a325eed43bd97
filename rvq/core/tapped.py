"""One stream as a tap follows it. Owns what comes next, what is asked for, and what is passed over.

Knows nothing of owners, stamps and leases: a tap sees what is sent, in the order of its sequences.
"""

from __future__ import annotations

import math
from collections import deque
from random import Random

from rvq.core.holding import HeldFrame, Holding
from rvq.core.machine import Address
from rvq.core.repair import ASK_S_AGAIN, ASK_S_FIRST
from rvq.core.stats import Stats
from rvq.core.stream import CONTROL_GAP_S, FORGET_S
from rvq.errors import WireError
from rvq.wire.frames import DataHeader, FrameType, MissingParts, SenderAlive
from rvq.wire.train import Train

PATIENCE_S = 1.0
"""What is missing holds up what comes after it for so long at most; then it is passed over."""
FUTILE_S = 0.1
"""The same once its sender has let go of it: only what is on its way already can still come."""
ASK_PAUSE_S = ASK_S_AGAIN
"""Between two NAKs of a tap to one sender, whatever is missing: a tap must not keep a sender busy."""
HOLES_MAX = 1024
"""Holes of one stream that are timed one by one; more are taken together."""

assert FUTILE_S < PATIENCE_S

_DATA, _FRAGMENT, _TAIL = int(FrameType.DATA), int(FrameType.FRAGMENT), int(FrameType.TAIL)

Lacking = tuple[tuple[int, ...], tuple[MissingParts, ...]]


class Hole:
    """Something up to `last` was missing when it was noticed. Waited for until `until`."""

    __slots__ = ("last", "until")

    def __init__(self, last: int, until: float) -> None:
        self.last = last
        self.until = until


class Tapped:
    """One sender's messages to one label, at one tap. Its calls return the frames whose turn has come, in order.

    begin: the sequence that is shown first; 0 if that is the first one heard of.
    """

    def __init__(self, id: int, address: Address, random: Random, stats: Stats, now: float, begin: int = 0) -> None:
        self.id = id
        self.address = address
        self.next = begin
        """The next sequence to be shown; 0 before it is known where to begin."""
        self.holding = Holding(random, stats)
        self._stats = stats
        self._last = max(0, begin - 1)
        """The stream is known to go up to here."""
        self._whole_to = self._last
        """Everything up to here has been sent. The rest of a large message behind it may still be held back."""
        self._position = 0
        """The same in bytes, as far as it was heard."""
        self._holes: deque[Hole] = deque()
        self._begin_at = math.inf
        self._begin_with = 0
        self._ask_from = now
        self._forget_at = now + FORGET_S
        self.heard_at = now

    # --- frames in ------------------------------------------------------------------------------------------------

    def on_data(self, now: float, header: DataHeader, datagram: bytes) -> list[HeldFrame]:
        """A batch, a fragment or a tail. Raises WireError."""
        kind, first = header.type, header.first
        if kind == _TAIL:
            self._heard(now, header, first + 1)
            self._notice(now, first)
        else:
            last = first + header.count - 1
            if not first or last < first or kind not in (_DATA, _FRAGMENT):
                raise WireError(f"a data frame of type {kind} with {header.count} messages from {first}")
            self._heard(now, header, first)
            if first < self.next:
                self._stats.duplicates += 1
                return []
            self._add(now, header, datagram, last)
        self._let_go(now, header.done_to)
        return self._in_order()

    def on_train(self, now: float, train: Train) -> list[HeldFrame] | None:
        """Many batches at once. None if they must be looked at one by one: not all are new."""
        if (self.next and train.first <= self._last) or not train.first:
            return None
        self._heard(now, train.header, train.first)
        self._notice(now, train.first - 1)
        self._last = train.last
        self.holding.add_train(train)
        self._let_go(now, train.header.done_to)
        return self._in_order()

    def _heard(self, now: float, header: DataHeader, begin: int) -> None:
        self._forget_at = max(self._forget_at, now + FORGET_S)
        self.heard_at = now
        self._position = max(self._position, header.position)
        if not self.next:
            self._begin(begin)

    def _begin(self, sequence: int) -> None:
        self.next, self._last, self._begin_at = sequence, sequence - 1, math.inf

    def _add(self, now: float, header: DataHeader, datagram: bytes, last: int) -> None:
        first = header.first
        self._notice(now, first - 1)
        if header.type == _DATA:
            if self.holding.add(header, datagram) is None:
                self._stats.duplicates += 1
        else:
            self.holding.add_part(now, header, datagram)
            if first > self._last:
                self._add_hole(first, now + PATIENCE_S)
            self._wait_longer(first, now + PATIENCE_S)
        self._last = max(self._last, last)

    def on_alive(self, now: float, frame: SenderAlive) -> None:
        """The sender's heartbeat: how far the stream goes, and what nobody keeps any more."""
        self._forget_at = max(self._forget_at, now + FORGET_S)
        self.heard_at = now
        done_to = min((state.done_to for state in frame.groups), default=frame.last)
        if not self.next:
            # What is not done may not even be sent: then the first frame says where to begin. And a heartbeat can
            # overtake the frames that it speaks of, which came while this tap was there.
            if done_to >= frame.last and self._begin_at == math.inf:
                self._begin_at, self._begin_with = now + CONTROL_GAP_S, frame.last + 1
                self._position = frame.position
            return
        if frame.position > self._position:
            self._notice(now, frame.last, CONTROL_GAP_S)
        self._let_go(now, done_to)

    def on_goodbye(self, now: float) -> None:
        """Nobody answers any more; what is on its way may still come."""
        self._let_go(now, self._last)
        self._forget_at = min(self._forget_at, now + PATIENCE_S)

    # --- what is missing ------------------------------------------------------------------------------------------

    def _notice(self, now: float, last: int, wait: float = ASK_S_FIRST) -> None:
        """All up to `last` was sent: what I have not heard of is missing."""
        self._whole_to = max(self._whole_to, last)
        if last > self._last:
            self.holding.gaps.note(now, self._last + 1, last, wait)
            self._add_hole(last, now + PATIENCE_S)
            self._last = last

    def _add_hole(self, last: int, until: float) -> None:
        if len(self._holes) < HOLES_MAX:
            self._holes.append(Hole(last, until))
        else:
            self._holes[-1].last, self._holes[-1].until = last, until

    def _wait_longer(self, sequence: int, until: float) -> None:
        """A part of a large message came: the others are on their way."""
        for hole in self._holes:
            if hole.last >= sequence:
                hole.until = max(hole.until, until)
                return

    def _let_go(self, now: float, done_to: int) -> None:
        """The sender no longer has these."""
        for hole in self._holes:
            if hole.last > done_to:
                return
            hole.until = min(hole.until, now + FUTILE_S)

    def _in_order(self) -> list[HeldFrame]:
        """What comes next, as far as it is here."""
        found = []
        held = self.holding.frames
        while (frame := held.get(self.next)) is not None:
            self.holding.drop(frame.first)
            self.next = frame.last + 1
            found.append(frame)
        while self._holes and self._holes[0].last < self.next:
            self._holes.popleft()
        return found

    def _skip_to(self, sequence: int) -> list[HeldFrame]:
        """Whatever is missing before this one is passed over, and counted."""
        found = []
        for frame in self.holding.within(self.next, sequence - 1):
            self.holding.drop(frame.first)
            if frame.first >= self.next:
                self._stats.lost += frame.first - self.next
                self.next = frame.last + 1
                found.append(frame)
        if self.next < sequence:
            self._stats.lost += sequence - self.next
            self.next = sequence
        self.holding.sweep(self.next - 1)
        self.holding.gaps.filled(0, self.next - 1)
        return found + self._in_order()

    def skip_all(self) -> list[HeldFrame]:
        """Nothing is waited for any more."""
        return self._skip_to(self._last + 1) if self.next else []

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> list[HeldFrame]:
        """Whatever is due, but for asking."""
        if self._begin_at <= now:
            self._begin(self._begin_with)
        found = []
        while self._holes and self._holes[0].until <= now:
            if self._holes[0].last > self._whole_to:
                self._holes[0].until = now + PATIENCE_S  # nothing stands behind it, so nothing is held up
                break
            found += self._skip_to(self._holes[0].last + 1)
        return found

    def lacking(self, now: float) -> Lacking | None:
        """What to ask the sender for now, if it is time to ask."""
        if self._next_ask() > now:
            return None
        self._ask_from = now + ASK_PAUSE_S
        runs, fragments = self.holding.lacking(now)
        fragments = tuple(parts for parts in fragments if parts.sequence <= self._whole_to)
        return (runs, fragments) if runs or fragments else None

    def _next_ask(self) -> float:
        return max(self.holding.next_deadline(), self._ask_from)

    def is_over(self, now: float) -> bool:
        """It said goodbye, or has been silent for long."""
        return now >= self._forget_at

    def next_deadline(self) -> float:
        hole = self._holes[0].until if self._holes else math.inf
        return min(self._next_ask(), hole, self._begin_at, self._forget_at)

    def forgive(self, nap: float) -> None:
        """I slept: nothing was late in that time."""
        self._forget_at += nap
        self.heard_at += nap
        for hole in self._holes:
            hole.until += nap

    def check_invariants(self) -> None:
        self.holding.check_invariants()
        assert len(self._holes) <= HOLES_MAX
        lasts = [hole.last for hole in self._holes]
        assert lasts == sorted(set(lasts)), "holes stand in order"
        assert not lasts or self.next <= lasts[0], "a hole that is passed is closed"
        assert self.next not in self.holding.frames, "what comes next does not wait"
        assert not self.next or self.next <= self._last + 1
        if self.next <= self._last and self.next:
            assert self._holes and self._holes[-1].last >= self.next, "what is waited for is timed"
