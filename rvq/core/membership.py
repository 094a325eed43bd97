"""Heartbeats in, tables out. Owns who is alive in one group, who keeps the table, and when the next one is written.

Nothing is owned by "the newest table": senders decide with their stamps. So this machine may be wrong for a moment
(two keepers, a table that only some hear) and nobody is harmed. Knows no sockets and no clock.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from sortedcontainers import SortedDict

from rvq import limits
from rvq.core.machine import Address
from rvq.core.shards import draft
from rvq.core.table import Table, sorted_members
from rvq.timings import Timings
from rvq.wire.frames import NO_VERSION, Alive, Heard, Member, Version

CALM_S = 20.0
"""A keeper that wrote `BUSY_TABLES` within this time slows down."""
BUSY_TABLES = 3
PAUSE_S_MAX = 8.0
"""The slowest a keeper gets."""
UNHEARD_MAX = 8
"""Members of a new table whom one has not heard, beyond as many as one has: joiners whom the keeper heard sooner."""
NEVER = 2**64
"""The remembered counter of one that said goodbye: no heartbeat of it counts again."""


@dataclass(slots=True)
class Peer:
    """Another receiver of the group, as its last heartbeat told."""

    id: int
    address: Address
    weight: int
    counter: int
    version: Version
    leaving: bool
    load: int
    expires_at: float
    heard: dict[int, Heard]


class Membership:
    """One receiver's view of its group."""

    def __init__(self, me: int, weight: int, timings: Timings, now: float) -> None:
        self.me = me
        self.weight = weight
        self.table: Table | None = None
        """The newest one that has me."""
        self._shared: Table | None = None
        """What the next shard map follows from: my newest table with others in it. One that I wrote because I heard
        nobody says nothing of how they share. Before I have a table, the newest that I heard."""
        self.leaving = False
        self.peers: SortedDict[int, Peer] = SortedDict()
        self._timings = timings
        self._slots = weight
        self._at: dict[Address, int] = {}
        """Who speaks from where: one from each address, and each from one."""
        self._silent_words = 0
        """How many streams all peers together say that they do not hear."""
        self._departed: dict[int, tuple[int, Address]] = {}
        self._counter_max = 0
        self._first_table_at = now + timings.first_table
        self._dirty_since = math.inf
        self._write_at = math.inf
        self._unmet_since = math.inf
        """Since when the table that I would write is not the one that I have."""
        self._pause = timings.settle
        self._written: deque[float] = deque(maxlen=BUSY_TABLES)
        self._resend_at = now
        self._note_change(now)

    @property
    def version(self) -> Version:
        return self.table.version if self.table else NO_VERSION

    @property
    def is_keeper(self) -> bool:
        """Am I the first in rank of those who belong to a table? Leaving ones rank last."""
        rank = (self.leaving, self.me)
        return self.table is not None and all(
            rank < (peer.leaving, peer.id) for peer in self.peers.values() if peer.version != NO_VERSION
        )

    # --- what is heard --------------------------------------------------------------------------------------------

    def hear(self, now: float, frame: Alive, source: Address) -> bool:
        """A heartbeat. True if it is news: of someone alive, and newer than the last one."""
        peer = self.peers.get(frame.source)
        last, address = (peer.counter, peer.address) if peer else self._departed.get(frame.source, (0, source))
        if frame.counter <= last or frame.source == self.me or address != source:
            return False
        if peer is None and not (self._has_room(frame.weight) and source not in self._at):
            return False
        self.learn_counter(frame.version.counter)
        if peer is None:
            peer = Peer(frame.source, source, 0, 0, NO_VERSION, False, 0, 0.0, {})
            self.peers[frame.source] = peer
            self._at[source] = frame.source
            self._departed.pop(frame.source, None)
        before = (peer.weight, peer.leaving, peer.version)
        if self._fits(frame.weight - peer.weight):
            self._slots += frame.weight - peer.weight
            peer.weight = frame.weight
        peer.counter = frame.counter
        peer.version, peer.leaving, peer.load = frame.version, frame.leaving, frame.load
        self._note_silent(peer, frame)
        peer.expires_at = now + self._timings.expiry
        if before != (peer.weight, peer.leaving, peer.version):
            self._note_change(now)
        return True

    def _note_silent(self, peer: Peer, frame: Alive) -> None:
        """What it hears is not worth keeping: a thousand peers may each hear a thousand senders."""
        self._silent_words -= len(peer.heard)
        heard = {heard.stream: heard for heard in frame.heard if heard.silent}
        peer.heard = heard if self._silent_words + len(heard) <= limits.SILENT_WORDS_MAX else {}
        self._silent_words += len(peer.heard)

    def is_from(self, receiver: int, source: Address) -> bool:
        """Is it one of my group that speaks from there?"""
        peer = self.peers.get(receiver)
        return peer is not None and peer.address == source

    def is_elsewhere(self, receiver: int, source: Address) -> bool:
        """Is it known to speak from another place?"""
        peer = self.peers.get(receiver)
        _, address = (0, peer.address) if peer is not None else self._departed.get(receiver, (0, source))
        return address != source

    def _has_room(self, weight: int) -> bool:
        """One more would still fit a table that everyone can read."""
        return len(self.peers) + 2 <= limits.MEMBERS_MAX and self._fits(weight)

    def _fits(self, slots: int) -> bool:
        """So many more, or fewer if below 0."""
        return slots <= 0 or self._slots + slots <= limits.SLOTS_MAX

    def goodbye(self, now: float, receiver: int, source: Address) -> bool:
        """A receiver left for good. False if it is somebody else who says so."""
        peer = self.peers.get(receiver)
        if peer is not None and peer.address != source:
            return False
        if peer is None and (receiver in self._departed or len(self._departed) >= limits.REMEMBERED_MAX):
            return False  # it was gone already; and who was never here must not push out those who were
        self._drop(receiver)
        self._remember(receiver, NEVER, source)
        self._note_change(now)
        return True

    def offer(self, now: float, table: Table) -> bool:
        """A table was heard. True if it is newer than mine and has me: then it is mine now."""
        self.learn_counter(table.version.counter)
        if table.version <= self.version:
            return False
        if not table.has(self.me):
            if self.table is None and (self._shared is None or table.version > self._shared.version):
                self._shared = table
            return False
        if self.table is not None and self._is_made_up(table):
            return False
        self._take(table)
        self._unmet_since = math.inf
        self._note_change(now)
        return True

    def _is_made_up(self, table: Table) -> bool:
        """Do I hear next to nobody of those in it? If it is true I shall, and it is said again. One who has no table
        yet may have heard nobody yet."""
        heard = sum(id == self.me or id in self.peers for id in table.everyone)
        return len(table.everyone) - heard > UNHEARD_MAX + heard

    def learn_counter(self, counter: int) -> None:
        """Some table has this counter: the next one I write is newer."""
        self._counter_max = max(self._counter_max, counter)

    def leave(self, now: float) -> None:
        self.leaving = True
        self._note_change(now)

    def weigh(self, now: float, weight: int) -> bool:
        """From now on my share is another. False if no table could hold that."""
        if not self._fits(weight - self.weight):
            return False
        self._slots += weight - self.weight
        self.weight = weight
        self._note_change(now)
        return True

    def forgive(self, nap: float) -> None:
        """I slept: nobody was silent in that time."""
        for peer in self.peers.values():
            peer.expires_at += nap

    # --- what is written ------------------------------------------------------------------------------------------

    def wake(self, now: float) -> Table | None:
        """Bury the silent; the table that is due to be written now, if I am to write one."""
        self._bury(now)
        if now < self._write_at:
            return None
        self._dirty_since = self._write_at = math.inf
        if not self._must_write():
            return self._write(now) if self._is_overdue(now) else None
        if self.table is None and now < self._first_table_at:
            self._write_at = self._first_table_at
            return None
        return self._write(now)

    def next_write(self) -> float:
        """When a table may have to be written."""
        return self._write_at

    def next_deadline(self) -> float:
        expiries = min((peer.expires_at for peer in self.peers.values()), default=math.inf)
        return min(expiries, self._write_at)

    def lags(self, now: float, peer_id: int) -> bool:
        """True if this peer lacks my table and it is mine to send it again: I am the first of those who have it."""
        peer = self.peers.get(peer_id)
        if peer is None or self.table is None or peer.version >= self.version or not self.table.has(peer_id):
            return False
        if now < self._resend_at or any(
            other.version == self.version and other.id < self.me for other in self.peers.values()
        ):
            return False
        self._resend_at = now + self._timings.heartbeat / 2
        return True

    def _bury(self, now: float) -> None:
        for peer in [peer for peer in self.peers.values() if peer.expires_at <= now]:
            self._drop(peer.id)
            self._remember(peer.id, peer.counter, peer.address)
            self._note_change(now)

    def _drop(self, receiver: int) -> None:
        peer = self.peers.pop(receiver, None)
        if peer is not None:
            self._slots -= peer.weight
            self._silent_words -= len(peer.heard)
            del self._at[peer.address]

    def _remember(self, receiver: int, counter: int, address: Address) -> None:
        self._departed[receiver] = (counter, address)
        if len(self._departed) > limits.REMEMBERED_MAX:
            del self._departed[next(iter(self._departed))]

    def _note_change(self, now: float) -> None:
        """Something changed: write when it has been quiet for the pause, and not later than `settle_max` from now."""
        if not self._is_busy(now):
            self._pause = self._timings.settle
        if self._dirty_since == math.inf:
            self._dirty_since = now
        self._write_at = min(self._dirty_since + max(self._timings.settle_max, self._pause), now + self._pause)

    def _must_write(self) -> bool:
        if self.table is None:
            return self._may_write_first()
        if not self.is_keeper:
            return False
        newer_elsewhere = any(peer.version > self.version for peer in self.peers.values())
        return newer_elsewhere or self._wanted() != (self.table.members, self.table.draining)

    def _is_overdue(self, now: float) -> bool:
        """Someone else should have written a table long ago, and did not: a keeper that is heard but hears nobody.

        Those behind it in rank take their turns, one after the other, so that not all write at once.
        """
        if self.leaving or (self.table is not None and self._wanted() == (self.table.members, self.table.draining)):
            self._unmet_since = math.inf
            return False
        self._unmet_since = min(self._unmet_since, now)
        before_me = sum((peer.leaving, peer.id) < (False, self.me) for peer in self.peers.values())
        self._write_at = self._unmet_since + (PAUSE_S_MAX + self._timings.expiry) * max(1, before_me)
        return now >= self._write_at

    def _may_write_first(self) -> bool:
        """Nobody has a table, and I am the lowest of those who wait for one."""
        return not self.leaving and all(
            peer.version == NO_VERSION and (peer.leaving or self.me < peer.id) for peer in self.peers.values()
        )

    def _wanted(self) -> tuple[tuple[Member, ...], tuple[int, ...]]:
        """Who should hold slots, and who is only finishing. Someone who leaves without ever being in is in neither."""
        everyone = [(self.me, self.weight, self.leaving)]
        everyone += [(peer.id, peer.weight, peer.leaving) for peer in self.peers.values()]
        members = sorted_members(Member(id, weight) for id, weight, leaving in everyone if not leaving)
        known = self.table.everyone if self.table else frozenset()
        # One that leaves may know another table than mine, and be in it: keep whoever says that it has one.
        draining = {id for id, _, leaving in everyone if leaving and (id in known or self._has_table(id))}
        return members, tuple(sorted(draining))

    def _has_table(self, receiver: int) -> bool:
        peer = self.peers.get(receiver)
        return peer is not None and peer.version != NO_VERSION

    def _write(self, now: float) -> Table:
        self._unmet_since = math.inf
        self._counter_max += 1
        members, draining = self._wanted()
        shard_map = self._shared.shard_map_of(members) if self._shared else draft(members)
        self._take(table := Table(Version(self._counter_max, self.me), members, draining, shard_map))
        self._written.append(now)
        self._pause = min(PAUSE_S_MAX, self._pause * 2) if self._is_busy(now) else self._timings.settle
        return table

    def _take(self, table: Table) -> None:
        self.table = table
        if len(table.members) > 1 or self._shared is None:
            self._shared = table

    def _is_busy(self, now: float) -> bool:
        return len(self._written) == BUSY_TABLES and now - self._written[0] < CALM_S

    def check_invariants(self) -> None:
        assert self.me not in self.peers
        assert self._slots == self.weight + sum(peer.weight for peer in self.peers.values())
        assert self.table is None or self.table.has(self.me)
        assert self.table is None or self.table.version.counter <= self._counter_max
        assert self.table is None or not ({m.id for m in self.table.members} & set(self.table.draining))
        assert len(self._departed) <= limits.REMEMBERED_MAX
        assert len(self.peers) < limits.MEMBERS_MAX
        assert {peer.address: peer.id for peer in self.peers.values()} == self._at
        assert self._silent_words == sum(len(peer.heard) for peer in self.peers.values()) <= limits.SILENT_WORDS_MAX
        assert self._timings.settle <= self._pause <= max(PAUSE_S_MAX, self._timings.settle)
