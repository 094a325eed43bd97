"""What was sent is known again after any death, and a torn end says nothing."""

from __future__ import annotations

from pathlib import Path

from rvq.spark.sent import ABOUT, ALL, DONE, SentFile


def reopened(path: Path) -> SentFile:
    file = SentFile(path)
    file.close()
    return file


def test_what_is_done_and_what_was_on_its_way_are_known_again(tmp_path: Path) -> None:
    file = SentFile(tmp_path / "deep" / "1.sent")
    file.write(ABOUT, [1, 2, 2])
    file.write(DONE, [1, 2, 2])
    file.write(ABOUT, [3, 4])
    file.close()
    again = reopened(tmp_path / "deep" / "1.sent")
    assert again.done == {1: 1, 2: 2}
    assert +again.about == {3: 1, 4: 1}
    assert not again.is_complete


def test_a_batch_that_is_complete_stays_so(tmp_path: Path) -> None:
    file = SentFile(tmp_path / "1.sent")
    file.write(ALL)
    file.close()
    assert reopened(tmp_path / "1.sent").is_complete


def test_a_torn_end_is_cut_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "1.sent"
    file = SentFile(path)
    file.write(DONE, [1, 2])
    whole = path.stat().st_size
    file.write(DONE, [3, 4])
    file.close()
    data = path.read_bytes()
    for size in range(whole, len(data)):
        path.write_bytes(data[:size])
        assert reopened(path).done == {1: 1, 2: 1}
        assert path.stat().st_size == whole
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    file = SentFile(path)
    file.write(DONE, [5])
    file.close()
    assert reopened(path).done == {1: 1, 2: 1, 5: 1}
