"""What makes a folder a journal, and the words for folders that are none."""

from __future__ import annotations

import pytest

from rvq.errors import JournalDamaged, JournalError
from rvq.journal.marker import MARKER, Marker, make_marker, read_marker
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import ROOT, disk


def put(storage: MemoryStorage, text: str) -> None:
    storage.make_folder(ROOT)
    file = storage.create(ROOT / MARKER)
    file.write(0, text.encode())
    file.sync()


def test_a_marker_says_version_and_group() -> None:
    storage = disk()
    make_marker(storage, ROOT, "journal", 1)
    make_marker(storage, ROOT, "journal", 2)
    assert read_marker(storage, ROOT) == Marker(1, "journal")
    assert storage.list(ROOT) == [MARKER]


def test_a_marker_is_there_after_a_power_cut() -> None:
    for seed in range(30):
        storage = disk(seed)
        make_marker(storage, ROOT, "journal", 1)
        storage.crash()
        assert read_marker(storage, ROOT).group == "journal"


def test_another_group_is_refused_and_told_apart() -> None:
    storage = disk()
    make_marker(storage, ROOT, "journal", 1)
    with pytest.raises(JournalError, match="a journal of the group journal, not copy: use --group journal"):
        make_marker(storage, ROOT, "copy", 2)


def test_a_folder_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(JournalError, match="no such folder: give the folder of a journal"):
        read_marker(disk(), ROOT)


def test_a_folder_that_is_no_journal_is_one_sentence() -> None:
    storage = disk()
    storage.make_folder(ROOT)
    with pytest.raises(JournalError, match="not a journal, since it has no journal"):
        read_marker(storage, ROOT)


def test_a_newer_version_is_one_sentence() -> None:
    storage = disk()
    put(storage, '{"format": "rvq journal", "version": 2, "group": "journal", "more": []}')
    with pytest.raises(JournalError, match=r"newer rvq \(journal format 2; this one reads up to 1\): upgrade"):
        read_marker(storage, ROOT)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": "x"}', '{"format": "rvq journal", "version": "x"}', '"' + "x" * 70_000]
)
def test_a_marker_that_cannot_be_read_is_damage(text: str) -> None:
    storage = disk()
    put(storage, text)
    with pytest.raises(JournalDamaged, match="not the marker of a journal"):
        read_marker(storage, ROOT)
