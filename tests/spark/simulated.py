"""Journals out of simulated worlds: what their recorders stored and heard, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rvq.core.chronicle import Kept
from rvq.core.taken import Taken
from rvq.journal import Entry, EntryKind, Journal
from rvq.sim import World
from rvq.sim.recording import RecorderProcess
from rvq.sim.world import WALL_CLOCK_START


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, play: Callable[[], World]) -> World:
    """Plays a world whose recorders write a journal each time that their disk has synced."""
    journals: dict[int, Journal] = {}
    synced = RecorderProcess._synced

    def write(self: RecorderProcess, taken: list[Taken], control: list[Kept]) -> None:
        id = self.machine.id
        if id not in journals:
            journals[id] = Journal.open(folder, group=self.group, recorder=id)
        now = WALL_CLOCK_START + self._clock.now
        writer = journals[id].writer(self.machine.label)
        for entry in [*(frame_of(one, now) for one in taken), *(word_of(one, now) for one in control)]:
            writer.add(entry)
        journals[id].commit(now, sync=False)
        synced(self, taken, control)

    monkeypatch.setattr(RecorderProcess, "_synced", write)
    world = play()
    for journal in journals.values():
        journal.close(WALL_CLOCK_START + world.now)
    return world


def frame_of(taken: Taken, now: float) -> Entry:
    kind, flags, payload = taken.block()
    return Entry(kind, flags, None, now, len(taken.sequences), payload)


def word_of(kept: Kept, now: float) -> Entry:
    source: Any = None
    return Entry(EntryKind.CONTROL, 0, source, now, 0, kept[0])
