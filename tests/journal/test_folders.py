"""What segments a folder has."""

from __future__ import annotations

import pytest

from rvq.errors import JournalDamaged
from rvq.journal import SegmentName
from rvq.journal.folders import Folders
from tests.journal.samples import HOUR, NOW, PART, ROOT, disk, entry, open_journal, write

LONG = "é" * 127


def test_labels_come_from_folders_and_long_ones_from_their_segments() -> None:
    storage = disk()
    for label in ("work", "a/b", LONG):
        write(storage, range(1), label=label).close(NOW)
    storage.make_folder(ROOT / "label=empty")
    storage.make_folder(ROOT / "lost+found")
    assert Folders(storage, ROOT).labels() == ["a/b", "work", LONG]


def test_segments_come_by_hour_recorder_and_counter() -> None:
    storage = disk()
    for recorder in (2, 1):
        journal = open_journal(storage, recorder=recorder)
        for hour in range(2):
            journal.writer("work").add(entry(hour))
            journal.commit(NOW + hour * HOUR)
    folders = Folders(storage, ROOT)
    names = [
        SegmentName(PART, 1, 1),
        SegmentName(PART, 2, 1),
        SegmentName("2026092115", 1, 2),
        SegmentName("2026092115", 2, 2),
    ]
    assert folders.segments_in("label=work") == names
    assert folders.chain("work", 2) == names[1::2]
    assert folders.parts_in("label=work") == [PART, "2026092115"]
    assert folders.leftovers_of("label=work", PART) == [f"{n:016x}-00000001.rvqj.idx" for n in (1, 2)]


def test_a_segment_that_was_moved_is_refused() -> None:
    storage = disk()
    write(storage, range(1)).close(NOW)
    folder = ROOT / "label=work" / f"part={PART}"
    old = SegmentName(PART, 1, 1)
    storage.rename(folder / str(old).split("/")[1], folder / str(old._replace(counter=2)).split("/")[1])
    with pytest.raises(JournalDamaged, match="it was moved or renamed"):
        Folders(storage, ROOT).open("label=work", old._replace(counter=2))


def test_a_folder_that_is_not_there_is_empty() -> None:
    assert Folders(disk(), ROOT).labels() == []
    assert Folders(disk(), ROOT).segments_in("label=work") == []
