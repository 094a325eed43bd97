"""A journal as a whole: opening, many labels, closing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rvq.errors import BadLabel, JournalError
from rvq.journal import Journal, JournalReader, verify
from rvq.journal.layout import State
from tests.journal.samples import NOW, ROOT, disk, entry, open_journal, read

CHAIN = f"{1:016x}"


def test_all_labels_are_committed_at_once() -> None:
    storage = disk()
    journal = open_journal(storage)
    for label in ("a", "b"):
        journal.writer(label).add(entry(1))
    ends = journal.commit(NOW)
    assert set(ends) == {"a", "b"}
    assert JournalReader(ROOT, storage=storage).labels() == ["a", "b"]
    assert read(storage, "a") == read(storage, "b") == {CHAIN: [1]}


def test_a_label_has_one_writer() -> None:
    journal = open_journal(disk())
    assert journal.writer("a") is journal.writer("a")
    with pytest.raises(BadLabel):
        journal.writer("")


def test_batches_of_all_labels_are_committed_in_another_thread() -> None:
    storage = disk()
    journal = open_journal(storage)
    for label in ("a", "b"):
        journal.writer(label).add(entry(1))
    prepared = journal.prepare()
    journal.writer("a").add(entry(2))
    thread = threading.Thread(target=journal.commit, args=(NOW, prepared))
    thread.start()
    thread.join()
    assert read(storage, "a") == {CHAIN: [1]}
    journal.commit(NOW)
    assert read(storage, "a") == {CHAIN: [1, 2]}


def test_a_label_that_fails_does_not_hold_the_others() -> None:
    storage = disk()
    journal = open_journal(storage)
    for label in ("a", "b", "c"):
        journal.writer(label).add(entry(1))
    storage.failing = lambda _what, path: "label=a" in str(path)
    with pytest.raises(JournalError, match="label=a"):
        journal.commit(NOW)
    assert [journal.writer(label).synced for label in ("a", "b", "c")] == [0, 1, 1]


def test_closing_commits_and_seals() -> None:
    storage = disk()
    journal = open_journal(storage)
    journal.writer("a").add(entry(1))
    journal.close(NOW)
    reader = JournalReader(ROOT, storage=storage)
    with reader.segment("a", reader.segments("a")[0]) as segment:
        assert segment.head.watermark.state is State.SEALED
    assert read(storage, "a") == {CHAIN: [1]}


def test_leaving_the_block_lets_go_of_all_files() -> None:
    storage = disk()
    with open_journal(storage) as journal:
        journal.writer("a").add(entry(1))
        journal.commit(NOW)
    assert len(open_journal(storage, recorder=2).recovery.recovered) == 1


def test_several_recorders_write_one_journal() -> None:
    storage = disk()
    journals = [open_journal(storage, recorder=recorder) for recorder in (1, 2)]
    for number in range(4):
        for journal in journals:
            journal.writer("work").add(entry(number))
            journal.commit(NOW)
    assert read(storage) == {f"{recorder:016x}": [0, 1, 2, 3] for recorder in (1, 2)}


@pytest.mark.parametrize("recorder", [-1, 2**63])
def test_an_id_that_spark_could_not_hold_is_refused(recorder: int) -> None:
    with pytest.raises(ValueError, match="63 bits"):
        open_journal(disk(), recorder=recorder)


def test_a_path_that_cannot_be_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"cannot be made a journal .* check the path"):
        Journal.open(tmp_path / "file", group="journal", recorder=1)


def test_real_files_hold_what_was_written(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "journal"
    for recorder in (1, 2):
        with Journal.open(root, group="journal", recorder=recorder) as journal:
            for number in range(10):
                journal.writer("a/b").add(entry(number))
                journal.commit(NOW)
            assert len(journal.recovery.recovered) == recorder - 1
    verified = verify(root)
    assert verified.is_good
    assert (verified.segments, verified.entries, verified.rows) == (2, 20, 20)
    assert [finding.words for finding in verified.findings] == ["was left open: the next recorder seals it"]
