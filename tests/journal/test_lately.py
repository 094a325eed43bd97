"""What was recorded last, by sender: enough to store nothing twice, and no more."""

from __future__ import annotations

from rvq.journal import Entry, EntryKind, JournalReader
from rvq.journal.lately import LATELY_S, stored_lately
from tests.journal.samples import NOW, ROOT, disk, open_journal
from tests.journal.test_messages import frame, written


def lately(*chains: list[Entry]) -> dict[int, list[tuple[int, int]]]:
    found = stored_lately(JournalReader(ROOT, storage=written(*chains)), "work")
    return {sender: list(runs) for sender, runs in found.items()}


def test_it_is_what_any_recorder_has_whole_or_in_shares() -> None:
    one = [frame(1, 3), frame(4, 2), frame(1, 2, sender=8)]
    other = [frame(9, 4, places=range(0, 4, 2))]
    assert lately(one, other) == {7: [(1, 5), (9, 9), (11, 11)], 8: [(1, 2)]}


def test_control_and_what_cannot_be_read_have_nothing() -> None:
    odd = [Entry(EntryKind.CONTROL, 0, None, NOW, 0, b"x"), Entry(EntryKind.SHARE, 0, None, NOW, 1, b"x")]
    assert lately([*odd, frame(1, 1)]) == {7: [(1, 1)]}


def test_what_is_long_before_the_newest_entry_is_not_looked_at() -> None:
    storage = disk()
    journal = open_journal(storage)
    for first, after in ((1, 0.0), (2, 100.0), (3, 100.0 + LATELY_S / 2)):
        journal.writer("work").add(frame(first, 1, heard_at=NOW + after))
        journal.commit(NOW)
    found = stored_lately(JournalReader(ROOT, storage=storage), "work")
    assert {sender: list(runs) for sender, runs in found.items()} == {7: [(2, 3)]}


def test_a_label_that_was_never_recorded_has_nothing() -> None:
    assert stored_lately(JournalReader(ROOT, storage=written([frame(1, 1)])), "other") == {}
