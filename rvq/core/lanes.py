"""Segments and lanes: who owns what, what is done, who inherits. Everything follows from the stamps alone.

A lane is one slot of one segment. Progress is kept in sequences: "done up to 70" says that every message *of this lane*
up to 70 is done, so a lane's floor passes over the messages of others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from rvq.core.lease import Lease
from rvq.core.runs import DoneRuns, runs_of
from rvq.core.stamps import Segment
from rvq.core.stats import Counts
from rvq.core.table import index_of
from rvq.limits import REPORT_RANGES_MAX
from rvq.message import Message, Settler
from rvq.timings import Timings
from rvq.wire.frames import LaneKey, LaneProgress, Moved

REPORT_FRAMES_MAX = 64
"""Frames and runs of a lane that are told of in every report; of more, a part in each."""


class Loss(NamedTuple):
    """An owner that a later segment no longer has, or that gave away what is `given`."""

    owner: int
    segment: Segment
    given: bool = False


class Part(NamedTuple):
    """Who owns a lane now, from `first` to `last` (None while it is open), and who lost it before.

    A lane is one part, unless its owner gave some of it away.
    """

    first: int
    last: int | None
    owner: int
    losses: tuple[Loss, ...]


def ownership(segments: Sequence[Segment], index: int) -> list[list[Part]]:
    """The parts of each slot of one segment after all later ones: everyone derives the same from the same stamps."""
    first = segments[index]
    lanes = [[Part(first.at, first.end, owner, ())] for owner in first.slots]
    for later in range(index + 1, len(segments)):
        segment = segments[later]
        lost = {part.owner for parts in lanes for part in parts if not segment.has(part.owner)}
        if lost:
            heirs = _heirs(segments, index, later)
            for slot, parts in enumerate(lanes):
                heir = heirs[(first.stamp + slot) % len(heirs)]
                lanes[slot] = [_passed_on(part, heir, segment) if part.owner in lost else part for part in parts]
        for moved in segment.moved:
            if moved.stamp == first.stamp and moved.slot < len(lanes):
                lanes[moved.slot] = _cut(lanes[moved.slot], moved, segment)
    return lanes


def part_with(parts: Sequence[Part], sequence: int) -> Part | None:
    """The part of a lane that a sequence lies in."""
    return next((p for p in parts if p.first <= sequence and (p.last is None or sequence <= p.last)), None)


def _passed_on(part: Part, heir: int, segment: Segment) -> Part:
    return part._replace(owner=heir, losses=(*part.losses, Loss(part.owner, segment)))


def _cut(parts: list[Part], moved: Moved, segment: Segment) -> list[Part]:
    """A part in two, of which the second gets another owner."""
    whole = part_with(parts, moved.first)
    if whole is None or not segment.has(moved.to):
        return parts
    losses = (*whole.losses, Loss(whole.owner, segment, given=True))
    given = Part(moved.first, whole.last, moved.to, losses)
    kept = [whole._replace(last=moved.first - 1)] if whole.first < moved.first else []
    place = parts.index(whole)
    return [*parts[:place], *kept, given, *parts[place + 1 :]]


def _heirs(segments: Sequence[Segment], index: int, later: int) -> list[int]:
    """The members who were there all the time and so have the frames; if there are none, all members."""
    members = [member.id for member in segments[later].members]
    between = segments[index:later]
    return [member for member in members if all(segment.has(member) for segment in between)] or members


def heir_may_ask_at(losses: Sequence[Loss], learned_at: dict[int, float], timings: Timings) -> float:
    """When the leases of all former owners must be over: the longest of their waits counts."""
    return max((_wait_over(loss, learned_at[loss.segment.stamp], timings) for loss in losses), default=0.0)


def _wait_over(loss: Loss, learned_at: float, timings: Timings) -> float:
    silence = None if loss.given else loss.segment.silence_of(loss.owner)
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
        "answered_to",
        "asked_at",
        "at",
        "changed",
        "counts",
        "done",
        "early",
        "end",
        "fence",
        "given",
        "granted",
        "home",
        "in_hand",
        "inherited",
        "known",
        "losses",
        "may_ask_at",
        "mine",
        "parked",
        "pieces",
        "reached",
        "said_to",
        "segment",
        "slot",
        "slots",
        "stamp",
    )

    def __init__(self, home: Home, segment: Segment, slot: int, counts: Counts, first: int | None = None) -> None:
        self.home = home
        self.counts = counts
        self.segment = segment
        self.stamp = segment.stamp
        self.slot = slot
        self.slots = len(segment.slots)
        self.at = segment.at if first is None else first
        self.end = segment.end
        self.fence: int | None = None
        """From here on it is being given to another: nothing of it is started."""
        self.reached = 0
        """The last sequence that was started here, of pieces that are done."""
        self.in_hand = 0
        """Messages that were handed out and not settled, about."""
        self.done = DoneRuns(self.at - 1)
        self.mine = False
        self.losses = 0
        self.inherited = False
        self.given = False
        """It was only ever given away, and so never started before."""
        self.granted = False
        self.may_ask_at = 0.0
        self.asked_at: float | None = None
        self.answered_to = 0
        """The sender's answer came in parts, and goes on above this."""
        self.pieces: dict[int, Piece] = {}
        """What is being worked on, by the first sequence of its frame."""
        self.known = DoneRuns(self.at - 1)
        """With keys: what has come or is done. A piece is in line only when nothing can be missing before it."""
        self.early: dict[int, Piece] = {}
        """With keys: pieces that came before something else of the lane did."""
        self.parked: list[Message] = []
        """Messages that could not start because the lane was lost just then. They start if it ever comes back."""
        self.changed: dict[int, None] = {}
        """The first sequences of frames of which more is done than was reported."""
        self.said_to = 0
        """Reports tell of a lane in turns if there is too much for one: the next begins here."""

    @property
    def key(self) -> LaneKey:
        return LaneKey(self.stamp, self.slot, self.at)

    @property
    def limit(self) -> int | None:
        """The last sequence that may be started; None while there is no end."""
        if self.fence is None or (self.end is not None and self.end < self.fence):
            return self.end
        return self.fence - 1

    def reaches(self, sequence: int) -> bool:
        """Is a sequence within this part of its lane?"""
        limit = self.limit
        return self.at <= sequence and (limit is None or sequence <= limit)

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

    def lacking(self, holes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """What is left of runs of sequences, in order, beside what is done and what is being worked on here."""
        pieces = deque(sorted((piece.first, piece.last) for piece in self.pieces.values()))
        for first, last in holes:
            while pieces and pieces[0][1] < first:
                pieces.popleft()
            beside = first
            for begin, end in takewhile(lambda piece: piece[0] <= last, pieces):  # noqa: B023
                yield from self.done.not_within(beside, begin - 1)
                beside = end + 1
            yield from self.done.not_within(beside, last)

    def lose(self) -> None:
        """A later stamp gave it to someone else."""
        self.mine = self.granted = False
        self.fence = None
        self.in_hand = 0

    def progress(self, most: int = REPORT_RANGES_MAX) -> LaneProgress:
        """What is done, as it is reported: what changed since the last report, then the rest in turns. Facts are only
        added, so each report may tell another part; what is lost with one is told again."""
        is_part = self.at > self.segment.at
        if is_part:
            most = max(1, most - 1)  # one more is for the floor
        if not (self.pieces or is_part or len(self.done) > most):
            # Most often: whole frames, and not many runs of them.
            self.changed.clear()
            return LaneProgress(self.stamp, self.slot, self.done.floor, self.done.flat(most))
        frames = len(self.done) + len(self.pieces)
        if frames <= REPORT_FRAMES_MAX and frames + sum(len(p.extras) for p in self.pieces.values()) <= most:
            told = self.all_done()
            self.changed.clear()
        else:
            told = DoneRuns(self.done.floor)
            self._tell_some(told, most)
        if not is_part:
            return LaneProgress(self.stamp, self.slot, told.floor, told.flat(most))
        # What is before this part is another's to tell.
        first = (self.at, told.floor) if told.floor >= self.at else ()
        runs = (*first, *told.flat(most))
        return LaneProgress(self.stamp, self.slot, self.segment.at - 1, runs)

    def all_done(self) -> DoneRuns:
        """Everything that is done: whole frames from `done`, and the parts of those in work."""
        told = DoneRuns(self.done.floor)
        told.merge(self.done.floor, self.done.flat(len(self.done)))
        for piece in self.pieces.values():
            told.merge(0, piece.covered())
        return told

    def _tell_some(self, told: DoneRuns, most: int) -> None:
        """As much as a report takes: what changed first, up to half of it."""
        left = most
        while self.changed and left > most // 2:
            first = self.changed.popitem()[0]
            runs, is_all = self._runs_at(first, left - most // 2)
            left -= len(runs) // 2
            told.merge(0, runs)
            if not is_all:
                self.changed[first] = None
        before = self.said_to
        pieces = sorted(first for first in self.pieces if first >= before)[:REPORT_FRAMES_MAX]
        frames = sorted({*pieces, *self.done.runs_from(before, REPORT_FRAMES_MAX)})[:REPORT_FRAMES_MAX]
        for first in frames:
            if left <= 0:
                return
            runs, is_all = self._runs_at(first, left)
            left -= len(runs) // 2
            told.merge(0, runs)
            self.said_to = first + 1 if is_all else first
            if is_all:
                self.changed.pop(first, None)
        if len(frames) < REPORT_FRAMES_MAX and left > 0:
            self.said_to = 0

    def _runs_at(self, first: int, most: int) -> tuple[Sequence[int], bool]:
        """What is done of the frame, or the run of frames, that begins there; and whether that is all of it."""
        piece = self.pieces.get(first)
        return (self.done.run_with(first), True) if piece is None else piece.next_covered(most)

    def check_invariants(self) -> None:
        self.done.check_invariants()
        assert self.mine or not self.granted
        assert self.done.floor >= self.at - 1
        for piece in self.pieces.values():
            piece.check_invariants()


_NONE: dict[int, int] = {}
_NOT_ANY: set[int] = set()


class Piece:
    """The messages of one frame that are one lane's. `places` are their indices in the frame, in order.

    `started` of them have been looked at, the first `finished` are done, and so are those in `extras`.
    """

    __slots__ = (
        "extras",
        "finished",
        "first",
        "lane",
        "last",
        "places",
        "pulled",
        "retries",
        "said_to",
        "sent_at",
        "started",
    )

    def __init__(self, lane: Lane, first: int, last: int, places: Sequence[int], sent_at: float) -> None:
        self.sent_at = sent_at
        self.lane = lane
        self.first = first
        self.last = last
        self.places = places
        self.started = 0
        self.finished = 0
        self.extras: set[int] = set()
        self.pulled: set[int] = _NOT_ANY
        """Urgent ones, which do not wait for their turn. Shared and empty until there is one."""
        self.retries: dict[int, int] = _NONE
        """How often each place was tried before. Shared and empty until there is one."""
        self.said_to = 0
        """Reports tell of it in turns if there is too much for one: the next goes on above this."""

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

    def set_tries(self, place: int, tries: int) -> None:
        """It was tried so often."""
        if self.retries is _NONE:
            self.retries = {}
        self.retries[place] = tries

    def pull(self, place: int) -> None:
        """It does not wait for its turn."""
        if self.pulled is _NOT_ANY:
            self.pulled = set()
        self.pulled.add(place)

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

    @property
    def untouched(self) -> int:
        """From this place on nothing was started, not even out of turn."""
        return max(self.started, max(self.pulled, default=-1) + 1)

    @property
    def reached(self) -> int:
        """The last sequence of it that was started; 0 if none was."""
        return self.sequence_of(self.untouched - 1) if self.untouched else 0

    def is_finished(self, place: int) -> bool:
        return place < self.finished or place in self.extras

    def unfinished(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Runs of places from `start` up to and without `stop` that are not done."""
        start = max(start, self.finished)
        if not self.extras:
            return [(start, stop)] if start < stop else []
        return runs_of(place for place in range(start, stop) if place not in self.extras)

    def covered(self) -> list[int]:
        """Runs of sequences (first, last, first, last, ...) in which everything of the lane is done."""
        runs: list[int] = []
        if self.finished:
            runs += (self.first, self.last if self.complete else self.sequence_of(self.finished) - 1)
        after = -1
        for place in sorted(self.extras):
            if place == after:
                runs[-1] = self.sequence_of(place)
            else:
                runs += (self.sequence_of(place), self.sequence_of(place))
            after = place + 1
        return runs

    def next_covered(self, most: int) -> tuple[list[int], bool]:
        """So many of the runs, from where the last ones ended; and whether those were the last there are."""
        runs = self.covered()
        start = bisect_right(runs[::2], self.said_to)
        told = runs[2 * start : 2 * (start + most)]
        is_all = 2 * (start + most) >= len(runs)
        self.said_to = 0 if is_all else told[-2]
        return told, is_all

    def check_invariants(self) -> None:
        assert 0 <= self.finished <= len(self.places) and self.started <= len(self.places)
        assert all(place > self.finished for place in self.extras)
        assert not self.complete, "a finished piece belongs to `done`"
