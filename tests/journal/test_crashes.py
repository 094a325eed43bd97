"""A recorder that dies at any byte, on a disk as bad as disks may be: what was confirmed is there, in order, once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from rvq.errors import JournalError
from rvq.journal import Journal, Writer, verify
from rvq.sim.storage import Crashed, MemoryStorage
from tests.journal.samples import HOUR, NOW, ROOT, entry, open_journal, read

SEEDS = range(400)
LABELS = ("work", "orders.eu")


class Recorder:
    """One life of a recorder, and what it may rely on."""

    def __init__(self, id: int, random: Random) -> None:
        self.id = id
        self.random = random
        self.now = NOW
        self.added: dict[str, list[int]] = {label: [] for label in LABELS}
        self.confirmed = dict.fromkeys(LABELS, 0)
        self._count_at: dict[tuple[str, int], int] = {}

    def live(self, storage: MemoryStorage) -> None:
        """Until it dies, or ends well."""
        journal = open_journal(storage, recorder=self.id, segment_bytes=self.random.choice([6_000, 20_000, 1 << 28]))
        try:
            for _ in range(self.random.randrange(1, 40)):
                self.step(journal)
            if self.random.random() < 0.5:
                self.end(journal)
        except JournalError:
            pass  # a disk that stays broken: it gives up
        finally:
            for label in LABELS:
                self.note(journal.writer(label))

    def step(self, journal: Journal) -> None:
        random = self.random
        self.now += random.choice([0.0, 1.0, 1.0, HOUR * random.random(), -HOUR])
        writer = journal.writer(random.choice(LABELS))
        added = self.added[writer.label]
        for _ in range(random.randrange(4)):
            added.append(len(added) + 1)
            writer.add(entry(len(added), size=random.choice([8, 100, 3000, 70_000])))
        batch = writer.prepare()
        self._count_at[writer.label, batch.number] = len(added)
        for _ in range(random.choice([1, 1, 2])):
            try:
                writer.commit(self.now, batch, sync=random.random() < 0.8)
            except JournalError:
                continue
            break
        self.note(writer)

    def end(self, journal: Journal) -> None:
        try:
            journal.close(self.now)
        except JournalError:
            journal.abort()

    def note(self, writer: Writer) -> None:
        if writer.synced:
            self.confirmed[writer.label] = self._count_at[writer.label, writer.synced]


def sometimes(random: Random, chance: float) -> Callable[[str, Path], bool]:
    return lambda _what, _path: random.random() < chance


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_confirmed_is_there_in_order_once_and_nothing_is_invented(seed: int) -> None:
    random = Random(seed)
    storage = MemoryStorage(random)
    recorders: list[Recorder] = []
    for id in range(1, random.randrange(2, 6)):
        recorders.append(recorder := Recorder(id, random))
        if random.random() < 0.3:
            storage.failing = sometimes(random, random.choice([0.02, 0.2]))
        if random.random() < 0.2:
            storage.capacity = random.randrange(200_000)
        storage.die_after(random.randrange(1, random.choice([20, 200, 2000])))
        with suppress(Crashed, JournalError):
            recorder.live(storage)
        storage.failing, storage.capacity = sometimes(random, 0.0), None
        random.choice([storage.crash, storage.crash, storage.kill])()

    open_journal(storage, recorder=100).abort()
    verified = verify(ROOT, storage=storage)
    assert verified.is_good, verified.findings
    found = {label: read(storage, label) for label in LABELS}
    for recorder in recorders:
        for label in LABELS:
            numbers = found[label].get(f"{recorder.id:016x}", [])
            assert numbers == recorder.added[label][: len(numbers)]
            assert len(numbers) >= recorder.confirmed[label]
    assert set(found["work"]) | set(found["orders.eu"]) <= {f"{recorder.id:016x}" for recorder in recorders}


def test_these_seeds_see_confirmed_entries() -> None:
    """The test above would pass if nothing were ever written."""
    storage = MemoryStorage(Random(5))
    recorder = Recorder(1, Random(5))
    recorder.live(storage)
    assert sum(recorder.confirmed.values()) > 10
