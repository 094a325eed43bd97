"""A recorder of a world: it takes frames, puts them on a disk that takes its time, and says that they are safe.

What it has taken and not yet synced is gone when it crashes; what it has synced is in the history for good.
"""

from __future__ import annotations

from collections.abc import Callable

from rvq.core.chronicle import Kept
from rvq.core.taken import Taken
from rvq.errors import WireError
from rvq.sim.clock import LocalClock
from rvq.sim.history import Recorded, Recording, Stored, Took
from rvq.sim.machines import RecordingEnd
from rvq.sim.network import BUFFER_BYTES
from rvq.sim.process import Process, State, Surroundings
from rvq.wire.codec import decode_control
from rvq.wire.records import Content
from rvq.wire.stored import read_stored

FRAMES_MAX = 64
"""Frames that are taken at once."""

Rivals = Callable[["RecorderProcess", int, int], tuple[str, ...]]


class RecorderProcess(Process):
    """A recording end and its disk. One sync at a time; meanwhile it goes on taking."""

    machine: RecordingEnd

    def __init__(
        self,
        around: Surroundings,
        name: str,
        id: int,
        label: str,
        local: LocalClock,
        machine: RecordingEnd,
        *,
        group: str,
        sync_s: float,
        rivals: Rivals | None = None,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        super().__init__(around, name, id, label, local, hears_data=True, buffer_bytes=buffer_bytes)
        self.machine = machine
        self._put_on_bus()
        self.group = group
        self.sync_s = sync_s
        self.leaving = False
        self.stored: list[tuple[int, int]] = []
        """(stream, sequence) of everything that is safe."""
        self._rivals = rivals or (lambda _process, _stream, _sequence: ())
        self._taken: list[Taken] = []
        self._control: list[Kept] = []
        self._syncing = False
        around.history.add(Recording(self._clock.now, name, group))
        self._tell(f"starts recording {label!r} in {group} (id {id:016x}, clock rate {local.rate:.3f})")
        self._do(lambda: None)

    @property
    def busy(self) -> bool:
        """Is anything not safe yet, or is it about to go?"""
        return self.leaving or self._syncing or bool(self._taken)

    def leave(self) -> None:
        """SIGTERM: store what is its own, then go."""
        if self.alive and not self.leaving:
            self._tell("LEAVES")
            self.leaving = True
            self._do(lambda: self.machine.leave(self.local_now))

    def _work(self) -> None:
        machine = self.machine
        while machine.ready and (taken := machine.take(self.local_now, FRAMES_MAX)):
            for one in taken:
                self._note_taken(one)
            self._taken += taken
        self._control += machine.history()
        events, machine.events[:] = machine.events[:], []
        for event in events:
            self._tell(event)
        if (self._taken or self._control) and not self._syncing:
            self._sync()
        if machine.left and not self._syncing:
            self._send()
            self._tell("left")
            self._end(State.ENDED)

    def _note_taken(self, taken: Taken) -> None:
        """As whoever reads the journal will find it."""
        lane = taken.piece.lane
        asked_at = None if lane.asked_at is None else self.local.true_time(lane.asked_at)
        block = read_stored(*taken.block())
        contents = block.contents()
        for sequence, content in zip(block.sequences, contents, strict=True):
            assert content is not None, "nobody sends what cannot be read"
            self._note(block.stream, sequence, content, asked_at)

    def _note(self, stream: int, sequence: int, content: Content, asked_at: float | None) -> None:
        facts = (self.name, self.group, stream, sequence, content.key, content.body)
        took = Took(self._clock.now, *facts, asked_at, self._rivals(self, stream, sequence))
        self._around.history.add(took)

    def _sync(self) -> None:
        taken, self._taken = self._taken, []
        control, self._control = self._control, []
        self._syncing = True
        takes = self._around.random.expovariate(1 / self.sync_s) if self.sync_s else 0.0
        self._clock.after(takes, self._do, self._synced, taken, control)

    def _synced(self, taken: list[Taken], control: list[Kept]) -> None:
        self._syncing = False
        history, now = self._around.history, self._clock.now
        for datagram, _ in control:
            try:
                frame = decode_control(datagram)
            except WireError as error:
                raise AssertionError(f"history that cannot be read: {error}") from error
            history.add(Recorded(now, self.name, self._around.story.name_of(frame.source), frame))
        for one in taken:
            for sequence in one.sequences:
                self.stored.append((one.stream, sequence))
                history.add(Stored(now, self.name, self.group, one.stream, sequence))
        if self._around.story.level >= 2:
            self._tell(f"stored {len(taken)} frames and {len(control)} words")
        self.machine.stored(self.local_now, taken)
