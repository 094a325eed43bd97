"""Reading a segment from front to back: what is good, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from rvq.errors import JournalDamaged, JournalError
from rvq.journal import JournalReader, SegmentName, scan
from rvq.journal.layout import HEADER_BYTES, SEGMENT
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import NOW, PART, ROOT, disk, entry, number_of, open_journal, write

NAME = SegmentName(PART, 1, 1)
BLOCK_BYTES = 64 + 24 + 24
PATH = ROOT / "label=work" / str(NAME)


def numbers(storage: MemoryStorage, *, check: bool = True) -> list[int]:
    reader = JournalReader(ROOT, storage=storage, check=check)
    with reader.segment("work", NAME) as segment:
        limit = segment.head.watermark.extent.length
        blocks = segment.blocks(HEADER_BYTES, limit, check=check, row=0)
        return [number_of(found) for block in blocks for found in block.entries()]


def test_blocks_come_in_order_whatever_a_read_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = disk()
    journal = open_journal(storage)
    for number in range(40):
        journal.writer("work").add(entry(number, size=8 + 137 * number % 900))
        journal.commit(NOW)
    for chunk in (64, 65, 200, 1000, 1001, 5000, 1 << 20):
        monkeypatch.setattr(scan, "CHUNK_BYTES", chunk)
        assert numbers(storage) == list(range(40))


def test_a_flipped_bit_in_a_block_is_refused_with_its_place() -> None:
    storage = disk()
    write(storage, range(3))
    storage.flip(PATH, HEADER_BYTES + BLOCK_BYTES + 70)
    with pytest.raises(JournalDamaged, match="the checksum of a block is wrong") as error:
        numbers(storage)
    assert (error.value.path, error.value.position) == (str(PATH), HEADER_BYTES + BLOCK_BYTES)


def test_checksums_of_bodies_can_be_skipped_and_those_of_headers_cannot() -> None:
    storage = disk()
    write(storage, range(3))
    storage.flip(PATH, HEADER_BYTES + BLOCK_BYTES - 10)
    assert numbers(storage, check=False) == [0, 1, 2]
    storage.flip(PATH, HEADER_BYTES + BLOCK_BYTES + 10)
    with pytest.raises(JournalDamaged, match="no block begins here"):
        numbers(storage, check=False)


def test_a_file_that_ends_early_is_refused() -> None:
    storage = disk()
    write(storage, range(3))
    storage.kill()
    storage.open(PATH, write=True).truncate(HEADER_BYTES + 200)
    with pytest.raises(JournalDamaged, match="the file ends within a block"):
        numbers(storage)


def test_a_segment_of_a_newer_version_is_one_sentence() -> None:
    storage = disk()
    write(storage, range(3))
    storage.kill()
    file = storage.open(PATH, write=True)
    data = bytearray(file.read(0, SEGMENT.size))
    data[8] = 2
    data[-4:] = crc32(data[:-4]).to_bytes(4, "little")
    file.write(0, bytes(data))
    with pytest.raises(JournalError, match="journal format 2; this one reads up to 1") as error:
        numbers(storage)
    assert not isinstance(error.value, JournalDamaged)


@pytest.mark.parametrize("place", [0, 8, 16, 24, 40, 60, 400, 1000, 1023])
def test_a_flipped_bit_in_the_header_is_refused(place: int) -> None:
    storage = disk()
    write(storage, range(3))
    storage.flip(PATH, place)
    with pytest.raises(JournalDamaged, match="no header"):
        numbers(storage)


def test_a_flipped_bit_in_one_watermark_leaves_the_other() -> None:
    for place in (1024, 2048):
        storage = disk()
        write(storage, range(3))
        storage.flip(PATH, place + 20)
        assert numbers(storage) in ([0, 1], [0, 1, 2])
    storage.flip(PATH, 1024 + 20)
    with pytest.raises(JournalDamaged, match="both watermarks are torn"):
        numbers(storage)


def test_rows_that_do_not_follow_are_refused() -> None:
    storage = disk()
    write(storage, range(3))
    with (
        JournalReader(ROOT, storage=storage).segment("work", NAME) as segment,
        pytest.raises(JournalDamaged, match="begins with row 0, not 5"),
    ):
        list(segment.blocks(HEADER_BYTES, HEADER_BYTES + BLOCK_BYTES, row=5))


def test_a_limit_within_a_block_is_refused() -> None:
    storage = disk()
    write(storage, range(3))
    with (
        JournalReader(ROOT, storage=storage).segment("work", NAME) as segment,
        pytest.raises(JournalDamaged, match="a block ends behind what is there"),
    ):
        list(segment.blocks(HEADER_BYTES, HEADER_BYTES + 100))


def test_the_place_of_damage_is_in_its_words() -> None:
    error = JournalDamaged(Path("x"), 1_000_000, "the checksum of a block is wrong")
    assert str(error).startswith("x: damaged at byte 1,000,000: the checksum of a block is wrong. Nothing was changed")
