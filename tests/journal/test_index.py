"""The sparse index: finds what a walk would find, and is never believed."""

from __future__ import annotations

import pytest

from rvq.journal import JournalReader, SegmentName
from rvq.journal.index import MARK_EVERY_BYTES, START, find_mark, read_marks
from rvq.journal.layout import HEADER_BYTES, INDEX, MARK
from rvq.journal.places import index_path
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import NOW, PART, ROOT, disk, read, write

NAME = SegmentName(PART, 1, 1)
PATH = ROOT / "label=work" / str(NAME)
INDEX_PATH = index_path(PATH)
BLOCK_BYTES = 64 + 24 + 10_000
BLOCKS = 60


def filled() -> MemoryStorage:
    storage = disk()
    write(storage, range(BLOCKS), size=10_000)
    return storage


def mark_for(storage: MemoryStorage, row: int) -> int:
    with JournalReader(ROOT, storage=storage).segment("work", NAME) as segment:
        limit = segment.head.watermark.extent.length
        return find_mark(storage, segment, limit, lambda mark: mark.row <= row).row


def test_there_is_a_mark_about_every_64_kib_and_it_points_to_a_block() -> None:
    storage = filled()
    with JournalReader(ROOT, storage=storage).segment("work", NAME) as segment:
        marks = read_marks(storage, segment)
        assert marks
        assert len(marks) == BLOCKS * BLOCK_BYTES // (MARK_EVERY_BYTES + BLOCK_BYTES // 2)
        for mark in marks:
            assert mark is not None
            assert segment.header_at(mark.position).row == mark.row
            assert mark.time == NOW + mark.row - 1


def test_a_mark_is_close_before_what_is_sought() -> None:
    storage = filled()
    for row in range(BLOCKS):
        assert 0 <= row - mark_for(storage, row) <= MARK_EVERY_BYTES // BLOCK_BYTES + 1


def test_without_an_index_everything_is_found_by_walking() -> None:
    storage = filled()
    storage.remove(INDEX_PATH)
    assert mark_for(storage, 30) == START.row
    found = JournalReader(ROOT, storage=storage).seek_row("work", NAME, 30)
    assert (found.row, found.position) == (30, HEADER_BYTES + 30 * BLOCK_BYTES)


def index_bytes() -> range:
    return range(INDEX.size + 7 * MARK.size)


@pytest.mark.parametrize("place", [*index_bytes()][::3])
def test_a_flipped_bit_in_the_index_changes_nothing_that_is_found(place: int) -> None:
    storage = filled()
    storage.flip(INDEX_PATH, place, 5)
    reader = JournalReader(ROOT, storage=storage)
    for row in range(0, BLOCKS, 7):
        assert reader.seek_row("work", NAME, row).row == row
        assert reader.seek_time("work", NOW + row)[f"{1:016x}"].row == row


def test_an_index_of_another_segment_is_not_used() -> None:
    storage = filled()
    other = disk()
    write(other, range(BLOCKS), recorder=2, size=10_000)
    theirs = other.open(index_path(ROOT / "label=work" / str(NAME._replace(recorder=2))))
    storage.open(INDEX_PATH, write=True).write(0, theirs.read(0, 10_000))
    assert mark_for(storage, 50) == 0


def test_a_mark_that_points_elsewhere_is_not_used() -> None:
    storage = filled()
    with JournalReader(ROOT, storage=storage).segment("work", NAME) as segment:
        seed = segment.head.seed
    wrong = MARK.pack(seed, 40, HEADER_BYTES + 39 * BLOCK_BYTES, 0.0, b"")
    storage.open(INDEX_PATH, write=True).write(INDEX.size, wrong * 20)
    assert mark_for(storage, 50) == 0
    assert JournalReader(ROOT, storage=storage).seek_row("work", NAME, 50).row == 50


def test_an_index_that_cannot_be_written_fails_no_commit() -> None:
    storage = disk()
    storage.failing = lambda _what, path: path.suffix == ".idx"
    journal = write(storage, range(BLOCKS), size=10_000)
    journal.close(NOW)
    assert read(storage) == {f"{1:016x}": list(range(BLOCKS))}
