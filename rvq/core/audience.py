"""Whom a sender sends to. Owns, per group, the table in force and which of its members can be counted on.

A sender never picks a receiver. It follows tables that members of the one in force announce, and strikes out of its
stamps whoever it does not hear both ways. All judgements are of silence, so they are made only while awake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rvq import limits
from rvq.core.lanes import Loss
from rvq.core.machine import Address
from rvq.core.shards import ShardMap
from rvq.core.stamps import Segment
from rvq.core.table import Table
from rvq.timings import Timings
from rvq.wire.frames import NO_PAUSE, NO_VERSION, Alive, Heard, Member, Pause, Silence, Version

GOOD_BEATS = 3
"""Heartbeats heard both ways, one after the other, before one that was struck out is let in again."""
PAUSE_S_MAX = 8.0
"""The longest that a member waits to be let in again, however often it was struck out."""
TABLES_MAX = 64
"""Tables of one group that are known without being in force."""
SILENCE_S_MAX = 3600.0
"""Said of one that was never heard."""


@dataclass(slots=True)
class Ear:
    """A receiver as this sender hears it, and is heard by it."""

    id: int
    group: str
    address: Address
    """Where it speaks from; None before it was heard."""
    counter: int = 0
    heard_at: float = -math.inf
    """When its newest heartbeat came."""
    echoed_at: float = -math.inf
    """When the newest heartbeat came that was echoed: its lease on our stream cannot count from later than this."""
    both_ways_at: float = -math.inf
    """When a heartbeat came that shows it heard one of ours not long before."""
    beat_heard_at: float = -math.inf
    """When we sent the newest heartbeat that it has heard."""
    version: Version = NO_VERSION
    leaving: bool = False
    pause: Pause = NO_PAUSE
    """What it says of whether its group is paused."""
    gone: bool = False
    stamp: int = 0
    orphaned: bool = False
    struck: bool = False
    struck_at: float = -math.inf
    strikes: int = 0
    good_beats: int = 0


@dataclass(slots=True)
class Group:
    """One group of the label."""

    name: str
    table: Table | None = None
    held: bool = True
    """Nobody is left to send to."""
    closing: bool = False
    """The last of those in force still finish: what is sent now would be theirs, and they would never be through."""
    members: tuple[Member, ...] = ()
    draining: tuple[int, ...] = ()
    shard_map: ShardMap = ()
    """With keys: the slot of each shard among the members."""
    known: dict[Version, Table] = field(default_factory=dict)
    in_force_since: dict[int, float] = field(default_factory=dict)

    @property
    def everyone(self) -> frozenset[int]:
        """Members and draining members in force."""
        return frozenset(member.id for member in self.members).union(self.draining)


class Audience:
    """All groups of a label, as one sender sees them."""

    def __init__(self, timings: Timings) -> None:
        self.groups: dict[str, Group] = {}
        self.ears: dict[int, Ear] = {}
        self._at: dict[Address, int] = {}
        """Who speaks from where: one from each address, and each from one."""
        self._keyed = False
        self._timings = timings

    # --- what is heard --------------------------------------------------------------------------------------------

    def hear(
        self, now: float, frame: Alive, address: Address, heard: Heard | None, sent_at: Callable[[int], float]
    ) -> Ear | None:
        """A receiver's heartbeat, with what it says of our stream. None if it is no news."""
        ear = self.ears.get(frame.source)
        if ear is None or ear.address is None:
            if not self._may_speak(now, address):
                return None
            if ear is None:
                if len(self.ears) >= 2 * limits.MEMBERS_MAX or self._group(now, frame.group) is None:
                    return None
                ear = self.ears[frame.source] = Ear(frame.source, frame.group, address)
            ear.address = address
            self._at[address] = ear.id
        if frame.counter <= ear.counter or ear.gone or frame.group != ear.group or ear.address != address:
            return None
        ear.counter, ear.heard_at = frame.counter, now
        ear.version, ear.leaving, ear.pause = frame.version, frame.leaving, frame.pause
        if heard is not None:
            ear.stamp, ear.orphaned = heard.stamp, heard.orphaned
            ear.beat_heard_at = max(ear.beat_heard_at, sent_at(heard.counter))
        good = now - ear.beat_heard_at <= self._timings.expiry
        if good:
            ear.both_ways_at = now
        if ear.struck:
            ear.good_beats = ear.good_beats + 1 if good else 0
            self._let_in(now, ear)
        return ear

    def _may_speak(self, now: float, address: Address) -> bool:
        """Is there nobody else at this address, or nobody any more?"""
        other = self.ears.get(self._at.get(address, 0))
        return other is None or other.gone or now - other.heard_at > self._timings.expiry

    def is_from(self, receiver: int, address: Address) -> bool:
        """Does it speak from there?"""
        ear = self.ears.get(receiver)
        return ear is not None and ear.address == address

    def is_elsewhere(self, receiver: int, address: Address) -> bool:
        """Is it known to speak from another place?"""
        ear = self.ears.get(receiver)
        return ear is not None and ear.address not in (None, address)

    def _let_in(self, now: float, ear: Ear) -> None:
        pause = min(PAUSE_S_MAX, self._timings.expiry * (2 ** (ear.strikes - 1) - 1))
        if ear.good_beats >= GOOD_BEATS and now >= ear.struck_at + pause:
            ear.struck = False

    def offer(self, now: float, group_name: str, table: Table) -> None:
        """A table was heard."""
        group = self._group(now, group_name)
        if group is not None and table.version not in group.known:
            group.known[table.version] = table
            while len(group.known) > TABLES_MAX or self._known_entries() > limits.TABLE_ENTRIES_MAX:
                self._forget_table(group)

    def _known_entries(self) -> int:
        return sum(len(table.everyone) for group in self.groups.values() for table in group.known.values())

    def _forget_table(self, group: Group) -> None:
        """There are too many. Of those that nobody says he belongs to the oldest goes first."""
        belongs = {ear.version for ear in self.ears.values() if ear.group == group.name}
        known = group.known or max(self.groups.values(), key=lambda other: len(other.known)).known
        del known[min(known, key=lambda version: (version in belongs, version))]

    def goodbye(self, receiver: int, address: Address) -> bool:
        """A receiver left in good order. True if that is news, and its own word."""
        ear = self.ears.get(receiver)
        if ear is None or ear.gone or ear.address != address:
            return False
        ear.gone = True
        return True

    def forgive(self, nap: float) -> None:
        """I slept: nobody was silent in that time."""
        for ear in self.ears.values():
            ear.heard_at += nap
            ear.echoed_at += nap
            ear.both_ways_at += nap
        for group in self.groups.values():
            for receiver in group.in_force_since:
                group.in_force_since[receiver] += nap

    def forget(self, name: str) -> None:
        """A group is given up. Whoever of it comes later begins a new one."""
        self.groups[name] = Group(name)
        for ear in [ear for ear in self.ears.values() if ear.group == name]:
            self._drop(ear)

    def _drop(self, ear: Ear) -> None:
        del self.ears[ear.id]
        if self._at.get(ear.address) == ear.id:
            del self._at[ear.address]

    def lacks_table(self, ear: Ear) -> bool:
        """It belongs to a table that was never heard."""
        group = self.groups[ear.group]
        current = group.table.version if group.table else NO_VERSION
        return ear.version != NO_VERSION and ear.version != current and ear.version not in group.known

    def has_newcomers(self, now: float) -> bool:
        """Is there a group with a table of its own that is not in force yet?"""
        return any(
            ear.version != NO_VERSION and self.groups[ear.group].table is None and self.hears(now, ear.id)
            for ear in self.ears.values()
        )

    def _group(self, now: float, name: str) -> Group | None:
        group = self.groups.get(name)
        if group is None and (len(self.groups) < limits.GROUPS_MAX or self._make_room(now)):
            group = self.groups[name] = Group(name)
        return group

    def _make_room(self, now: float) -> bool:
        """A group that never had a table in force, and of which nobody is heard both ways, is none."""
        heard = {ear.group for ear in self.ears.values() if self.hears(now, ear.id)}
        name = next((g.name for g in self.groups.values() if g.table is None and g.name not in heard), None)
        if name is None:
            return False
        self.forget(name)
        del self.groups[name]
        return True

    # --- what follows ---------------------------------------------------------------------------------------------

    def settle(self, now: float, name: str) -> bool:
        """Judge one group again. True if those in force changed, or with keys the slots of their shards, and it must be
        stamped: see `members`, `draining`, `shard_map`."""
        group = self.groups[name]
        self._adopt(now, group)
        if group.table is None:
            return False
        self._strike(now, group, group.table)
        others = {id for id in group.table.everyone if self._is_of_another(group, id)}
        members = tuple(m for m in group.table.members if m.id not in others and self._usable(m.id))
        group.held = not members
        group.closing = not members and any(self._is_leaving(member.id) for member in group.members)
        if not members:
            return False
        leaving = [member.id for member in group.table.members if self._is_leaving(member.id)]
        draining = tuple(sorted({*leaving, *(id for id in group.table.draining if self._there(id))} - others))
        shard_map = group.table.shard_map_of(members) if self._keyed else ()
        if (members, draining, shard_map) == (group.members, group.draining, group.shard_map):
            return False
        group.members, group.draining, group.shard_map = members, draining, shard_map
        return True

    def take_keys(self) -> dict[str, ShardMap]:
        """From now on messages may have keys: the slots of the shards in each group in force."""
        self._keyed = True
        in_force = [group for group in self.groups.values() if group.members]
        for group in in_force:
            assert group.table is not None
            group.shard_map = group.table.shard_map_of(group.members)
        return {group.name: group.shard_map for group in in_force}

    def silences(self, now: float, before: frozenset[int], after: frozenset[int]) -> Iterator[Silence]:
        """Of those who are no longer in force: how long each had not been echoed. Not of those who said goodbye."""
        for receiver in sorted(before - after):
            ear = self.ears.get(receiver)
            if ear is None or not ear.gone:
                yield Silence(receiver, min(SILENCE_S_MAX, now - ear.echoed_at) if ear else SILENCE_S_MAX)

    def tidy(self, now: float) -> None:
        """Forget receivers that were not heard for long and are in no table in force."""
        in_force = {id for group in self.groups.values() if group.table for id in group.table.everyone}
        is_crowded = len(self.ears) >= limits.MEMBERS_MAX
        long_ago = now - (2 if is_crowded else 60) * self._timings.expiry
        for ear in [ear for id, ear in self.ears.items() if ear.heard_at < long_ago and id not in in_force]:
            self._drop(ear)

    def has_stopped(self, now: float, loss: Loss, segments: Sequence[Segment]) -> bool:
        """Can a former owner no longer be at its lane? Its lease must be over, and it must not have taken the stream
        for orphaned: it would need the word of all who were in force with it, and one of them never gave it."""
        ear = self.ears.get(loss.owner)
        if loss.given or ear is None or ear.gone or ear.stamp >= loss.segment.stamp:
            return True
        if now >= ear.echoed_at + self._timings.orphan_wait:
            return True
        over_at = ear.echoed_at + self._timings.heir_wait
        return now >= over_at and any(
            witness.beat_heard_at >= over_at and not witness.orphaned and not witness.gone
            for witness in self._companions(ear, segments)
        )

    def _companions(self, ear: Ear, segments: Sequence[Segment]) -> Iterator[Ear]:
        """Those who are in force and were so in every segment that this one may take for the newest."""
        after = [segment for segment in segments[1:] if segment.stamp > ear.stamp]
        since = [segments[len(segments) - len(after) - 1], *after]
        for companion in {member.id for member in since[-1].members}.union(since[-1].draining):
            known = self.ears.get(companion)
            if companion != ear.id and known is not None and all(segment.has(companion) for segment in since):
                yield known

    def hears(self, now: float, receiver: int) -> bool:
        """Both ways."""
        ear = self.ears.get(receiver)
        return ear is not None and not ear.gone and now - ear.both_ways_at <= self._timings.expiry

    def is_paused(self, name: str) -> bool:
        """Do those of a group who are in force start nothing, because somebody said so?"""
        ears = (self.ears.get(receiver) for receiver in self.groups[name].everyone)
        return max((ear.pause for ear in ears if ear is not None), default=NO_PAUSE).paused

    def somebody_is_there(self, now: float, name: str) -> bool:
        """Is anyone of a group heard both ways, though in no table in force: one that has just come, or is leaving?"""
        return any(ear.group == name and self.hears(now, ear.id) for ear in self.ears.values())

    def _adopt(self, now: float, group: Group) -> None:
        """Another table comes in force if a member of the one in force announces it, or if that one is silent."""
        announced = self._announced(now, group)
        current = group.table
        heard_now = 0
        if current is not None:
            announced.pop(current.version, None)
            heard_now = self._heard_of(now, group, current)
        if current is not None and heard_now:
            announced = {
                version: announcers
                for version, announcers in announced.items()
                if version > current.version and not announcers.isdisjoint(current.everyone)
            }
        counted = [(self._heard_of(now, group, group.known[version]), version) for version in announced]
        heard, version = max(counted, default=(0, NO_VERSION))
        if version != NO_VERSION and heard >= heard_now:
            self._put_in_force(now, group, group.known[version])

    def _announced(self, now: float, group: Group) -> dict[Version, set[int]]:
        """The tables with slots that members of them announce, and who does."""
        announced: dict[Version, set[int]] = {}
        for ear in self.ears.values():
            table = group.known.get(ear.version) if ear.group == group.name else None
            if table is not None and table.members and table.has(ear.id) and self.hears(now, ear.id):
                announced.setdefault(table.version, set()).add(ear.id)
        return announced

    def _put_in_force(self, now: float, group: Group, table: Table) -> None:
        group.table = table
        group.in_force_since = {id: group.in_force_since.get(id, now) for id in table.everyone}
        for version in [version for version in group.known if version < table.version]:
            del group.known[version]

    def _heard_of(self, now: float, group: Group, table: Table) -> int:
        return sum(self.hears(now, id) and not self._is_of_another(group, id) for id in table.everyone)

    def _is_of_another(self, group: Group, receiver: int) -> bool:
        """Is it known to be of another group? Then it handles nothing of this one, whatever a table says."""
        ear = self.ears.get(receiver)
        return ear is not None and ear.group != group.name

    def _strike(self, now: float, group: Group, table: Table) -> None:
        for receiver in table.everyone:
            ear = self.ears.get(receiver)
            if ear is not None and ear.group != group.name:
                continue
            heard_at = max(group.in_force_since[receiver], ear.both_ways_at if ear else -math.inf)
            if now - heard_at <= self._timings.expiry or (ear is not None and (ear.struck or ear.gone)):
                continue
            if ear is None:
                ear = self.ears[receiver] = Ear(receiver, group.name, None)  # bounded: it is in the table in force
            ear.struck, ear.struck_at, ear.good_beats = True, now, 0
            ear.strikes += 1

    def _there(self, receiver: int) -> bool:
        """Not gone and not struck out. One that was not heard yet has its grace."""
        ear = self.ears.get(receiver)
        return ear is None or not (ear.gone or ear.struck)

    def _is_leaving(self, receiver: int) -> bool:
        ear = self.ears.get(receiver)
        return ear is not None and ear.leaving and not ear.gone and not ear.struck

    def _usable(self, receiver: int) -> bool:
        return self._there(receiver) and not self._is_leaving(receiver)

    def check_invariants(self) -> None:
        for group in self.groups.values():
            assert group.table is not None or not group.members
            assert not {member.id for member in group.members} & set(group.draining)
            assert len(group.known) <= TABLES_MAX
        assert self._known_entries() <= limits.TABLE_ENTRIES_MAX
        assert len(self.groups) <= limits.GROUPS_MAX
        assert len(self.ears) <= 2 * limits.MEMBERS_MAX + sum(
            len(group.table.everyone) for group in self.groups.values() if group.table is not None
        )
        assert all(self.ears[id].address == address for address, id in self._at.items())
