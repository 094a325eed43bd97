"""What became of one stream's messages here, as recorders will be told. Owns how it is gathered into runs.

Exact: a run has only what was settled here, and every message of its lane from its first to its last. An audit counts
from it who did what, and what was done twice. With no recorder there, nobody has one of these.
"""

from __future__ import annotations

from collections.abc import Callable

from rvq.core.lanes import Lane, Piece
from rvq.limits import HANDLED_RUNS_MAX
from rvq.wire.frames import HandledRun, Outcome

JOIN_S = 0.001
"""What was settled within this time of a run's first message becomes part of it: finer than latencies are looked at."""

Tell = Callable[[tuple[HandledRun, ...]], object]


class Run:
    """Messages of one lane that follow each other in it, and met the same fate."""

    __slots__ = ("at", "first", "last", "outcome", "piece", "reach", "stop")

    def __init__(self, at: float, outcome: Outcome, piece: Piece, start: int, stop: int) -> None:
        self.at = at
        self.outcome = outcome
        self.first = piece.sequence_of(start)
        self.end_at(piece, stop)

    def end_at(self, piece: Piece, stop: int) -> None:
        """It goes up to this place, and without it."""
        self.piece, self.stop = piece, stop
        self.last = piece.sequence_of(stop - 1)
        self.reach = piece.last if stop == len(piece.places) else self.last
        """Up to here nothing more of the lane follows."""

    def leads_to(self, piece: Piece, start: int) -> bool:
        """Does the message at this place follow, with nothing of the lane between?"""
        if not piece.lane.segment.keyed:
            return piece.sequence_of(start) == self.last + piece.lane.slots
        # With keys, the lane's messages are known only where its frames are here.
        if piece is self.piece:
            return start == self.stop
        return start == 0 and self.stop > 0 and piece.first == self.reach + 1

    def told(self) -> HandledRun:
        lane = self.piece.lane
        return HandledRun(self.outcome, lane.stamp, lane.slot, self.first, self.last, self.at)


class Outcomes:
    """The runs since recorders were told last."""

    __slots__ = ("_newest", "_runs", "_tell")

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._runs: list[Run] = []
        self._newest: dict[Lane, Run] = {}

    def note(self, at: float, outcome: Outcome, piece: Piece, start: int, stop: int) -> None:
        """The messages at these places of a piece were settled here at this wall time."""
        run = self._newest.get(piece.lane)
        # With a frame full of runs it no longer matters when; but still what.
        may_join = run is not None and (abs(at - run.at) <= JOIN_S or len(self._runs) >= HANDLED_RUNS_MAX)
        if run is not None and may_join and run.outcome == outcome and run.leads_to(piece, start):
            run.end_at(piece, stop)
            return
        run = self._newest[piece.lane] = Run(at, outcome, piece, start, stop)
        self._runs.append(run)

    def flush(self) -> None:
        """Tell them now."""
        runs, self._runs = self._runs, []
        self._newest.clear()
        for start in range(0, len(runs), HANDLED_RUNS_MAX):
            self._tell(tuple(run.told() for run in runs[start : start + HANDLED_RUNS_MAX]))

    def __len__(self) -> int:
        return len(self._runs)
