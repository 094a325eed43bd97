"""The messages in a journal: read out of entries, in order, each once."""

from __future__ import annotations

import pytest

from rvq.errors import JournalDamaged
from rvq.journal import Entry, EntryKind, JournalReader, Storage, compare
from rvq.journal.messages import ids_of, messages
from rvq.wire.batch import Batch, Stamped, encode_batch
from rvq.wire.codec import read_data_header
from rvq.wire.frames import label_tag
from rvq.wire.records import make_records
from rvq.wire.stored import StoredKind, store
from tests.journal.samples import NOW, ROOT, disk, open_journal

assert EntryKind.FRAME == StoredKind.FRAME and EntryKind.SHARE == StoredKind.SHARE
assert EntryKind.TRAIN == StoredKind.TRAIN and EntryKind.FRAGMENTS == StoredKind.FRAGMENTS


def frame(first: int, count: int, *, sender: int = 7, places: range | None = None, heard_at: float = NOW) -> Entry:
    """A frame of numbered bodies, or a share of it, as a recorder enters it."""
    at = Stamped(label_tag("work"), 1, sender, first, NOW, 0, 0)
    datagram = encode_batch(at, make_records([f"{sender}/{first + n}" for n in range(count)]))
    header = read_data_header(datagram)
    kind, flags, payload = store(header, Batch(datagram, header), (datagram,), places)
    return Entry(kind, flags, None, heard_at, count if places is None else len(places), payload)


def written(*chains: list[Entry]) -> Storage:
    """A journal with a recorder for each list."""
    storage = disk()
    for recorder, entries in enumerate(chains, 1):
        journal = open_journal(storage, recorder=recorder)
        for entry in entries:
            journal.writer("work").add(entry)
        journal.close(NOW)
    return storage


def bodies(storage: Storage, since: float | None = None) -> list[str]:
    return [found.content.body for found in messages(JournalReader(ROOT, storage=storage), "work", since=since)]


def test_they_come_as_they_were_heard_whoever_recorded_them() -> None:
    shares = [frame(1, 4, places=range(start, 4, 2), heard_at=NOW + start) for start in (0, 1)]
    storage = written([shares[0], frame(5, 1, heard_at=NOW + 2)], [shares[1]])
    assert bodies(storage) == ["7/1", "7/3", "7/2", "7/4", "7/5"]


def test_what_two_recorders_have_comes_once() -> None:
    storage = written([frame(1, 3), frame(4, 2)], [frame(2, 3, heard_at=NOW + 1)])
    assert bodies(storage) == [f"7/{n}" for n in range(1, 6)]


def test_control_and_notes_are_no_messages() -> None:
    storage = written([Entry(kind, 0, None, NOW, 0, b"x") for kind in (EntryKind.CONTROL, EntryKind.NOTE, 77)])
    assert bodies(storage) == []


def test_what_was_heard_before_a_time_is_passed_over() -> None:
    storage = written([frame(n, 1, heard_at=NOW + n) for n in range(1, 5)])
    assert bodies(storage, since=NOW + 3) == ["7/3", "7/4"]


def test_an_entry_that_is_no_frame_is_damage() -> None:
    storage = written([Entry(EntryKind.FRAME, 0, None, NOW, 1, b"not a frame")])
    with pytest.raises(JournalDamaged, match="cannot be read"):
        bodies(storage)


def test_two_copies_are_compared_by_their_messages_however_they_are_cut() -> None:
    one = written([frame(1, 6), frame(1, 2, sender=8)])
    other = written([frame(1, 6, places=range(0, 6, 2))], [frame(1, 6, places=range(1, 6, 2)), frame(1, 3, sender=8)])
    compared = compare(JournalReader(ROOT, storage=one), JournalReader(ROOT, storage=other), ids_of)
    assert (compared.both, compared.only_a, compared.only_b) == (8, [], [("work", (8, 3, 3))])


def test_the_ids_of_a_share_are_runs() -> None:
    assert [*ids_of(frame(1, 6, places=range(0, 6, 2)))] == [(7, 1, 1), (7, 3, 3), (7, 5, 5)]
    assert [*ids_of(frame(3, 4))] == [(7, 3, 6)]
    assert [*ids_of(Entry(EntryKind.CONTROL, 0, None, NOW, 0, b"x"))] == []
