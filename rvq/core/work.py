"""What one receiver has to start of one stream. Owns the pieces in line, keys in order, urgent ones, what waits for its
time, how often each was tried, and what is finished.

Knows nothing of leases: whoever takes from it has checked them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rvq.core.holding import HeldFrame
from rvq.core.lanes import Lane, Piece
from rvq.core.machine import Wall
from rvq.core.order import Gate, KeyOrder
from rvq.core.outcomes import Outcomes
from rvq.core.runs import runs_of
from rvq.core.schedule import Schedule
from rvq.core.stamps import Segment
from rvq.core.stats import Counts, Stats
from rvq.errors import WireError
from rvq.limits import TRIED_MAX
from rvq.message import Message, RichMessage, make_messages
from rvq.wire.batch import HAS_URGENT, own_stride
from rvq.wire.frames import FrameType, Outcome, Tried
from rvq.wire.records import NO_SHARD, Content, shard_of

Handed = tuple[Piece, int, int] | Message
"""Messages that were handed out together: consecutive places of a piece (from, up to and without), or a single one."""


class Loaded(NamedTuple):
    """The piece that is being handed out: all of it, read. Bodies if they are plain, else contents."""

    piece: Piece
    plain: bool
    read: Sequence[Any]

    def contents(self, start: int, stop: int) -> Sequence[Content | None]:
        read = self.read[start:stop]
        return [Content(body) for body in read] if self.plain else read


_FRAGMENT = int(FrameType.FRAGMENT)


class Work:
    """The messages of one stream that are this receiver's, from frame to done.

    me: who tries them.  tracked: is every start told to the sender, so that it counts even if it kills its process?
    """

    def __init__(self, stats: Stats, wall: Wall, me: int, *, tracked: bool = False) -> None:
        self.done_to = 0
        """Everything up to here is done in the group, by whomever."""
        self.reported: dict[Lane, None] = {}
        """Lanes with progress that was not reported yet."""
        self.outcomes: Outcomes | None = None
        """What was settled here, for recorders. None while there are none: then nothing is noted."""
        self.spoilt: list[HeldFrame] = []
        """Frames that turned out to be unreadable: they must be asked for again."""
        self.tried: dict[int, Tried] = {}
        """Messages that were started and are not done, by sequence: those tried here, and what the sender told."""
        self.begun: dict[int, None] = {}
        """Those of them that were not reported yet."""
        self._learned: set[int] = set()
        """Those of which the sender told more than was known here."""
        self._suspects: set[int] = set()
        """Those of them that were in the hands of a receiver that died."""
        self._suspect: Message | None = None
        """The one of these that is in hand."""
        self._suspected: deque[Message] = deque()
        """Those that wait for it."""
        self._stats, self._wall, self._me, self._tracked = stats, wall, me, tracked
        self._queue: deque[Piece] = deque()
        self._urgent: deque[Message] = deque()
        self._free: deque[Message] = deque()
        self.schedule = Schedule(wall)
        self._retrying: set[Message] = set()
        self._order = KeyOrder()
        self._gates: dict[int, int] = {}
        """By a segment's stamp: the shards, as bits, of which everything before it is done."""
        self._frames: dict[Piece, HeldFrame] = {}
        self._loaded: Loaded | None = None

    # --- coming in ------------------------------------------------------------------------------------------------

    def add(self, lane: Lane, frame: HeldFrame) -> None:
        """A frame of a lane that can be worked on."""
        first, last = frame.first, frame.last
        if lane.end is not None or lane.fence is not None:
            limit = lane.limit
            if limit is not None and last > limit:
                last = limit
                if first > last:
                    return
        if lane.segment.keyed:
            lane.known.merge(0, (first, last))
        elif (lane.slot - first) % lane.slots > last - first:
            # Hot: a small frame has nothing for most lanes.
            self._done(lane, first, last)
            return
        if (first in lane.pieces and lane.pieces[first].last >= last) or lane.done.covers_run(first, last):
            self._line_up(lane)
            return
        try:
            places = _places(lane, frame)
        except WireError:
            self.spoilt.append(frame)
            return
        if not places:
            self._done(lane, first, last)
            self._line_up(lane)
            return
        if first in lane.pieces:
            self._lengthen(lane.pieces[first], last, places, frame)
            return
        piece = Piece(lane, first, last, places, frame.header.sent_at)
        lane.pieces[first] = piece
        self._frames[piece] = frame
        self._stats.routed += len(places)
        lane.counts.routed += len(places)
        if lane.segment.keyed:
            self._count_shards(frame, places)
            lane.early[first] = piece
            self._line_up(lane)
        else:
            self._queue.append(piece)
        if frame.header.flags & HAS_URGENT or frame.header.type == _FRAGMENT:
            self._pull_urgent(piece)

    def not_known_done(self, lane: Lane, frames: Iterable[HeldFrame]) -> Iterator[int]:
        """The sequences of a lane in these frames of which nobody told that they are done. What cannot be read is
        passed over."""
        for frame in frames:
            try:
                places = _places(lane, frame)
            except WireError:
                continue
            for place in places:
                sequence = frame.first + place
                if sequence > self.done_to and not lane.done.covers(sequence):
                    yield sequence

    def _lengthen(self, piece: Piece, last: int, places: Sequence[int], frame: HeldFrame) -> None:
        """The rest of it was to be given away, and came back with its lane."""
        more = len(places) - len(piece.places)
        piece.places, piece.last = places, last
        if self._loaded is not None and self._loaded.piece is piece:
            self._loaded = None
        if piece not in self._frames:
            self._queue.append(piece)
        # Not the one that it was cut from, if that was dropped and came anew: from a stranger it can be a shorter one.
        self._frames[piece] = frame
        self._stats.routed += more
        piece.lane.counts.routed += more
        # Urgent ones among them wait for their turn like the others.

    def _count_shards(self, frame: HeldFrame, places: Sequence[int]) -> None:
        shards = frame.run().shards
        if shards is not None:
            for place in places:
                if shards[place] != NO_SHARD:
                    self._stats.shard(shards[place]).routed += 1

    def _pull_urgent(self, piece: Piece) -> None:
        """Urgent messages do not wait for their turn in the queue."""
        frame = self._frames[piece]
        try:
            run = frame.run()
            contents = run.contents(piece.places) if run.has_urgent else ()
        except WireError:
            return  # found out again when it is its turn
        for place, content in enumerate(contents):
            if content is not None and content.urgent:
                piece.pull(place)
                self._urgent.append(self._message(content, piece, place))

    def _line_up(self, lane: Lane) -> None:
        """With keys: nothing starts while something before it may be missing."""
        if lane.early:
            self._queue.extend(lane.take_in_order(self.done_to))

    def resume(self, lane: Lane) -> None:
        """A lane came back: what was in line when it was lost is in line again, if it was not given away meanwhile."""
        for piece in [piece for piece in lane.pieces.values() if lane.end is not None and piece.first > lane.end]:
            lane.done.merge(0, piece.covered())
            del lane.pieces[piece.first]
            self._frames.pop(piece, None)
        self._queue = deque(piece for piece in self._queue if piece.lane is not lane)
        again = [p for p in lane.pieces.values() if p in self._frames and p.first not in lane.early]
        self._queue.extend(sorted(again, key=lambda piece: piece.first))
        self._line_up(lane)
        parked, lane.parked = lane.parked, []
        for message in parked:
            if message.key is None:
                self._free.append(message)
            else:
                self._admit(message)

    def sort(self) -> None:
        """What was inherited has waited longest: it does not go behind all that came meanwhile."""
        self._queue = deque(sorted(self._queue, key=lambda piece: piece.first))

    def middle(self, lane: Lane) -> int | None:
        """The sequence from which on half of what is in line of a lane could be given away: nothing behind it was ever
        started. None if there are less than two such messages."""
        pieces = sorted(lane.pieces.values(), key=lambda piece: piece.first)
        barrier = max((piece.reached for piece in pieces), default=0)
        barrier = max(barrier, lane.reached)
        free = [piece for piece in pieces if piece.first > barrier or piece.reached == barrier]
        counts = [sum(map(lane.reaches, map(p.sequence_of, range(p.untouched, len(p.places))))) for p in free]
        unstarted = sum(counts)
        keep = unstarted - unstarted // 2
        for piece, left in zip(free, counts, strict=True) if unstarted > 1 else ():
            if keep < left:
                return piece.sequence_of(piece.untouched + keep)
            keep -= left
        return None

    def cut(self, now: float, lane: Lane, fence: int) -> None:
        """Nothing from here on is started: it is another's."""
        lane.fence = fence
        given = 0
        for piece in [piece for piece in lane.pieces.values() if piece.last >= fence]:
            kept = sum(piece.first + place < fence for place in piece.places)
            assert piece.untouched <= kept, "what is given away was never started"
            free = [n for n in range(kept, len(piece.places)) if not lane.done.covers(piece.sequence_of(n))]
            given += len(free)
            for begin, end in runs_of(free):
                self._note(now, Outcome.HANDED_OVER, piece, begin, end)
            if self._loaded is not None and self._loaded.piece is piece:
                self._loaded = None
            if kept:
                piece.places, piece.last = piece.places[:kept], fence - 1
                if piece.complete:
                    self._drop_piece(piece)
            else:
                del lane.pieces[piece.first]
                self._frames.pop(piece, None)
                if piece.first < fence:
                    self._done(lane, piece.first, fence - 1)
        self._queue = deque(p for p in self._queue if p.lane is not lane or lane.pieces.get(p.first) is p)
        self._stats.handed_over += given
        lane.counts.handed_over += given

    def forget(self, lane: Lane) -> None:
        """A lane is closed: all of it is done."""
        for piece in lane.pieces.values():
            self._frames.pop(piece, None)
        if self._suspect is not None and _lane(self._suspect) is lane:
            self._clear(self._suspect)
        lane.lose()
        self.reported.pop(lane, None)

    def raise_done(self, done_to: int, lanes: Iterable[Lane], lost_lanes: bool) -> None:
        """Everything up to here is done: keyed messages that waited for it go on."""
        self.done_to = done_to
        for lane in lanes:
            lane.done.merge(done_to if lane.end is None else min(done_to, lane.end), ())
            self._line_up(lane)
        self._release()
        if lost_lanes:
            self._free.extend(self._order.overtaken(done_to))
        if self.tried:
            for sequence in [sequence for sequence in self.tried if sequence <= done_to]:
                self._let_go(sequence)

    def open_gates(self, stamp: int, shards: int) -> None:
        """Everything of these shards (as bits) from before the segment of this stamp is done."""
        before = self._gates.get(stamp, 0)
        if shards | before != before:
            self._gates[stamp] = shards | before
            self._release()

    def close_gates(self, stamps: Container[int]) -> None:
        """Only these segments are open."""
        for stamp in [stamp for stamp in self._gates if stamp not in stamps]:
            del self._gates[stamp]

    def _is_open(self, gate: Gate) -> bool:
        if gate.at <= self.done_to + 1:
            return True
        return any(bits >> gate.shard & 1 for stamp, bits in self._gates.items() if stamp >= gate.stamp)

    def _release(self) -> None:
        for message in self._order.released(self._is_open):
            if not self._was_done(message):
                self._admit(message)

    # --- going out ------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return bool(self._queue or self._free or self._urgent)

    @property
    def has_urgent(self) -> bool:
        return bool(self._urgent)

    @property
    def waiting(self) -> int:
        """Messages that wait for their time."""
        return len(self.schedule)

    @property
    def unstarted(self) -> int:
        """Messages in line."""
        queued = sum(len(p.places) - p.started - sum(n >= p.started for n in p.pulled) for p in self._queue)
        return queued + len(self._free) + len(self._urgent)

    def unread(self) -> set[int]:
        """The first sequences of frames that are still needed: not everything of them that is mine was started."""
        return {frame.first for frame in self._frames.values()}

    def wake(self, now: float) -> None:
        """The time of some has come."""
        for message in self.schedule.take(now):
            if message.key is not None and message not in self._retrying:
                self._admit(message)
            else:
                self._free.append(message)

    def next_deadline(self) -> float:
        return self.schedule.next_deadline()

    def take(self, now: float, most: int, handed: list[Handed] | None = None) -> list[Message]:
        """Up to so many messages, to be started now. `handed` is told of them, for acknowledging all at once."""
        started: list[Message] = []
        if handed is None:
            handed = []
        for ready in (self._urgent, self._free):
            while ready and len(started) < most:
                message = ready.popleft()
                self._retrying.discard(message)
                if self._may_start(now, message):
                    started.append(message)
                    handed.append(message)
                else:
                    self._next_suspect()
        queue = self._queue
        while queue and len(started) < most:
            piece = queue[0]
            # All of it can be done before it is its turn, if all of it was urgent.
            may_start = piece.lane.startable and piece.last > self.done_to and not piece.complete
            if may_start:
                self._take_piece(now, piece, most - len(started), started, handed)
            if not may_start or piece.started == len(piece.places):
                queue.popleft()
        self._stats.emitted += len(started)
        if self._tracked:
            for message in started:
                self._note_try(message)
        return started

    def _take_piece(self, now: float, piece: Piece, most: int, started: list[Message], handed: list[Handed]) -> None:
        loaded = self._load(piece)
        if loaded is None:
            piece.started = len(piece.places)
            return
        lane, start = piece.lane, piece.started
        piece.started = stop = min(start + most, len(piece.places))
        if loaded.plain and not (lane.inherited or lane.segment.keyed):
            # Hot: nothing can be in the way of these.
            bodies = loaded.read if stop - start == len(loaded.read) else loaded.read[start:stop]
            started += make_messages(bodies, piece, start)
            handed.append((piece, start, stop))
            lane.counts.emitted += stop - start
            lane.in_hand += stop - start
        else:
            begun = self._begin_each(now, piece, start, loaded.contents(start, stop))
            started += begun
            handed += begun
        if stop == len(piece.places):
            self._loaded = None
            self._frames.pop(piece, None)

    def _begin_each(self, now: float, piece: Piece, start: int, contents: Sequence[Content | None]) -> list[Message]:
        begun = []
        for place, content in enumerate(contents, start):
            if place in piece.pulled or not piece.lane.reaches(piece.sequence_of(place)):
                continue
            if content is None:
                self._stats.bad_frames += 1
                if self.finish(piece, place, place + 1):
                    self._note(now, Outcome.UNREADABLE, piece, place, place + 1)
                continue
            message = self._message(content, piece, place)
            if self._was_done(message):
                continue
            if self.schedule.is_early(now, message):
                self.schedule.wait_until_due(message)
            elif self._may_begin(now, message):
                begun.append(message)
        return begun

    def _may_begin(self, now: float, message: Message) -> bool:
        """Of one whose lane is ours and that is not done."""
        if self._is_over(now, message) or not (message.key is None or self._in_order(message)):
            return False
        if not self._is_alone(message):
            return False
        self._count(message, "emitted")
        return True

    def _is_alone(self, message: Message) -> bool:
        """One that was in the hands of a receiver that died may have killed it. Such are handled one at a time, so that
        whoever is killed again knows which one it was; those that were only beside it do not die with it."""
        if message.sequence not in self._suspects or message is self._suspect:
            return True
        if self._suspect is None:
            self._suspect = message
            return True
        self._suspected.append(message)
        return False

    def _message(self, content: Content, piece: Piece, place: int) -> Message:
        tried = self.tried.get(piece.sequence_of(place)) if self.tried else None
        if tried is not None:
            piece.set_tries(place, tried.attempts)
            self._learned.discard(tried.sequence)
        if content[1:] == _PLAIN:
            return Message(content.body, piece, place)
        return RichMessage(content, piece, place)

    def _load(self, piece: Piece) -> Loaded | None:
        """All that is ours of a frame is read at once. None if it cannot be read: then it is spoilt."""
        if self._loaded is not None and self._loaded.piece is piece:
            return self._loaded
        frame = self._frames.get(piece)
        if frame is None:
            return None  # all of it was urgent, and is done
        try:
            run = frame.run()
            bodies = run.plain_bodies(piece.places)
            self._loaded = Loaded(piece, bodies is not None, run.contents(piece.places) if bodies is None else bodies)
        except WireError:
            self.spoilt.append(frame)
            del self._frames[piece], piece.lane.pieces[piece.first]
            # With keys, what stands behind it may go on: an unreadable frame cannot be waited for in order.
            return None
        return self._loaded

    def _in_order(self, message: Message) -> bool:
        lane = _lane(message)
        assert message.key is not None
        return self._order.admit(message, Gate(lane.stamp, lane.segment.at, shard_of(message.key)), self._is_open)

    def _admit(self, message: Message) -> None:
        if self._in_order(message):
            self._free.append(message)

    def _may_start(self, now: float, message: Message) -> bool:
        """Of one that waited: does its lane still belong here, and is it still to be done?"""
        if self._was_done(message):
            return False
        if not _lane(message).reaches(message.sequence):
            # Whoever had the lane meanwhile gave this part of it away.
            self._clear(message)
            self._free_key(message)
            return False
        if not _lane(message).startable:
            # It was not started, so it does not hold its key: a newer segment's may go on here.
            _lane(message).parked.append(message)
            self._clear(message)
            self._free_key(message)
            return False
        if message.sequence in self._learned:
            # Another had it meanwhile, and told how often it was tried.
            self._learned.discard(message.sequence)
            _piece(message).set_tries(message.place, self.tried[message.sequence].attempts)
        if self._is_over(now, message) or not self._is_alone(message):
            return False
        self._count(message, "emitted")
        return True

    def _is_over(self, now: float, message: Message) -> bool:
        """Is its time to live over? Then it is done with, and counted."""
        if message.ttl is None or not self.schedule.is_over(now, message):
            return False
        if self._settle(message):
            self._stats.expired += 1
            self._count(message, "expired")
            self._note_one(now, Outcome.EXPIRED, message)
        return True

    def _was_done(self, message: Message) -> bool:
        sequence = message.sequence
        piece = _piece(message)
        known = piece.is_finished(message.place) or piece.lane.done.covers(sequence)
        if sequence > self.done_to and not known:
            return False
        self._settle(message)
        return True

    # --- outcomes -------------------------------------------------------------------------------------------------

    def acknowledge(self, now: float, message: Message) -> bool:
        """It is done. False if that was known, or if it is to be handed out again."""
        news = message not in self._retrying and self._settle(message)
        if news:
            self._stats.acked += 1
            self._count(message, "acked")
            if self.outcomes is not None:
                self._note_one(now, Outcome.ACKED, message)
        return news

    def acknowledge_run(self, now: float, piece: Piece, start: int, stop: int) -> int:
        """These places of a piece, which have no keys, are done. How many of them were news."""
        if self.outcomes is not None:
            for begin, end in piece.unfinished(start, stop):
                self._note(now, Outcome.ACKED, piece, begin, end)
        news = self.finish(piece, start, stop)
        self._stats.acked += news
        piece.lane.counts.acked += news
        piece.lane.in_hand = max(0, piece.lane.in_hand - news)
        return news

    def reject(self, now: float, message: Message) -> bool:
        """It will never be handled: for its sender that is done. False if it was done with before."""
        news = message not in self._retrying and self._settle(message)
        if news:
            self._stats.dead += 1
            self._count(message, "dead")
            self._note_one(now, Outcome.DEAD, message)
        return news

    def retry(self, now: float, message: Message, delay: float) -> None:
        """Hand it out again later."""
        piece = _piece(message)
        if piece.is_finished(message.place) or message in self._retrying:
            return
        self._note_try(message)
        self._clear(message)
        self._retrying.add(message)
        piece.set_tries(message.place, message.attempt)
        self._stats.retried += 1
        self._count(message, "retried")
        self._note_one(now, Outcome.RETRIED, message)
        self.schedule.retry_at(now + delay, message)

    def is_settled(self, message: Message) -> bool:
        """Was it acknowledged or rejected, or is it to be handed out again?"""
        return message in self._retrying or _piece(message).is_finished(message.place)

    @staticmethod
    def is_anothers(message: Message) -> bool:
        """Does its lane belong to another?"""
        return not _lane(message).mine

    def give_back(self, message: Message) -> None:
        """It was taken and not started: it is the next to start again."""
        if not _piece(message).is_finished(message.place):
            self._stats.emitted -= 1
            _lane(message).counts.emitted -= 1
            _lane(message).in_hand = max(0, _lane(message).in_hand - 1)
            if message.key is not None:
                self._stats.shard(shard_of(message.key)).emitted -= 1
            self._free.append(message)

    def finish(self, piece: Piece, start: int, stop: int) -> int:
        """These places of a piece are done. How many of them were news."""
        news = piece.finish(start, stop)
        if not news:
            return 0
        if self.tried:
            for place in range(start, stop):
                self._let_go(piece.sequence_of(place))
        suspect = self._suspect
        if suspect is not None and suspect.origin is piece and start <= suspect.place < stop:
            self._clear(suspect)
        lane = piece.lane
        if piece.complete:
            self._drop_piece(piece)
        else:
            lane.changed[piece.first] = None
            self.reported[lane] = None
        return news

    def _drop_piece(self, piece: Piece) -> None:
        """All of it is done."""
        piece.lane.reached = max(piece.lane.reached, piece.sequence_of(len(piece.places) - 1))
        piece.lane.pieces.pop(piece.first, None)
        self._frames.pop(piece, None)
        self._done(piece.lane, piece.first, piece.last)

    def _settle(self, message: Message) -> bool:
        """It is done with, one way or another: the next of its key may start."""
        news = self.finish(_piece(message), message.place, message.place + 1)
        self._clear(message)
        self._free_key(message)
        return bool(news)

    def _free_key(self, message: Message) -> None:
        following = self._order.finished(message) if message.key is not None else None
        if following is not None:
            self._free.append(following)

    def _clear(self, message: Message) -> None:
        """It did not kill us: the next suspect may start."""
        if message is self._suspect:
            self._suspects.discard(message.sequence)
            self._suspect = None
            self._next_suspect()

    def _next_suspect(self) -> None:
        """One at a time comes up; if that one does not start after all, the next."""
        if self._suspect is None and self._suspected:
            self._free.append(self._suspected.popleft())

    def _done(self, lane: Lane, first: int, last: int) -> None:
        lane.done.add(first, last)
        lane.changed[first] = None
        self.reported[lane] = None

    # --- tries and counts -----------------------------------------------------------------------------------------

    def learn_tries(self, tried: Iterable[Tried]) -> None:
        """The sender tells how often messages were started that I inherit."""
        for one in tried:
            known = self.tried.get(one.sequence)
            if known is None and len(self.tried) >= TRIED_MAX:
                return
            if one.sequence > self.done_to and (known is None or known.attempts < one.attempts):
                self.tried[one.sequence] = one
                self._learned.add(one.sequence)
                self._suspects.add(one.sequence)

    def first_owner(self, message: Message) -> int:
        """Who tried it first."""
        tried = self.tried.get(message.sequence)
        return tried.first_owner if tried is not None else self._me

    def _note_try(self, message: Message) -> None:
        sequence = message.sequence
        known = self.tried.get(sequence)
        if known is None or known.attempts < message.attempt:
            self.tried[sequence] = Tried(sequence, message.attempt, known.first_owner if known else self._me)
            self.begun[sequence] = None

    def _let_go(self, sequence: int) -> None:
        self.tried.pop(sequence, None)
        self._suspects.discard(sequence)
        self.begun.pop(sequence, None)
        self._learned.discard(sequence)

    def _count(self, message: Message, what: str) -> None:
        """In its lane and its shard. Not on the hot way, which counts by pieces."""
        lane = _lane(message)
        lane.in_hand = max(0, lane.in_hand + _IN_HAND.get(what, 0))
        _add_one(lane.counts, what)
        if message.key is not None:
            _add_one(self._stats.shard(shard_of(message.key)), what)

    def _note_one(self, now: float, outcome: Outcome, message: Message) -> None:
        self._note(now, outcome, _piece(message), message.place, message.place + 1)

    def _note(self, now: float, outcome: Outcome, piece: Piece, start: int, stop: int) -> None:
        """Settled here, by our own hand: what is only learned to be done is not noted."""
        if self.outcomes is not None:
            self.outcomes.note(self._wall.read(now), outcome, piece, start, stop)

    def check_invariants(self) -> None:
        self._order.check_invariants()
        assert all(piece.lane.pieces.get(piece.first) is piece for piece in self._frames)
        assert self.begun.keys() <= self.tried.keys()


_PLAIN = Content(None)[1:]
_IN_HAND = {"emitted": 1, "acked": -1, "retried": -1, "dead": -1}
"""How counting changes what is in hand."""


def _add_one(counts: Counts, what: str) -> None:
    setattr(counts, what, getattr(counts, what) + 1)


def _piece(message: Message) -> Piece:
    origin = message.origin
    assert isinstance(origin, Piece)
    return origin


def _lane(message: Message) -> Lane:
    return _piece(message).lane


def _places(lane: Lane, frame: HeldFrame) -> Sequence[int]:
    """The indices of a frame that belong to a lane, or to a part of one. Raises WireError if it cannot be read."""
    places = _places_of_all(lane, frame)
    limit = lane.limit
    if frame.first < lane.at or (limit is not None and frame.last > limit):
        return [place for place in places if lane.reaches(frame.first + place)]
    return places


def _places_of_all(lane: Lane, frame: HeldFrame) -> Sequence[int]:
    count = frame.last - frame.first + 1
    if not lane.segment.keyed:
        return own_stride(frame.first, count, lane.slot, lane.slots)
    shards = frame.run().shards
    if shards is None:
        return own_stride(frame.first, count, lane.slot, lane.slots)
    return _keyed_places(lane.segment, lane.slot, frame.first, shards)


def _keyed_places(segment: Segment, slot: int, first: int, shards: Sequence[int]) -> list[int]:
    slot_of = segment.shard_map
    slots = len(segment.slots)
    return [
        index
        for index, shard in enumerate(shards)
        if (slot_of[shard] if shard != NO_SHARD else (first + index) % slots) == slot
    ]
