"""The whole journal looked at: everything that can be wrong with it is found, and nothing else."""

from __future__ import annotations

import pytest

from rvq.journal import SegmentName, verify
from rvq.journal.layout import HEADER_BYTES
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import NOW, PART, ROOT, disk, entry, open_journal

NAME = SegmentName(PART, 1, 1)
PATH = ROOT / "label=work" / str(NAME)
INDEX_PATH = PATH.with_name(f"{PATH.name}.idx")
MEANT = [*range(564), 1016, 1020, 1023, *range(HEADER_BYTES, HEADER_BYTES + 3000, 7)]
"""Bytes of a sealed segment in which a changed bit must be found: some of each structure."""


def sealed() -> MemoryStorage:
    storage = disk()
    journal = open_journal(storage, segment_bytes=100_000)
    for number in range(30):
        journal.writer("work").add(entry(number, size=8000))
        journal.commit(NOW)
    journal.close(NOW)
    return storage


def words(storage: MemoryStorage) -> list[str]:
    return [finding.words for finding in verify(ROOT, storage=storage).findings]


def test_a_good_journal_has_no_findings_and_is_counted() -> None:
    verified = verify(ROOT, storage=sealed())
    assert verified.findings == [] and verified.is_good
    assert (verified.segments, verified.blocks, verified.entries, verified.rows) == (3, 30, 30, 30)
    assert verified.bytes == 30 * (64 + 24 + 8000)


def test_a_journal_that_is_being_written_has_no_findings() -> None:
    storage = disk()
    journal = open_journal(storage)
    journal.writer("work").add(entry(1))
    journal.commit(NOW)
    journal.writer("work").add(entry(2))
    journal.commit(NOW, sync=False)
    assert words(storage) == []


def test_a_segment_left_open_is_harmless() -> None:
    storage = disk()
    journal = open_journal(storage)
    journal.writer("work").add(entry(1))
    journal.commit(NOW)
    storage.kill()
    assert words(storage) == ["was left open: the next recorder seals it"]
    assert verify(ROOT, storage=storage).is_good


@pytest.mark.parametrize("bit", [0, 7])
def test_a_changed_bit_in_any_kind_of_place_is_found(bit: int) -> None:
    storage = sealed()
    size = storage.open(PATH).size()
    for place in [*MEANT, *range(size - 64, size)]:
        storage.flip(PATH, place, bit)
        verified = verify(ROOT, storage=storage)
        assert not verified.is_good, place
        assert verified.findings[0].path == PATH
        storage.flip(PATH, place, bit)
    assert words(storage) == []


def test_a_file_cut_or_longer_is_found() -> None:
    storage = sealed()
    size = storage.open(PATH).size()
    storage.open(PATH, write=True).write(size, b"x")
    assert words(storage) == ["goes on behind its seal"]
    storage.open(PATH, write=True).truncate(size - 1)
    assert words(storage) == ["is sealed and has no seal of that length"]
    storage.open(PATH, write=True).truncate(size - 65)
    assert words(storage) == [f"ends here, and was synced up to {size - 64:,}"]
    assert not verify(ROOT, storage=storage).is_good


def test_a_missing_segment_is_found() -> None:
    storage = sealed()
    storage.remove(ROOT / "label=work" / str(NAME._replace(counter=2)))
    [found] = words(storage)
    assert found.startswith("segments are missing between this one and part=")


def test_an_older_copy_of_a_segment_is_found() -> None:
    storage = disk()
    journal = open_journal(storage, segment_bytes=10_000)
    journal.writer("work").add(entry(9, size=3000))
    journal.commit(NOW)
    old = storage.open(PATH).read(0, 1 << 20)
    for number in range(4):
        journal.writer("work").add(entry(number, size=3000))
        journal.commit(NOW)
    journal.close(NOW)
    file = storage.open(PATH, write=True)
    file.truncate(0)
    file.write(0, old)
    assert not verify(ROOT, storage=storage).is_good


def test_a_bad_index_is_harmless_and_told() -> None:
    storage = sealed()
    storage.flip(INDEX_PATH, 40)
    assert words(storage) == ["mark 0 of its index is not good: finding rows and times takes longer"]
    storage.remove(INDEX_PATH)
    assert words(storage) == ["has no index: finding rows and times takes longer"]
    assert verify(ROOT, storage=storage).is_good


def test_a_segment_of_another_group_is_found() -> None:
    storage = sealed()
    marker = storage.create(ROOT / "journal.json")
    marker.write(0, b'{"format": "rvq journal", "version": 1, "group": "copy"}')
    assert words(storage)[0] == "is of the group journal, in a journal of copy"
