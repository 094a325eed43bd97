"""What the tests of the journal share: entries that can be told apart, a disk in memory, and reading all of a label."""

from __future__ import annotations

from pathlib import Path
from random import Random

from rvq.journal import Entry, EntryKind, Journal, JournalReader, Storage
from rvq.sim.storage import MemoryStorage

ROOT = Path("/disk/journal")
NOW = 1_790_000_000.0
"""A wall clock time in the hour 2026092114."""
PART = "2026092114"
HOUR = 3600.0


def entry(number: int, *, size: int = 20, rows: int = 1, heard_at: float | None = None) -> Entry:
    """An entry whose payload begins with its number."""
    payload = number.to_bytes(8, "big") + bytes(max(0, size - 8))
    when = NOW + number if heard_at is None else heard_at
    return Entry(EntryKind.FRAME, 0, ("127.0.0.1", 5000 + number % 1000), when, rows, payload)


def number_of(found: Entry) -> int:
    return int.from_bytes(found.payload[:8], "big")


def disk(seed: int = 1) -> MemoryStorage:
    return MemoryStorage(Random(seed))


def open_journal(storage: Storage, *, recorder: int = 1, root: Path = ROOT, segment_bytes: int = 1 << 28) -> Journal:
    return Journal.open(root, group="journal", recorder=recorder, storage=storage, segment_bytes=segment_bytes)


def write(storage: Storage, numbers: range, *, recorder: int = 1, label: str = "work", size: int = 20) -> Journal:
    """A journal with these entries, one block each, still open."""
    journal = open_journal(storage, recorder=recorder)
    writer = journal.writer(label)
    for number in numbers:
        writer.add(entry(number, size=size))
        writer.commit(NOW)
    return journal


def read(storage: Storage, label: str = "work", root: Path = ROOT) -> dict[str, list[int]]:
    """The numbers of all entries of a label, by recorder."""
    reader = JournalReader(root, storage=storage)
    return {
        chain: [number_of(found) for found in reader.entries(label, start)]
        for chain, start in reader.head(label).items()
    }
