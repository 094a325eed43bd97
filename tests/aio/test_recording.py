"""One label of a recorder: what is noted of each frame."""

from __future__ import annotations

from pathlib import Path

import pytest

import rvq
from rvq.aio import recording as module
from rvq.aio.driver import monotonic
from rvq.aio.recording import Recording
from rvq.journal import Journal
from tests.aio.ends import until


async def test_a_batch_is_bounded_and_the_rest_is_in_the_next(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 60_000)
    monkeypatch.setattr(module, "FRAMES_PER_LOOK", 2)
    work: list[None] = []
    with Journal.open(tmp_path, group="journal", recorder=1) as journal:
        writer = journal.writer("work")
        recording = Recording("work", 1, "journal", bus, writer, lambda: work.append(None))
        async with rvq.Sender("work", bus=bus) as sender:
            await until(lambda: "journal" in sender.tables)
            writer.prepare()
            before = len(work)
            for number in range(5):
                await sender.send(bytes(50_000) + bytes([number]))
            await until(lambda: recording._machine.streams[sender.id].last == 5)
            sizes: list[int] = []

            def store() -> bool:
                while taken := recording.take(monotonic()):
                    entries = writer.prepare().entries
                    sizes.append(sum(entry.rows for entry in entries))
                    assert sizes[-1] == sum(len(one.sequences) for one in taken)
                    recording.stored(monotonic(), taken)
                return sum(sizes) == 5

            await until(store)
            assert len(work) > before, "it says that there is work"
            assert max(sizes) <= 4, "looked at every two frames"
            await until(lambda: sender.undone == 0)
        await recording.hand_back()
        recording.close()
        recording.close()
