"""What one recorder has to store of one stream. Owns which frames are in line, and which of their messages are its own.

A recorder does not handle messages, it keeps frames: so nothing here waits for a time, for a key or for another try.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rvq import limits
from rvq.core.holding import HeldFrame
from rvq.core.lanes import Lane, Piece
from rvq.core.runs import runs_of
from rvq.core.work import Work
from rvq.errors import WireError
from rvq.wire.columns import check_run
from rvq.wire.stored import Stored, store
from rvq.wire.train import Run


class Taken(NamedTuple):
    """The messages of a frame that are to be stored here. They are done when they are `stored`, and not before."""

    piece: Piece
    frame: HeldFrame
    run: Run
    """The frame, read: its records can be told apart."""
    places: Sequence[int] | None
    """Which messages of the frame, by their indices; None for all of them."""
    spans: Sequence[tuple[int, int]]
    """The same as runs of the piece's places (from, up to and without)."""

    @property
    def stream(self) -> int:
        return self.piece.stream

    @property
    def sequences(self) -> Sequence[int]:
        first = self.frame.first
        if self.places is None:
            return range(first, self.frame.last + 1)
        if isinstance(self.places, range):
            return range(first + self.places.start, first + self.places[-1] + 1, self.places.step)
        return [first + place for place in self.places]

    def without(self, is_known: Callable[[int], bool]) -> Taken | None:
        """Without those that the journal has already: what is still to be stored of it. None if that is nothing."""
        first = self.frame.first
        left = [sequence - first for sequence in self.sequences if not is_known(sequence)]
        if len(left) == len(self.sequences):
            return self
        return self._replace(places=left) if left else None

    def block(self) -> Stored:
        """As a journal keeps it."""
        return store(self.frame.header, self.run, self.frame.datagrams, self.places)


class RecorderWork(Work):
    """Frames instead of messages. Lanes, and what is done of them, are as of any receiver."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_sorted = True

    def add(self, lane: Lane, frame: HeldFrame) -> None:
        queue = self._queue
        before = queue[-1].first if queue else 0
        super().add(lane, frame)
        if queue and queue[-1].first < before:
            self._is_sorted = False  # it was asked for again; put right when frames are taken

    def _pull_urgent(self, piece: Piece) -> None:
        """Nothing is urgent here."""

    def _line_up(self, lane: Lane) -> None:
        """Nothing waits for what comes before it: order is for those who handle messages."""
        lane.known.merge(max(lane.done.floor, self.done_to), ())
        if lane.early:
            self._queue.extend(lane.early[first] for first in sorted(lane.early))
            lane.early.clear()

    def take_frames(self, most: int) -> list[Taken]:
        """Of up to so many frames what is to be stored here, the oldest first."""
        if not self._is_sorted:
            self.sort()
            self._is_sorted = True
        queue = self._queue
        found: list[Taken] = []
        while queue and len(found) < most:
            piece = queue.popleft()
            if piece.lane.startable:  # else it is in line again if its lane comes back
                taken = self._take_frame(piece)
                if taken is not None:
                    found.append(taken)
        return found

    def _take_frame(self, piece: Piece) -> Taken | None:
        """None if there is nothing to store: all of it is done, or it cannot be read."""
        frame = self._frames.pop(piece)
        count = len(piece.places)
        try:
            run = frame.run()
            check_run(run, limits.STORED_MESSAGES_MAX)
        except WireError:
            self.spoilt.append(frame)
            del piece.lane.pieces[piece.first]
            return None
        spans = self._undone(piece)
        piece.started = count
        free = sum(stop - start for start, stop in spans)
        if free < count:
            self._finish_all_but(piece, spans)
        if not free:
            return None
        self._stats.emitted += free
        piece.lane.counts.emitted += free
        piece.lane.in_hand += free
        return Taken(piece, frame, run, _places(piece, spans, frame.last - frame.first + 1), spans)

    def _undone(self, piece: Piece) -> list[tuple[int, int]]:
        """Runs of places that nobody has stored, as far as is known."""
        done, done_to = piece.lane.done, self.done_to
        if not piece.lane.inherited and piece.first > done_to and not piece.finished and not piece.extras:
            return [(0, len(piece.places))]
        places = range(len(piece.places))
        sequences = map(piece.sequence_of, places)
        return runs_of(
            place
            for place, sequence in zip(places, sequences, strict=True)
            if sequence > done_to and not done.covers(sequence) and not piece.is_finished(place)
        )

    def _finish_all_but(self, piece: Piece, spans: Sequence[tuple[int, int]]) -> None:
        """The others are done by somebody else."""
        at = 0
        for start, stop in [*spans, (len(piece.places), len(piece.places))]:
            if at < start:
                self.finish(piece, at, start)
            at = stop


def _places(piece: Piece, spans: Sequence[tuple[int, int]], count: int) -> Sequence[int] | None:
    (start, stop), *others = spans
    if not others:
        return None if stop - start == count else piece.places[start:stop]
    return [place for start, stop in spans for place in piece.places[start:stop]]
