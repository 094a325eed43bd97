"""What one receiver has to start of one stream. Owns the pieces in line, keys in order, retries, and what is finished.

Knows nothing of leases: whoever takes from it has checked them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from rvq.core.holding import HeldFrame
from rvq.core.lanes import Lane, Piece
from rvq.core.order import KeyOrder
from rvq.core.stamps import Segment
from rvq.core.stats import Stats
from rvq.core.table import lane_of_shard
from rvq.errors import WireError
from rvq.message import Message, RichMessage, make_messages
from rvq.wire.batch import own_stride
from rvq.wire.records import NO_SHARD, Content

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


class Work:
    """The messages of one stream that are this receiver's, from frame to done."""

    def __init__(self, stats: Stats) -> None:
        self.done_to = 0
        """Everything up to here is done in the group, by whomever."""
        self.reported: dict[Lane, None] = {}
        """Lanes with progress that was not reported yet."""
        self.spoilt: list[HeldFrame] = []
        """Frames that turned out to be unreadable: they must be asked for again."""
        self._stats = stats
        self._queue: deque[Piece] = deque()
        self._free: deque[Message] = deque()
        self._retries: list[tuple[float, int, Message]] = []
        self._retry_number = 0
        self._retrying: set[Message] = set()
        self._order = KeyOrder()
        self._frames: dict[Piece, HeldFrame] = {}
        self._loaded: Loaded | None = None

    # --- coming in ------------------------------------------------------------------------------------------------

    def add(self, lane: Lane, frame: HeldFrame) -> None:
        """A frame of a lane that can be worked on."""
        first, last = frame.first, frame.last
        if lane.segment.keyed:
            lane.known.merge(0, (first, last))
        if first in lane.pieces or lane.done.covers_run(first, last):
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
        piece = Piece(lane, first, last, places, frame.header.sent_at)
        lane.pieces[first] = piece
        self._frames[piece] = frame
        self._stats.routed += len(places)
        if lane.segment.keyed:
            lane.early[first] = piece
            self._line_up(lane)
        else:
            self._queue.append(piece)

    def _line_up(self, lane: Lane) -> None:
        """With keys: nothing starts while something before it may be missing."""
        if lane.early:
            self._queue.extend(lane.take_in_order(self.done_to))

    def resume(self, lane: Lane) -> None:
        """A lane came back: what was in line when it was lost is in line again."""
        self._queue = deque(piece for piece in self._queue if piece.lane is not lane)
        again = [p for p in lane.pieces.values() if p in self._frames and p.first not in lane.early]
        self._queue.extend(sorted(again, key=lambda piece: piece.first))
        self._line_up(lane)
        parked, lane.parked = lane.parked, []
        self._free.extend(parked)

    def forget(self, lane: Lane) -> None:
        """A lane is closed: all of it is done."""
        for piece in lane.pieces.values():
            self._frames.pop(piece, None)
        lane.lose()
        self.reported.pop(lane, None)

    def raise_done(self, done_to: int, lanes: Iterable[Lane], lost_lanes: bool) -> None:
        """Everything up to here is done: keyed messages that waited for it go on."""
        self.done_to = done_to
        for lane in lanes:
            lane.done.merge(done_to if lane.end is None else min(done_to, lane.end), ())
            self._line_up(lane)
        for message in self._order.released(done_to):
            self._admit(message)
        if lost_lanes:
            self._free.extend(self._order.overtaken(done_to))

    # --- going out ------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return bool(self._queue or self._free)

    def wake(self, now: float) -> None:
        """Retries fall due."""
        while self._retries and self._retries[0][0] <= now:
            self._free.append(heappop(self._retries)[2])

    def next_deadline(self) -> float:
        return self._retries[0][0] if self._retries else math.inf

    def take(self, most: int, handed: list[Handed] | None = None) -> list[Message]:
        """Up to so many messages, to be started now. `handed` is told of them, for acknowledging all at once."""
        started: list[Message] = []
        if handed is None:
            handed = []
        while self._free and len(started) < most:
            message = self._free.popleft()
            self._retrying.discard(message)
            if self._may_start(message):
                started.append(message)
                handed.append(message)
        queue = self._queue
        while queue and len(started) < most:
            piece = queue[0]
            if piece.lane.startable and piece.last > self.done_to:
                self._take_piece(piece, most - len(started), started, handed)
            if not piece.lane.startable or piece.last <= self.done_to or piece.started == len(piece.places):
                queue.popleft()
        self._stats.emitted += len(started)
        return started

    def _take_piece(self, piece: Piece, most: int, started: list[Message], handed: list[Handed]) -> None:
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
        else:
            begun = self._begin_each(piece, start, loaded.contents(start, stop))
            started += begun
            handed += begun
        if stop == len(piece.places):
            self._loaded = None
            self._frames.pop(piece, None)

    def _begin_each(self, piece: Piece, start: int, contents: Sequence[Content | None]) -> list[Message]:
        begun = []
        for place, content in enumerate(contents, start):
            if content is None:
                self._stats.bad_frames += 1
                self.finish(piece, place, place + 1)
                continue
            message = _message(content, piece, place)
            if self._may_begin(message):
                begun.append(message)
        return begun

    def _load(self, piece: Piece) -> Loaded | None:
        """All that is ours of a frame is read at once. None if it cannot be read: then it is spoilt."""
        if self._loaded is not None and self._loaded.piece is piece:
            return self._loaded
        frame = self._frames[piece]
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

    def _may_begin(self, message: Message) -> bool:
        """For lanes that others were at before, and for keys."""
        return not self._was_done(message) and (message.key is None or self._in_order(message))

    def _in_order(self, message: Message) -> bool:
        return self._order.admit(message, _lane(message).at - 1, self.done_to)

    def _admit(self, message: Message) -> None:
        if self._in_order(message):
            self._free.append(message)

    def _may_start(self, message: Message) -> bool:
        """Of one that waited: does its lane still belong here, and is it still to be done?"""
        if self._was_done(message):
            return False
        if not _lane(message).startable:
            _lane(message).parked.append(message)
            return False
        return True

    def _was_done(self, message: Message) -> bool:
        sequence = message.sequence
        piece = _piece(message)
        known = piece.is_finished(message.place) or piece.lane.done.covers(sequence)
        if sequence > self.done_to and not known:
            return False
        self.finish(_piece(message), message.place, message.place + 1)
        self._next_of_key(message)
        return True

    # --- outcomes -------------------------------------------------------------------------------------------------

    def acknowledge(self, message: Message) -> bool:
        """It is done. False if that was known."""
        news = self.finish(_piece(message), message.place, message.place + 1)
        if message.key is not None:
            self._next_of_key(message)
        return bool(news)

    def retry(self, now: float, message: Message, delay: float) -> None:
        """Hand it out again later."""
        piece = _piece(message)
        if piece.is_finished(message.place) or message in self._retrying:
            return
        self._retrying.add(message)
        piece.retry(message.place)
        self._stats.retried += 1
        self._retry_number += 1
        heappush(self._retries, (now + delay, self._retry_number, message))

    def give_back(self, message: Message) -> None:
        """It was taken and not started: it is the next to start again."""
        if not _piece(message).is_finished(message.place):
            self._stats.emitted -= 1
            self._free.append(message)

    def finish(self, piece: Piece, start: int, stop: int) -> int:
        """These places of a piece are done. How many of them were news."""
        news = piece.finish(start, stop)
        if not news:
            return 0
        lane = piece.lane
        if piece.complete:
            lane.pieces.pop(piece.first, None)
            self._frames.pop(piece, None)
            self._done(lane, piece.first, piece.last)
        else:
            self.reported[lane] = None
        return news

    def _next_of_key(self, message: Message) -> None:
        if message.key is not None:
            following = self._order.finished(message)
            if following is not None:
                self._free.append(following)

    def _done(self, lane: Lane, first: int, last: int) -> None:
        lane.done.merge(0, (first, last))
        self.reported[lane] = None

    def check_invariants(self) -> None:
        self._order.check_invariants()
        assert all(piece.lane.pieces.get(piece.first) is piece for piece in self._frames)


def _message(content: Content, piece: Piece, place: int) -> Message:
    body, key, headers = content
    if key is None and headers is None:
        return Message(body, piece, place)
    return RichMessage(body, piece, place, key, headers)


def _piece(message: Message) -> Piece:
    origin = message.origin
    assert isinstance(origin, Piece)
    return origin


def _lane(message: Message) -> Lane:
    return _piece(message).lane


def _places(lane: Lane, frame: HeldFrame) -> Sequence[int]:
    """The indices of a frame that belong to a lane. Raises WireError if the frame cannot be read."""
    count = frame.last - frame.first + 1
    if not lane.segment.keyed:
        return own_stride(frame.first, count, lane.slot, lane.slots)
    shards = frame.run().shards
    if shards is None:
        return own_stride(frame.first, count, lane.slot, lane.slots)
    return _keyed_places(lane.segment, lane.slot, frame.first, shards)


def _keyed_places(segment: Segment, slot: int, first: int, shards: Sequence[int]) -> list[int]:
    slot_of = lane_of_shard(segment.members)
    slots = len(segment.slots)
    return [
        index
        for index, shard in enumerate(shards)
        if (slot_of[shard] if shard != NO_SHARD else (first + index) % slots) == slot
    ]
