"""Segments and lanes: who owns what, what is done, who inherits. Everything follows from the stamps alone.

A lane is one slot of one segment. Progress is kept in sequences: "done up to 70" says that every message *of this lane*
up to 70 is done, so a lane's floor passes over the messages of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from rvq.core.lease import Lease
from rvq.core.runs import DoneRuns
from rvq.core.stamps import Segment
from rvq.core.table import index_of
from rvq.limits import REPORT_RANGES_MAX
from rvq.message import Message, Settler
from rvq.timings import Timings
from rvq.wire.frames import LaneKey, LaneProgress


class Loss(NamedTuple):
    """An owner that a later segment no longer has."""

    owner: int
    segment: Segment


class Ownership(NamedTuple):
    """Who owns a lane now, and who lost it before."""

    owner: int
    losses: tuple[Loss, ...]


def ownership(segments: Sequence[Segment], index: int) -> list[Ownership]:
    """The owner of each slot of one segment after all later ones: everyone derives the same from the same stamps."""
    first = segments[index]
    owners = list(first.slots)
    losses: list[tuple[Loss, ...]] = [()] * len(owners)
    for later in range(index + 1, len(segments)):
        segment = segments[later]
        lost = {owner for owner in set(owners) if not segment.has(owner)}
        if not lost:
            continue
        heirs = _heirs(segments, index, later)
        for slot, owner in enumerate(owners):
            if owner in lost:
                losses[slot] += (Loss(owner, segment),)
                owners[slot] = heirs[(first.stamp + slot) % len(heirs)]
    return [Ownership(owner, lost_by) for owner, lost_by in zip(owners, losses, strict=True)]


def _heirs(segments: Sequence[Segment], index: int, later: int) -> list[int]:
    """The members who were there all the time and so have the frames; if there are none, all members."""
    members = [member.id for member in segments[later].members]
    between = segments[index:later]
    return [member for member in members if all(segment.has(member) for segment in between)] or members


def heir_may_ask_at(losses: Sequence[Loss], learned_at: dict[int, float], timings: Timings) -> float:
    """When the leases of all former owners must be over: the longest of their waits counts."""
    return max((_wait_over(loss, learned_at[loss.segment.stamp], timings) for loss in losses), default=0.0)


def _wait_over(loss: Loss, learned_at: float, timings: Timings) -> float:
    silence = loss.segment.silence_of(loss.owner)
    return learned_at if silence is None else learned_at + max(0.0, timings.heir_wait - silence)


class Home(Protocol):
    """What a lane knows of the stream that it is part of."""

    label: str
    group: str
    id: int
    me: int
    settler: Settler | None
    lease: Lease


class Lane:
    """A lane as its owner works on it. `granted` once nobody else can be at it and its progress is known."""

    __slots__ = (
        "asked_at",
        "at",
        "done",
        "early",
        "end",
        "granted",
        "home",
        "inherited",
        "known",
        "losses",
        "may_ask_at",
        "mine",
        "parked",
        "pieces",
        "segment",
        "slot",
        "slots",
        "stamp",
    )

    def __init__(self, home: Home, segment: Segment, slot: int) -> None:
        self.home = home
        self.segment = segment
        self.stamp = segment.stamp
        self.slot = slot
        self.slots = len(segment.slots)
        self.at = segment.at
        self.end = segment.end
        self.done = DoneRuns(segment.at - 1)
        self.mine = False
        self.losses = 0
        self.inherited = False
        self.granted = False
        self.may_ask_at = 0.0
        self.asked_at: float | None = None
        self.pieces: dict[int, Piece] = {}
        """What is being worked on, by the first sequence of its frame."""
        self.known = DoneRuns(segment.at - 1)
        """With keys: what has come or is done. A piece is in line only when nothing can be missing before it."""
        self.early: dict[int, Piece] = {}
        """With keys: pieces that came before something else of the lane did."""
        self.parked: list[Message] = []
        """Messages that could not start because the lane was lost just then. They start if it ever comes back."""

    @property
    def key(self) -> LaneKey:
        return LaneKey(self.stamp, self.slot)

    @property
    def startable(self) -> bool:
        return self.mine and self.granted

    def has_all(self, last: int) -> bool:
        """Everything of the lane that was sent up to `last` is done."""
        return self.done.floor >= (last if self.end is None else min(last, self.end))

    def take_in_order(self, done_to: int) -> list[Piece]:
        """With keys: the pieces before which nothing is missing any more."""
        self.known.merge(max(self.done.floor, done_to), self.done.flat(len(self.done)))
        ready = sorted(first for first in self.early if first <= self.known.floor)
        return [self.early.pop(first) for first in ready]

    def lose(self) -> None:
        """A later stamp gave it to someone else."""
        self.mine = self.granted = False

    def progress(self) -> LaneProgress:
        """What is done, as it is reported: whole frames from `done`, and the parts of those in work."""
        partial = DoneRuns(self.done.floor)
        partial.merge(self.done.floor, self.done.flat(REPORT_RANGES_MAX))
        for piece in self.pieces.values():
            for first, last in piece.covered():
                partial.merge(0, (first, last))
        return LaneProgress(self.stamp, self.slot, partial.floor, partial.flat(REPORT_RANGES_MAX))

    def check_invariants(self) -> None:
        self.done.check_invariants()
        assert self.mine or not self.granted
        assert self.done.floor >= self.at - 1
        for piece in self.pieces.values():
            piece.check_invariants()


_NONE: dict[int, int] = {}


class Piece:
    """The messages of one frame that are one lane's. `places` are their indices in the frame, in order.

    `started` of them have been looked at, the first `finished` are done, and so are those in `extras`.
    """

    __slots__ = ("extras", "finished", "first", "lane", "last", "places", "retries", "sent_at", "started")

    def __init__(self, lane: Lane, first: int, last: int, places: Sequence[int], sent_at: float) -> None:
        self.sent_at = sent_at
        self.lane = lane
        self.first = first
        self.last = last
        self.places = places
        self.started = 0
        self.finished = 0
        self.extras: set[int] = set()
        self.retries: dict[int, int] = _NONE
        """How often each place was retried. Shared and empty until there is a retry."""

    # What messages ask of their origin.

    @property
    def label(self) -> str:
        return self.lane.home.label

    @property
    def group(self) -> str:
        return self.lane.home.group

    @property
    def stream(self) -> int:
        return self.lane.home.id

    @property
    def settler(self) -> Settler | None:
        return self.lane.home.settler

    @property
    def slot(self) -> int:
        return self.lane.slot

    @property
    def asked_at(self) -> float | None:
        return self.lane.asked_at

    @property
    def receiver_index(self) -> int | None:
        return index_of(self.lane.segment.members, self.lane.home.me)

    def sequence_of(self, place: int) -> int:
        return self.first + self.places[place]

    def may_continue(self, now: float) -> bool:
        """Does what was started still belong here? Hot: without asking the lane."""
        lane = self.lane
        return lane.mine and lane.granted and now < lane.home.lease.until

    def retry(self, place: int) -> None:
        """Count a retry."""
        self.retries = {**self.retries, place: self.retries.get(place, 0) + 1}

    # What is done of it.

    @property
    def complete(self) -> bool:
        return self.finished == len(self.places)

    def finish(self, start: int, stop: int) -> int:
        """Places `start` to `stop` (of `places`) are done. How many of them were news."""
        start = max(start, self.finished)
        if stop <= start:
            return 0
        extras = self.extras
        known = sum(place in extras for place in range(start, stop)) if extras else 0
        if start > self.finished:
            extras.update(range(start, stop))
        else:
            self.finished = stop
            if extras:
                while self.finished in extras:
                    self.finished += 1
                self.extras = {place for place in extras if place > self.finished}
        return stop - start - known

    def is_finished(self, place: int) -> bool:
        return place < self.finished or place in self.extras

    def covered(self) -> Iterator[tuple[int, int]]:
        """Runs of sequences in which everything of the lane is done."""
        if self.finished:
            yield self.first, self.first + self.places[self.finished] - 1 if not self.complete else self.last
        for place in sorted(self.extras):
            yield self.sequence_of(place), self.sequence_of(place)

    def check_invariants(self) -> None:
        assert 0 <= self.finished <= len(self.places) and self.started <= len(self.places)
        assert all(place > self.finished for place in self.extras)
        assert not self.complete, "a finished piece belongs to `done`"
