"""What a dead recorder left open: the torn tail is cut, damage is refused, and nothing of the living is touched."""

from __future__ import annotations

import pytest

from rvq.errors import JournalDamaged, JournalError
from rvq.journal import JournalReader, SegmentName, verify
from rvq.journal.journal import Journal
from rvq.journal.layout import HEADER_BYTES
from rvq.journal.places import new_path
from rvq.journal.recovery import recover
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import NOW, PART, ROOT, disk, entry, open_journal, read, write

NAME = SegmentName(PART, 1, 1)
PATH = ROOT / "label=work" / str(NAME)
CHAIN = f"{1:016x}"
BLOCK_BYTES = 112


def left_open(numbers: range, unsynced: int = 0, seed: int = 1) -> MemoryStorage:
    """A disk on which a recorder died, with so many entries written and not synced."""
    storage = disk(seed)
    journal = write(storage, numbers)
    for number in range(unsynced):
        journal.writer("work").add(entry(100 + number))
        journal.commit(NOW, sync=False)
    storage.kill()
    return storage


def test_a_segment_left_open_is_sealed_with_all_that_was_confirmed() -> None:
    storage = left_open(range(5))
    [found] = recover(storage, ROOT).recovered
    assert (found.path, found.extent.rows, found.cut_bytes) == (PATH, 5, 0)
    assert read(storage) == {CHAIN: [0, 1, 2, 3, 4]}
    assert verify(ROOT, storage=storage).findings == []
    assert recover(storage, ROOT).recovered == []


def test_complete_blocks_behind_the_watermark_are_kept() -> None:
    storage = left_open(range(2), unsynced=2)
    assert read(storage) == {CHAIN: [0, 1]}
    recover(storage, ROOT)
    assert read(storage) == {CHAIN: [0, 1, 100, 101]}


@pytest.mark.parametrize("cut", [1, 47, 48, 111])
def test_a_torn_tail_is_cut(cut: int) -> None:
    storage = left_open(range(2), unsynced=2)
    storage.open(PATH, write=True).truncate(HEADER_BYTES + 4 * BLOCK_BYTES - cut)
    [found] = recover(storage, ROOT).recovered
    assert found.cut_bytes == BLOCK_BYTES - cut
    assert read(storage) == {CHAIN: [0, 1, 100]}
    assert verify(ROOT, storage=storage).findings == []


def test_a_hole_behind_the_watermark_ends_the_segment_even_if_good_blocks_follow() -> None:
    storage = left_open(range(2), unsynced=3)
    storage.flip(PATH, HEADER_BYTES + 3 * BLOCK_BYTES + 80)
    recover(storage, ROOT)
    assert read(storage) == {CHAIN: [0, 1, 100]}


@pytest.mark.parametrize("place", range(0, 3 * BLOCK_BYTES, 5))
def test_a_flipped_bit_below_the_watermark_is_refused_and_nothing_is_changed(place: int) -> None:
    storage = left_open(range(3))
    storage.flip(PATH, HEADER_BYTES + place)
    before = storage.open(PATH).read(0, 1 << 20)
    [damage] = recover(storage, ROOT).damaged
    assert damage.path == str(PATH)
    assert damage.position == HEADER_BYTES + place // BLOCK_BYTES * BLOCK_BYTES
    assert storage.open(PATH).read(0, 1 << 20) == before


def test_a_file_shorter_than_its_watermark_is_refused() -> None:
    storage = left_open(range(3))
    storage.open(PATH, write=True).truncate(HEADER_BYTES + 2 * BLOCK_BYTES)
    [damage] = recover(storage, ROOT).damaged
    assert "was synced up to" in str(damage)


def test_opening_a_journal_refuses_damage_unless_told_to_leave_it() -> None:
    storage = left_open(range(3))
    storage.flip(PATH, HEADER_BYTES + 100)
    with pytest.raises(JournalDamaged):
        open_journal(storage, recorder=2)
    journal = Journal.open(ROOT, group="journal", recorder=2, storage=storage, leave_damaged=True)
    assert len(journal.recovery.damaged) == 1
    journal.writer("work").add(entry(7))
    journal.commit(NOW)
    reader = JournalReader(ROOT, storage=storage)
    assert len(list(reader.entries("work", reader.head("work")[f"{2:016x}"]))) == 1


def test_the_segment_of_a_living_recorder_is_left_alone() -> None:
    storage = disk()
    journal = write(storage, range(3))
    assert recover(storage, ROOT).recovered == []
    journal.writer("work").add(entry(3))
    journal.commit(NOW)
    assert read(storage) == {CHAIN: [0, 1, 2, 3]}


def test_a_death_within_a_recovery_is_harmless() -> None:
    for steps in range(1, 40):
        for kill in (True, False):
            storage = left_open(range(3), unsynced=2)
            storage.die_after(steps)
            try:
                recover(storage, ROOT)
            except Exception as error:  # Crashed, at whichever step
                assert type(error).__name__ == "Crashed"
                storage.kill() if kill else storage.crash()
            storage.kill()
            recover(storage, ROOT)
            assert verify(ROOT, storage=storage).is_good
            found = read(storage)[CHAIN]
            assert found == [0, 1, 2, 100, 101][: len(found)] and len(found) >= 3


def test_a_segment_that_never_got_its_name_is_removed() -> None:
    storage = left_open(range(1))
    storage.create(new_path(PATH)).write(0, b"half a header")
    taken = storage.create(new_path(PATH.with_name("x.rvqj")))
    assert taken.lock()
    recover(storage, ROOT)
    assert storage.list(PATH.parent) == [PATH.name, f"{PATH.name}.idx", "x.rvqj.new"]


@pytest.mark.parametrize("seed", range(40))
def test_a_disk_that_refuses_is_one_sentence_and_the_next_try_goes_on(seed: int) -> None:
    storage = left_open(range(3), unsynced=1, seed=seed)
    storage.failing = lambda what, _path: what == "sync"
    with pytest.raises(JournalError, match=r"cannot be recovered \(Input/output error\): make room"):
        recover(storage, ROOT)
    storage.failing = lambda _what, _path: False
    storage.kill()
    recover(storage, ROOT)
    storage.crash()
    assert read(storage) == {CHAIN: [0, 1, 2, 100]}, "what a failed sync let go of is written again"


def test_a_recovered_segment_has_its_index() -> None:
    storage = disk()
    write(storage, range(60), size=10_000)
    storage.kill()
    storage.remove(PATH.with_name(f"{PATH.name}.idx"))
    recover(storage, ROOT)
    assert verify(ROOT, storage=storage).findings == []
    assert storage.open(PATH.with_name(f"{PATH.name}.idx")).size() == 32 + 8 * 32
