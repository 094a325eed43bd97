"""A recording end: frames in, and out again to be stored; what is stored is done. Composes nothing of its own.

One receiver of a group like any other ("journal", unless told otherwise), so several of them share the load. What it is
given goes to disk as it came, and whoever puts it there says when it is safe.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from rvq.core.chronicle import Chronicle, Kept
from rvq.core.machine import Address
from rvq.core.receiver import ReceiverMachine
from rvq.core.taken import RecorderWork, Taken
from rvq.timings import Timings
from rvq.wire.codec import decode_control
from rvq.wire.frames import Alive, FrameType

JOURNAL = "journal"
"""The group of those who record, unless told otherwise. Another group is another copy."""


class RecorderMachine(ReceiverMachine):
    """One recorder of one label. It has no messages, so what a receiver does with messages it is never asked."""

    is_recorder = True
    unheard: frozenset[int] = frozenset({FrameType.ORDER_DONE, FrameType.ABOUT})
    work_kind = RecorderWork

    def __init__(
        self,
        label: str,
        id: int,
        *,
        timings: Timings,
        random: Random,
        now: float,
        group: str = JOURNAL,
        weight: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(label, id, group=group, weight=weight, timings=timings, random=random, now=now, **options)
        self.chronicle = Chronicle(label, self.stats)

    # --- frames out -----------------------------------------------------------------------------------------------

    def take(self, now: float, most: int) -> list[Taken]:  # type: ignore[override]  # frames, and no messages
        """Of up to so many frames what is to be stored here; of each stream the oldest first. Streams take turns.

        What was taken and is not stored yet is whoever took it's to bound: it is kept, whatever else must go.
        """
        taken: list[Taken] = []
        if self._handing_back or self._rests:
            return taken
        for stream in self._in_turn():
            work = stream.work
            assert isinstance(work, RecorderWork)
            if work.ready and stream.lease.holds(now):
                taken += work.take_frames(most - len(taken))
                if work.spoilt:
                    stream.ask_again_for_spoilt(now)
                    self._at_latest(stream.next_deadline())
                if work.reported:
                    self._note_progress(now, stream)
                if len(taken) >= most:
                    break
        if taken:
            self._note_lag(now, taken[-1].piece.sent_at)
        return taken

    def stored(self, now: float, taken: Iterable[Taken]) -> None:
        """These are safe: now they are done."""
        for piece, _, _, _, spans in taken:
            for start, stop in spans:
                self._acknowledge_run(now, piece, start, stop)

    def history(self) -> list[Kept]:
        """The control frames that are history, since they were asked for last."""
        return self.chronicle.take()

    # --- frames in ------------------------------------------------------------------------------------------------

    def _on_control_datagram(self, now: float, datagram: bytes, source: Address) -> None:
        frame = decode_control(datagram)
        self.chronicle.note(frame, datagram, source)
        self._on_control(now, frame, source)
        if isinstance(frame, Alive) and frame.hello and frame.label == self.label and frame.source != self.id:
            # Whoever is new knows of no recorder yet, and what it does meanwhile nobody is told.
            self._beat_soon(now)

    def _tell_recorders(self, tell: bool) -> None:
        """What is recorded, the journal itself shows."""

    def check_invariants(self) -> None:
        super().check_invariants()
        self.chronicle.check_invariants()
