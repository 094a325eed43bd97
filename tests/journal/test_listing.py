"""What a journal has, hour by hour."""

from __future__ import annotations

from rvq.journal import JournalReader
from rvq.journal.listing import listed
from tests.journal.samples import HOUR, NOW, PART, ROOT, disk, entry, open_journal, write


def test_an_empty_journal_has_no_hours() -> None:
    storage = disk()
    open_journal(storage).close(NOW)
    assert list(listed(JournalReader(ROOT, storage=storage))) == []


def test_each_hour_of_each_label_is_counted_from_all_its_recorders() -> None:
    storage = disk()
    first = write(storage, range(3), recorder=1)
    writer = first.writer("work")
    writer.add(entry(9, rows=5, heard_at=NOW + HOUR))
    first.commit(NOW + HOUR)
    second = write(storage, range(10, 12), recorder=2)
    second.close(NOW)
    (early, late) = listed(JournalReader(ROOT, storage=storage))
    assert (early.label, early.part, early.recorders, early.segments, early.messages) == ("work", PART, 2, 2, 5)
    assert (early.first_at, early.last_at, early.open) == (NOW, NOW + 11, False)
    assert (late.recorders, late.messages, late.open) == (1, 5, True), "that one is being written"
    assert early.bytes > 0 and early.damaged == late.damaged == 0
    first.close(NOW + HOUR)


def test_a_segment_without_a_head_is_told_apart() -> None:
    storage = disk()
    write(storage, range(3), recorder=1).close(NOW)
    write(storage, range(3), recorder=2).close(NOW)
    reader = JournalReader(ROOT, storage=storage)
    name = reader.segments("work")[0]
    file = storage.open(ROOT / "label=work" / str(name), write=True)
    file.write(0, b"????")
    file.close()
    (hour,) = listed(reader)
    assert (hour.recorders, hour.messages, hour.damaged) == (1, 3, 1)
