"""Dropping old parts: as a whole, never one in use."""

from __future__ import annotations

import pytest

from rvq.errors import JournalError
from rvq.journal import JournalReader, expire
from rvq.journal.journal import Journal
from rvq.journal.places import part_end
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import HOUR, NOW, PART, ROOT, disk, entry, open_journal, read

LATER = "2026092115"
CHAIN = f"{1:016x}"


def two_hours(storage: MemoryStorage) -> Journal:
    journal = open_journal(storage)
    for hour in range(2):
        journal.writer("work").add(entry(hour))
        journal.commit(NOW + hour * HOUR)
    return journal


def parts(storage: MemoryStorage) -> list[str]:
    return JournalReader(ROOT, storage=storage).parts("work")


def test_parts_go_when_their_hour_was_over_and_not_before() -> None:
    storage = disk()
    two_hours(storage)
    assert expire(ROOT, part_end(PART) - 1, storage=storage) == []
    assert expire(ROOT, part_end(PART), storage=storage) == [ROOT / "label=work" / f"part={PART}"]
    assert parts(storage) == [LATER]
    assert read(storage) == {CHAIN: [1]}


def test_a_part_in_use_stays_however_old() -> None:
    storage = disk()
    journal = two_hours(storage)
    expire(ROOT, NOW + 1000 * HOUR, storage=storage)
    assert parts(storage) == [LATER]
    journal.close(NOW)
    expire(ROOT, NOW + 1000 * HOUR, storage=storage)
    assert storage.list(ROOT) == ["journal.json"], "empty folders go too"


def test_what_a_dead_recorder_left_open_goes_with_its_part() -> None:
    storage = disk()
    two_hours(storage)
    storage.kill()
    expire(ROOT, NOW + 1000 * HOUR, storage=storage)
    assert storage.list(ROOT) == ["journal.json"]


def test_one_segment_in_use_keeps_the_whole_part() -> None:
    storage = disk()
    two_hours(storage).close(NOW)
    journal = open_journal(storage, recorder=2)
    journal.writer("work").add(entry(1))
    journal.commit(NOW)
    expire(ROOT, NOW + 1000 * HOUR, storage=storage)
    assert parts(storage) == [PART]
    assert set(read(storage)) == {CHAIN, f"{2:016x}"}


def test_an_expiry_that_was_broken_off_is_finished_by_the_next() -> None:
    for steps in range(1, 40):
        storage = disk(steps)
        two_hours(storage).close(NOW)
        storage.die_after(steps)
        try:
            expire(ROOT, part_end(PART), storage=storage)
        except Exception as error:  # Crashed, at whichever step
            assert type(error).__name__ == "Crashed"
            storage.crash()
        storage.kill()
        assert read(storage)[CHAIN][-1] == 1
        expire(ROOT, part_end(PART), storage=storage)
        assert parts(storage) == [LATER]


def test_expiring_what_is_no_journal_is_one_sentence() -> None:
    storage = disk()
    storage.make_folder(ROOT / "label=work" / f"part={PART}")
    with pytest.raises(JournalError, match="not a journal"):
        expire(ROOT, NOW + HOUR, storage=storage)
    assert storage.list(ROOT) == ["label=work"]
