"""Reading: ends, ranges, rows and times; what expired, what never was, and reading while it is written."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rvq.errors import JournalDamaged, JournalError, JournalExpired
from rvq.journal import Journal, JournalReader, Position, SegmentName, Writer
from rvq.journal.layout import HEADER_BYTES
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import HOUR, NOW, PART, ROOT, disk, entry, number_of, open_journal, write

CHAIN = f"{1:016x}"


def chained(storage: MemoryStorage, count: int = 60) -> Writer:
    """Entries of 3 rows each, in blocks of two, over several segments and two hours."""
    writer = open_journal(storage, segment_bytes=30_000).writer("work")
    for number in range(count):
        writer.add(entry(number, size=2000, rows=3))
        if number % 2:
            writer.commit(NOW + HOUR * (number >= count // 2))
    return writer


def numbers(reader: JournalReader, start: Position, end: Position | None = None) -> list[int]:
    return [number_of(found) for found in reader.entries("work", start, end)]


def reader_of(storage: MemoryStorage) -> JournalReader:
    return JournalReader(ROOT, storage=storage)


def test_a_label_is_read_from_head_to_tail_over_all_segments() -> None:
    storage = disk()
    end = chained(storage).commit(NOW)
    reader = reader_of(storage)
    assert len(reader.segments("work")) > 4
    assert reader.parts("work") == [PART, "2026092115"]
    assert reader.group == "journal"
    head, tail = reader.head("work"), reader.tail("work")
    assert tail == {CHAIN: end}
    assert numbers(reader, head[CHAIN], tail[CHAIN]) == list(range(60))
    assert numbers(reader, tail[CHAIN]) == []


def test_any_two_positions_are_a_range_and_ranges_fit_together() -> None:
    storage = disk()
    chained(storage)
    reader = reader_of(storage)
    head, tail = reader.head("work")[CHAIN], reader.tail("work")[CHAIN]
    now, all_numbers = head, []
    while now != tail:
        step = reader.advance("work", now, 20, tail)
        part = numbers(reader, now, step)
        assert 0 < len(part) * 3 <= 20
        all_numbers += part
        now = step
    assert all_numbers == list(range(60))


def test_advancing_takes_a_block_even_if_that_is_more_than_was_asked_for() -> None:
    storage = disk()
    chained(storage)
    reader = reader_of(storage)
    head, tail = reader.head("work")[CHAIN], reader.tail("work")[CHAIN]
    assert numbers(reader, head, reader.advance("work", head, 1, tail)) == [0, 1]
    assert reader.advance("work", head, 10**9, tail) == tail
    assert reader.advance("work", tail, 1, tail) == tail


def test_advancing_uses_the_index_and_finds_what_walking_finds() -> None:
    storage = disk()
    write(storage, range(100), size=9000)
    reader = reader_of(storage)
    head, tail = reader.head("work")[CHAIN], reader.tail("work")[CHAIN]
    for rows in (1, 7, 8, 9, 50, 99, 100, 101):
        assert reader.advance("work", head, rows, tail).row == min(rows, 100)


def test_blocks_without_rows_are_taken_along() -> None:
    storage = disk()
    writer = open_journal(storage).writer("work")
    for number, rows in enumerate([0, 5, 0, 5, 0]):
        writer.add(entry(number, rows=rows))
        writer.commit(NOW)
    reader = reader_of(storage)
    head, tail = reader.head("work")[CHAIN], reader.tail("work")[CHAIN]
    middle = reader.advance("work", head, 5, tail)
    assert numbers(reader, head, middle) == [0, 1, 2]
    assert numbers(reader, middle, tail) == [3, 4]


def test_rows_are_found_by_their_ordinal() -> None:
    storage = disk()
    chained(storage)
    reader = reader_of(storage)
    name = reader.segments("work")[1]
    for row in range(30):
        found = reader.seek_row("work", name, row)
        assert found.row <= row < found.row + 6
    assert reader.seek_row("work", str(name), 10**9) == reader.seek_row("work", name, 10**9)


def test_times_are_found_even_if_the_clock_was_put_back() -> None:
    storage = disk()
    writer = open_journal(storage).writer("work")
    heard = [10.0, 20.0, 30.0, 5.0, 25.0, 40.0]
    for number, when in enumerate(heard):
        for _ in range(10):
            writer.add(entry(number, size=9000, heard_at=when))
            writer.commit(NOW)
    reader = reader_of(storage)
    for when, first in [(0, 0), (10, 0), (10.5, 1), (30, 2), (31, 5), (40, 5)]:
        start = reader.seek_time("work", when)[CHAIN]
        assert numbers(reader, start)[0] == first
    assert reader.seek_time("work", 41) == reader.tail("work")


def test_times_are_found_over_segments() -> None:
    storage = disk()
    chained(storage)
    reader = reader_of(storage)
    for number in range(60):
        start = reader.seek_time("work", NOW + number)[CHAIN]
        assert numbers(reader, start)[0] == number - number % 2


def test_a_block_gives_columns_and_payloads_at_once() -> None:
    storage = disk()
    chained(storage)
    reader = reader_of(storage)
    block = next(reader.blocks("work", reader.head("work")[CHAIN]))
    assert (len(block), list(block.columns.rows), list(block.columns.end)) == (2, [3, 3], [2000, 4000])
    assert [len(payload) for payload in block.payloads()] == [2000, 2000]
    assert block.segment == str(reader.segments("work")[0])


def test_a_live_segment_is_read_up_to_what_is_synced_and_then_on() -> None:
    storage = disk()
    journal = write(storage, range(3))
    reader = reader_of(storage)
    end = reader.tail("work")[CHAIN]
    journal.writer("work").add(entry(3))
    journal.commit(NOW, sync=False)
    assert numbers(reader, end) == []
    journal.commit(NOW)
    assert numbers(reader, end) == [3]
    assert numbers(reader, reader.head("work")[CHAIN], end) == [0, 1, 2]


def test_every_block_that_a_reader_ever_sees_of_a_growing_file_is_whole(tmp_path: Path) -> None:
    seen: list[int] = []
    journal = Journal.open(tmp_path, group="journal", recorder=1, segment_bytes=20_000)
    for number in range(200):
        journal.writer("work").add(entry(number, size=700))
        journal.commit(NOW, sync=number % 3 == 0)
        reader = JournalReader(tmp_path)
        start = reader.head("work").get(CHAIN)
        if start is not None:
            found = numbers(reader, start)
            assert found == list(range(len(found))) and len(found) >= len(seen)
            seen = found
    assert len(seen) > 190


def test_an_abandoned_segment_ends_where_the_next_one_says() -> None:
    storage = disk()
    journal = write(storage, range(3))
    journal.writer("work").add(entry(3))
    storage.failing = lambda what, path: what == "sync" and path.suffix == ".rvqj"
    with pytest.raises(JournalError):
        journal.commit(NOW)
    storage.failing = lambda _what, _path: False
    journal.commit(NOW)
    reader = reader_of(storage)
    assert numbers(reader, reader.head("work")[CHAIN]) == [0, 1, 2, 3]
    name = reader.segments("work")[0]
    with reader.segment("work", name) as segment:
        storage.flip(segment.path, segment.head.watermark.at + 20)  # its watermark is now the one before
    assert numbers(reader, reader.head("work")[CHAIN]) == [0, 1, 2, 3]


def test_a_segment_that_is_gone_is_an_error_of_its_own() -> None:
    storage = disk()
    chained(storage)
    reader = reader_of(storage)
    head, tail = reader.head("work")[CHAIN], reader.tail("work")[CHAIN]
    names = reader.segments("work")
    storage.remove(ROOT / "label=work" / str(names[0]))
    with pytest.raises(JournalExpired, match="the segment expired, or never was here") as error:
        numbers(reader, head, tail)
    assert error.value.path.endswith(str(names[0]))
    assert numbers(reader, reader.head("work")[CHAIN])[-1] == 59
    storage.remove(ROOT / "label=work" / str(names[2]))
    with pytest.raises(JournalExpired):
        numbers(reader, reader.head("work")[CHAIN])
    with pytest.raises(JournalExpired):
        numbers(reader, reader.head("work")[CHAIN], head._replace(segment=str(names[2])))
    with pytest.raises(JournalExpired), reader.segment("work", names[0]):
        pass


def test_a_position_beyond_the_file_is_an_error_of_its_own() -> None:
    storage = disk()
    write(storage, range(3))
    reader = reader_of(storage)
    head, tail = reader.head("work")[CHAIN], reader.tail("work")[CHAIN]
    beyond = tail._replace(position=tail.position + 112)
    for start, end in ((beyond, None), (head, beyond), (beyond, beyond)):
        with pytest.raises(JournalExpired, match="replaced by an older copy"):
            numbers(reader, start, end)


def test_a_position_within_a_block_is_refused() -> None:
    storage = disk()
    write(storage, range(3))
    reader = reader_of(storage)
    head = reader.head("work")[CHAIN]
    for position in (0, HEADER_BYTES + 1):
        with pytest.raises(JournalDamaged):
            numbers(reader, head._replace(position=position))


def test_positions_of_different_recorders_are_no_range() -> None:
    storage = disk()
    write(storage, range(1), recorder=1)
    write(storage, range(1), recorder=2)
    head = reader_of(storage).head("work")
    with pytest.raises(ValueError, match="not in the chain"):
        numbers(reader_of(storage), head[CHAIN], head[f"{2:016x}"])
    with pytest.raises(ValueError, match="does not name a segment"):
        numbers(reader_of(storage), Position("x", 0, 0))


def test_no_such_folder_is_one_sentence() -> None:
    with pytest.raises(JournalError, match="no such folder"):
        JournalReader(ROOT, storage=disk())


def test_a_label_that_nobody_wrote_is_empty() -> None:
    storage = disk()
    open_journal(storage)
    reader = reader_of(storage)
    assert reader.labels() == reader.segments("x") == []
    assert reader.head("x") == reader.tail("x") == reader.seek_time("x", 0) == {}


def test_a_reader_and_its_errors_can_go_to_another_process(tmp_path: Path) -> None:
    with Journal.open(tmp_path, group="journal", recorder=1) as journal:
        journal.writer("work").add(entry(1))
        journal.commit(NOW)
    reader = pickle.loads(pickle.dumps(JournalReader(tmp_path)))
    assert numbers(reader, reader.head("work")[CHAIN]) == [1]
    for error in (JournalError("p", "w"), JournalDamaged("p", 1, "w"), JournalExpired("p", 1, "w")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.path) == (type(error), str(error), "p")


def test_the_name_of_a_segment_may_be_given_as_text_or_value() -> None:
    storage = disk()
    write(storage, range(1))
    name = SegmentName(PART, 1, 1)
    with reader_of(storage).segment("work", str(name)) as one, reader_of(storage).segment("work", name) as two:
        assert one.head == two.head
