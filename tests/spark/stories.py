"""Journals with a story: who was stamped, what was sent, and who said that it did what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rvq.journal import Entry
from rvq.wire import frames
from rvq.wire.frames import GroupStamp, GroupState, Member, SenderAlive, SenderGoodbye, Stamp, Version
from rvq.wire.records import make_records
from tests.spark.writing import NOW, STREAM, control_of, entry_of, frame, write

A, B, C = 0xA, 0xB, 0xC
RECORDER = 0xD
GROUP = "default"


class Story:
    """What happened on a label, in the order in which a recorder heard it."""

    def __init__(self, *, stream: int = STREAM, label: str = "work", group: str = GROUP) -> None:
        self.stream, self.label, self.group = stream, label, group
        self.entries: list[Entry] = []
        self.now = NOW
        self._stamp = 0
        self._counters: dict[int, int] = {}

    def after(self, seconds: float) -> Story:
        self.now += seconds
        return self

    def stamp(self, at: int, members: Sequence[int], shard_map: tuple[int, ...] = ()) -> Story:
        """From this message on these receivers share the work."""
        self._stamp += 1
        owners = tuple(Member(id, 1) for id in sorted(members))
        journal = (Member(RECORDER, 1),)
        no = (0,) * 1024 if shard_map else ()
        groups = (
            GroupStamp(self.group, self._stamp, at, Version(self._stamp, A), owners, (), (), (), shard_map),
            GroupStamp("journal", 1, 1, Version(1, RECORDER), journal, (), (), (), no),
        )
        return self.say(Stamp(self.stream, self.label, self._stamp, at, bool(shard_map), groups))

    def send(self, first: int, last: int) -> Story:
        datagram = frame(
            make_records([b"x"] * (last - first + 1)),
            first,
            label=self.label,
            stream=self.stream,
            stamp=self._stamp,
            sent_at=self.now,
        )
        self.entries.append(entry_of(datagram, self.now))
        return self

    def handle(
        self, receiver: int, slot: int, first: int, last: int, *, outcome: int = 1, stamp: int = 0, lost: bool = False
    ) -> Story:
        """A receiver says what it did. `lost`: its word does not reach the journal."""
        counter = self._counters[receiver] = self._counters.get(receiver, 0) + 1
        run = frames.HandledRun(outcome, stamp or self._stamp, slot, first, last, self.now)
        said = frames.Handled(receiver, self.label, self.group, self.stream, counter, (run,))
        return self if lost else self.say(said)

    def alive(self, last: int, done_to: int = 0) -> Story:
        state = GroupState(self.group, Version(1, A), done_to, False, ())
        return self.say(SenderAlive(self.stream, self.label, 1, False, last, 0, 1, self._stamp, (state,), ()))

    def goodbye(self) -> Story:
        return self.say(SenderGoodbye(self.stream, self.label))

    def say(self, said: frames.Control) -> Story:
        self.entries.append(control_of(said, self.now, self.label))
        return self

    def write(self, folder: Path, recorder: int = RECORDER) -> Path:
        commits = [self.entries[n : n + 3] for n in range(0, len(self.entries), 3)]
        return write(folder, commits, label=self.label, recorder=recorder)


def quiet() -> Story:
    """Two receivers, a hundred messages, each done once."""
    story = Story().stamp(1, [A, B]).send(1, 60).send(61, 100).after(0.25)
    return story.handle(A, 0, 2, 100).handle(B, 1, 1, 99).alive(100, 100).goodbye()
