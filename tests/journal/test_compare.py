"""Two copies of one history."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rvq.journal import Entry, Ids, JournalReader, compare
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import NOW, disk, entry, number_of, open_journal

A, B = Path("/disk/a"), Path("/disk/b")


def ids(found: Entry) -> Iterable[Ids]:
    """Ten messages in each entry, of one of two senders."""
    number = number_of(found)
    return [Ids(number % 2, number // 2 * 10 + 1, number // 2 * 10 + 10)] if found.rows else []


def record(storage: MemoryStorage, root: Path, numbers: Iterable[int], recorder: int = 1, label: str = "work") -> None:
    journal = open_journal(storage, root=root, recorder=recorder)
    for number in numbers:
        journal.writer(label).add(entry(number, rows=10))
    journal.writer(label).add(entry(999, rows=0))
    journal.close(NOW)


def readers(storage: MemoryStorage) -> tuple[JournalReader, JournalReader]:
    return JournalReader(A, storage=storage), JournalReader(B, storage=storage)


def test_copies_are_the_same_whoever_recorded_which_part() -> None:
    storage = disk()
    record(storage, A, range(100))
    record(storage, B, range(0, 100, 3), recorder=1)
    record(storage, B, [number for number in range(100) if number % 3], recorder=2)
    compared = compare(*readers(storage), ids)
    assert compared.is_same
    assert compared.both == 1000


def test_what_one_copy_lacks_is_named() -> None:
    storage = disk()
    record(storage, A, [number for number in range(20) if number != 4])
    record(storage, B, [number for number in range(20) if number not in (7, 9)])
    record(storage, B, [0], label="other")
    compared = compare(*readers(storage), ids)
    assert compared.only_a == [("work", Ids(1, 31, 50))]
    assert compared.only_b == [("other", Ids(0, 1, 10)), ("work", Ids(0, 21, 30))]
    assert compared.both == 170
    assert not compared.is_same
