"""Writing one label: batches, rolling, and every way a commit can fail and be tried again."""

from __future__ import annotations

import threading

import pytest

from rvq.errors import JournalError
from rvq.journal import JournalReader, Position, SegmentName, verify
from rvq.journal.journal import Journal
from rvq.journal.writer import Writer
from rvq.limits import JOURNAL_UNSYNCED_BYTES
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import HOUR, NOW, PART, ROOT, disk, entry, open_journal, read

CHAIN = f"{1:016x}"


def opened(storage: MemoryStorage, segment_bytes: int = 1 << 28) -> tuple[Journal, Writer]:
    journal = open_journal(storage, segment_bytes=segment_bytes)
    return journal, journal.writer("work")


def numbers(storage: MemoryStorage) -> list[int]:
    return read(storage).get(CHAIN, [])


def names(storage: MemoryStorage) -> list[SegmentName]:
    return JournalReader(ROOT, storage=storage).segments("work")


def test_what_is_committed_is_there_to_read_and_what_is_added_is_not() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    assert writer.added_bytes == 20
    end = writer.commit(NOW)
    writer.add(entry(2))
    assert numbers(storage) == [1]
    assert end == Position(f"part={PART}/{CHAIN}-00000001.rvqj", 4096 + 64 + 24 + 24, 1)
    assert JournalReader(ROOT, storage=storage).tail("work") == {CHAIN: end}


def test_one_commit_is_one_sync_for_all_that_was_added() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(0))
    writer.commit(NOW)
    before = storage.syncs
    for number in range(1, 100):
        writer.add(entry(number))
    writer.commit(NOW)
    assert storage.syncs == before + 1
    assert numbers(storage) == list(range(100))


def test_a_commit_of_nothing_writes_nothing() -> None:
    storage = disk()
    _, writer = opened(storage)
    assert writer.commit(NOW) is None
    assert storage.list(ROOT) == ["journal.json"]


def test_without_a_sync_nothing_counts_until_the_next_one() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    batch = writer.prepare()
    assert writer.commit(NOW, batch, sync=False) is None
    assert (writer.synced, numbers(storage)) == (0, [])
    writer.commit(NOW)
    assert (writer.synced, numbers(storage)) == (batch.number, [1])


def test_what_is_not_synced_is_bounded() -> None:
    storage = disk()
    _, writer = opened(storage)
    half = entry(1, size=JOURNAL_UNSYNCED_BYTES // 4 + 1)
    for _ in range(4):
        assert writer.synced == 0
        writer.add(half)
        writer.commit(NOW, sync=False)
    assert writer.synced == 4


def test_a_prepared_batch_is_committed_in_another_thread_while_more_is_added() -> None:
    storage = disk()
    _, writer = opened(storage)
    added = 0
    for _ in range(50):
        writer.add(entry(added))
        added += 1
        batch = writer.prepare()
        thread = threading.Thread(target=writer.commit, args=(NOW, batch))
        thread.start()
        writer.add(entry(added))
        added += 1
        thread.join()
        assert writer.synced == batch.number
    writer.commit(NOW)
    assert numbers(storage) == list(range(added))


def test_batches_are_written_in_their_order_whichever_is_asked_for() -> None:
    storage = disk()
    _, writer = opened(storage)
    batches = []
    for number in range(3):
        writer.add(entry(number))
        batches.append(writer.prepare())
    writer.commit(NOW, batches[1])
    assert (writer.synced, numbers(storage)) == (2, [0, 1])
    writer.commit(NOW, batches[0])
    writer.commit(NOW, batches[1])
    assert numbers(storage) == [0, 1]
    writer.commit(NOW, batches[2])
    assert numbers(storage) == [0, 1, 2]


def test_a_full_segment_is_sealed_and_the_next_one_begins() -> None:
    storage = disk()
    journal, writer = opened(storage, segment_bytes=5000)
    for number in range(20):
        writer.add(entry(number, size=300))
        writer.commit(NOW)
    assert [name.counter for name in names(storage)] == list(range(1, len(names(storage)) + 1))
    assert len(names(storage)) > 3
    assert numbers(storage) == list(range(20))
    journal.close(NOW)
    assert verify(ROOT, storage=storage).findings == []


def test_another_hour_is_another_part_and_a_clock_put_back_is_not() -> None:
    storage = disk()
    _, writer = opened(storage)
    for number, now in enumerate([NOW, NOW + HOUR, NOW, NOW + HOUR]):
        writer.add(entry(number))
        writer.commit(now)
    assert [(name.part, name.counter) for name in names(storage)] == [(PART, 1), ("2026092115", 2)]
    assert numbers(storage) == [0, 1, 2, 3]


def test_an_hour_that_ends_with_nothing_to_write_is_sealed() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    end = writer.commit(NOW)
    assert writer.commit(NOW + HOUR) == end
    [finding] = [*verify(ROOT, storage=storage).findings, None]
    assert finding is None, "an open segment without a recorder would be a finding"


def test_a_full_disk_says_so_and_the_same_batch_can_be_tried_again() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    writer.commit(NOW)
    writer.add(entry(2, size=5000))
    batch = writer.prepare()
    storage.capacity = 6000
    with pytest.raises(JournalError, match="No space left on device: make room") as error:
        writer.commit(NOW, batch)
    assert error.value.path.endswith("-00000001.rvqj")
    assert (writer.synced, numbers(storage)) == (1, [1])
    with pytest.raises(JournalError):
        writer.commit(NOW, batch)
    storage.capacity = None
    writer.commit(NOW, batch)
    assert (writer.synced, numbers(storage)) == (2, [1, 2])
    assert len(names(storage)) == 1


def test_after_a_failed_commit_the_next_one_has_it_all() -> None:
    storage = disk()
    _, writer = opened(storage)
    storage.capacity = 0
    for number in range(3):
        writer.add(entry(number))
        with pytest.raises(JournalError):
            writer.commit(NOW)
    storage.capacity = None
    writer.commit(NOW)
    assert numbers(storage) == [0, 1, 2]


def test_after_a_failed_sync_the_file_is_never_written_again() -> None:
    storage = disk()
    journal, writer = opened(storage)
    writer.add(entry(1))
    writer.commit(NOW)
    writer.add(entry(2))
    writer.commit(NOW, sync=False)
    writer.add(entry(3))
    storage.failing = lambda what, path: what == "sync" and path.suffix == ".rvqj"
    with pytest.raises(JournalError, match="Input/output error"):
        writer.commit(NOW)
    assert writer.synced == 1
    storage.failing = lambda _what, _path: False
    writer.commit(NOW)
    assert [name.counter for name in names(storage)] == [1, 2]
    assert (writer.synced, numbers(storage)) == (3, [1, 2, 3])
    journal.close(NOW)
    open_journal(storage, recorder=2)
    assert numbers(storage) == [1, 2, 3]
    assert verify(ROOT, storage=storage).findings == []


def test_a_segment_that_was_abandoned_is_not_recovered_before_the_next_one_says_where_it_ends() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    storage.failing = lambda what, path: what == "sync" and path.suffix == ".rvqj"
    with pytest.raises(JournalError):
        writer.commit(NOW)
    storage.failing = lambda _what, _path: False
    assert open_journal(storage, recorder=2).recovery.recovered == []
    writer.commit(NOW)
    assert len(open_journal(storage, recorder=3).recovery.recovered) == 1
    assert numbers(storage) == [1]


def test_a_segment_that_could_not_be_made_is_made_at_the_next_try_in_the_same_place() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    storage.failing = lambda what, path: what == "folder" and "part=" in path.name
    with pytest.raises(JournalError):
        writer.commit(NOW)
    storage.failing = lambda _what, _path: False
    writer.commit(NOW + HOUR)
    assert names(storage) == [SegmentName(PART, 1, 1)]
    assert numbers(storage) == [1]


def test_a_closed_writer_refuses() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    writer.close(NOW)
    writer.close(NOW)
    with pytest.raises(JournalError, match="this writer is closed"):
        writer.commit(NOW)
    assert numbers(storage) == [1]


def test_an_entry_that_does_not_fit_is_refused_and_the_others_are_written() -> None:
    storage = disk()
    _, writer = opened(storage)
    writer.add(entry(1))
    with pytest.raises(ValueError):
        writer.add(entry(2, rows=-1))
    writer.commit(NOW)
    assert numbers(storage) == [1]
