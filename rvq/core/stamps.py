"""A stream's switches: which table from which sequence. `Stamper` writes them at the sender, `StampLog` follows them.

Segments are the runs of a stream between two switches of one group's effective members; everything about ownership is
derived from them, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rvq import limits
from rvq.core.shards import ShardMap
from rvq.core.table import slots_of
from rvq.wire.frames import GroupStamp, Member, Moved, Silence, Stamp, Version

ANSWER_MAX = 64
"""Stamps handed to another receiver at once."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of one stream under one set of members of one group. `end` is the last sequence, None while it is open."""

    stamp: int
    at: int
    end: int | None
    keyed: bool
    members: tuple[Member, ...]
    draining: tuple[int, ...]
    silent: tuple[Silence, ...] = ()
    gone: tuple[int, ...] = ()
    shard_map: ShardMap = field(default=(), repr=False)
    moved: tuple[Moved, ...] = ()

    # Worked out once: hashing or walking a thousand members for each question would be slow.
    slots: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """The owner of each slot as stamped."""
    member_ids: frozenset[int] = field(init=False, compare=False, repr=False)
    everyone: frozenset[int] = field(init=False, compare=False, repr=False)
    """Members and draining ones."""

    def __post_init__(self) -> None:
        ids = frozenset(member.id for member in self.members)
        object.__setattr__(self, "slots", slots_of(self.members))
        object.__setattr__(self, "member_ids", ids)
        object.__setattr__(self, "everyone", ids.union(self.draining))

    def has(self, receiver: int) -> bool:
        """A member, or draining."""
        return receiver in self.everyone

    def slot_of_shard(self, shard: int) -> int:
        return self.shard_map[shard]

    def silence_of(self, receiver: int) -> float | None:
        """How long the sender had not heard one that this segment lost; None for one that said goodbye."""
        if receiver in self.gone:
            return None
        return next((silence.seconds for silence in self.silent if silence.id == receiver), 0.0)


def segments_of(stamps: Iterable[Stamp], group: str) -> list[Segment]:
    """One group's segments, oldest first, from consecutive stamps."""
    found: list[tuple[GroupStamp, bool]] = []
    for stamp in stamps:
        entry = next((entry for entry in stamp.groups if entry.group == group), None)
        if entry is None:
            found = []  # it was given up: what was before is nobody's
        elif not found or found[-1][0].since != entry.since:
            found.append((entry, stamp.keyed))
    if not found:
        return []
    ends = [entry.at - 1 for entry, _ in found[1:]]
    return [
        Segment(
            entry.since,
            entry.at,
            end,
            keyed,
            entry.members,
            entry.draining,
            entry.silent,
            entry.gone,
            entry.shard_map,
            entry.moved,
        )
        for (entry, keyed), end in zip(found, [*ends, None], strict=True)
    ]


class StampLog:
    """One stream's stamps as a receiver knows them. Never guesses: only an unbroken run of stamps counts."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.slots = 0
        """In all stamps that are kept, of all groups: what they take of memory."""
        self.oldest = 1
        self.announced = 0
        """The newest stamp that anything was heard of."""
        self.complete_to = 0
        """Every open stamp up to this one is known."""
        self.segments: list[Segment] = []
        self.learned_at: dict[int, float] = {}
        """When each segment's stamp was learned, by the segment's stamp number."""
        self._stamps: dict[int, Stamp] = {}
        self._last_learned_at = 0.0

    def announce(self, oldest: int, newest: int) -> bool:
        """The sender says which stamps are open. True if this changed what is known."""
        self.announced = max(self.announced, newest)
        if oldest <= self.oldest or oldest > newest:
            return False
        self.oldest = oldest
        for number in [number for number in self._stamps if number < oldest]:
            self.slots -= _slots_in(self._stamps.pop(number))
        return self._derive()

    def learn(self, now: float, stamp: Stamp, others: int = 0) -> bool:
        """A stamp was heard. True if more of the unbroken run is known now. others: slots in other streams' stamps."""
        self.announced = max(self.announced, stamp.number)
        if stamp.number < self.oldest or stamp.number in self._stamps or not self._has_room(stamp, others):
            return False
        self._stamps[stamp.number] = stamp
        self.slots += _slots_in(stamp)
        self._last_learned_at = now
        return self._derive()

    def _has_room(self, stamp: Stamp, others: int) -> bool:
        """A stream for which there is none has no owners here any more: it is a stranger's, or a sick sender's."""
        stamps, slots = len(self._stamps) + 1, self.slots + _slots_in(stamp)
        if stamps > limits.OPEN_STAMPS_MAX or stamps * slots > limits.STAMP_STEPS_MAX:
            return False
        return slots <= limits.STAMP_SLOTS_EACH or slots + others <= limits.STAMP_SLOTS_MAX

    def missing(self) -> tuple[int, int] | None:
        """The first and the last stamp to ask for."""
        if self.complete_to >= self.announced:
            return None
        return max(self.oldest, self.complete_to + 1), self.announced

    def between(self, first: int, last: int) -> list[Stamp]:
        """The stamps that are known from first to last, for another receiver."""
        return [stamp for number, stamp in sorted(self._stamps.items()) if first <= number <= last][:ANSWER_MAX]

    def knows(self, number: int) -> bool:
        """Every open stamp up to this one is known."""
        return number <= self.complete_to

    @property
    def current(self) -> Segment | None:
        return self.segments[-1] if self.segments else None

    def segment_at(self, sequence: int) -> Segment | None:
        """The segment that a sequence lies in; None if it is before the first open one."""
        for segment in reversed(self.segments):
            if sequence >= segment.at:
                return segment
        return None

    def segment_of_stamp(self, number: int) -> Segment | None:
        """The group's segment that frames with this stamp are in."""
        for segment in reversed(self.segments):
            if segment.stamp <= number:
                return segment
        return None

    def _derive(self) -> bool:
        before = (self.complete_to, len(self.segments))
        number = self.oldest
        while number in self._stamps:
            number += 1
        self.complete_to = max(number - 1, self.oldest - 1)
        known = [self._stamps[n] for n in range(self.oldest, number)]
        if self.segments and not known:
            return before != (self.complete_to, len(self.segments))
        self.segments = segments_of(known, self.group)
        stamps = [segment.stamp for segment in self.segments]
        kept = {stamp: at for stamp, at in self.learned_at.items() if stamps and stamp >= stamps[0]}
        # A stamp can be learned before it is known that none is missing before it. Later than true only means waiting.
        for stamp in stamps:
            kept.setdefault(stamp, self._last_learned_at)
        self.learned_at = kept
        return before != (self.complete_to, len(self.segments))

    def check_invariants(self) -> None:
        assert len(self._stamps) <= limits.OPEN_STAMPS_MAX
        assert self.slots == sum(map(_slots_in, self._stamps.values()))
        assert self.complete_to <= max(self.announced, self.oldest - 1)
        for older, newer in zip(self.segments, self.segments[1:], strict=False):
            assert older.stamp < newer.stamp and older.at <= newer.at and older.end == newer.at - 1
        assert all(segment.members for segment in self.segments), "a segment without slots"


def _slots_in(stamp: Stamp) -> int:
    """What a stamp takes of memory, in slots. A map of the shards is mostly small numbers, which are there once."""
    return 1 + sum(
        sum(member.weight for member in entry.members)
        + len(entry.draining)
        + len(entry.silent)
        + len(entry.gone)
        + len(entry.shard_map) // 16
        for entry in stamp.groups
    )


class Stamper:
    """The sender's side: the groups in force, and every stamp that is still needed to know who owns what."""

    def __init__(self, source: int, label: str) -> None:
        self._source = source
        self._label = label
        self.keyed = False
        self.groups: dict[str, GroupStamp] = {}
        self.open: dict[int, Stamp] = {}
        self.newest = 0

    @property
    def oldest(self) -> int:
        return next(iter(self.open), self.newest + 1)

    def switch(
        self,
        at: int,
        group: str,
        version: Version,
        members: tuple[Member, ...],
        draining: tuple[int, ...],
        silent: tuple[Silence, ...],
        gone: tuple[int, ...],
        shard_map: ShardMap = (),
    ) -> Stamp:
        """One group's effective members change from sequence `at` on, or with keys the slots of their shards."""
        assert members, "a stamp never has a group without slots"
        entry = GroupStamp(group, self.newest + 1, at, version, members, draining, silent, gone, shard_map)
        self.groups[group] = entry
        return self._stamp(at)

    def switch_to_keys(self, at: int, shard_maps: Mapping[str, ShardMap]) -> Stamp:
        """Messages from `at` on may have keys: a new segment for every group, so that no receiver skips one unseen."""
        self.keyed = True
        for name, entry in self.groups.items():
            self.groups[name] = entry._replace(
                since=self.newest + 1, at=at, silent=(), gone=(), shard_map=shard_maps[name], moved=()
            )
        return self._stamp(at)

    def move(self, at: int, group: str, moved: Moved) -> Stamp:
        """A part of a lane gets another owner: so the members stay, but a new segment begins at `at`."""
        entry = self.groups[group]
        self.groups[group] = entry._replace(since=self.newest + 1, at=at, silent=(), gone=(), moved=(moved,))
        return self._stamp(at)

    def drop(self, at: int, group: str) -> Stamp:
        """From `at` on the stream goes on without a group."""
        self.groups.pop(group, None)
        return self._stamp(at)

    def close_before(self, number: int) -> None:
        """Stamps before this one are no longer needed."""
        for old in [old for old in self.open if old < min(number, self.newest)]:
            del self.open[old]

    def _stamp(self, at: int) -> Stamp:
        self.newest += 1
        stamp = Stamp(self._source, self._label, self.newest, at, self.keyed, tuple(self.groups.values()))
        self.open[self.newest] = stamp
        return stamp

    def check_invariants(self) -> None:
        assert list(self.open) == list(range(self.oldest, self.newest + 1))
        assert all(entry.members for entry in self.groups.values())
        assert all(entry.since <= self.newest for entry in self.groups.values())
        assert all(bool(entry.shard_map) == self.keyed for entry in self.groups.values())
