"""Files of the operating system, as the journal sees them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rvq.journal.storage import OsStorage

storage = OsStorage()


def test_bytes_come_back_from_where_they_were_put(tmp_path: Path) -> None:
    file = storage.create(tmp_path / "a")
    file.write(0, b"hello")
    file.write(10, b"there")
    file.sync()
    assert file.read(0, 100) == b"hello" + bytes(5) + b"there"
    assert (file.size(), file.read(15, 1)) == (15, b"")
    file.truncate(5)
    file.close()
    file.close()
    again = storage.open(tmp_path / "a")
    assert again.read(0, 100) == b"hello"
    again.close()


def test_many_parts_are_written_as_if_they_were_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [bytes([n % 256]) * (n % 7) for n in range(3000)]
    file = storage.create(tmp_path / "a")
    file.write_parts(3, [b"", *parts, bytearray(b"end"), memoryview(b"!")])
    wanted = bytes(3) + b"".join(parts) + b"end!"
    assert file.read(0, 100_000) == wanted
    whole = os.pwritev

    def short(fd: int, some: list[bytes], at: int) -> int:
        """As when the disk fills up, and somebody makes room."""
        return whole(fd, some[: len(some) // 2], at)

    monkeypatch.setattr(os, "pwritev", short)
    file.truncate(0)
    file.write_parts(3, [*parts, b"end!"])
    assert file.read(0, 100_000) == wanted
    file.close()


def test_what_was_let_go_of_is_there_all_the_same(tmp_path: Path) -> None:
    file = storage.create(tmp_path / "a")
    file.write(0, bytes(range(256)) * 64)
    file.sync()
    file.write(8192, b"not synced")
    file.let_go(0, 16_384)
    assert file.read(8192, 12) == b"not synced\x0a\x0b"
    assert file.read(0, 256) == bytes(range(256))
    file.close()


def test_creating_empties_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    file = storage.create(tmp_path / "a")
    assert file.size() == 0
    file.close()


def test_a_file_opened_for_reading_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    file = storage.open(tmp_path / "a")
    with pytest.raises(OSError):
        file.write(0, b"new")
    file.close()


def test_a_file_has_one_owner_until_it_is_closed(tmp_path: Path) -> None:
    one, two = storage.create(tmp_path / "a"), storage.open(tmp_path / "a", write=True)
    assert one.lock()
    assert not two.lock()
    one.close()
    assert two.lock()
    two.close()


def test_the_lock_stays_when_the_name_changes(tmp_path: Path) -> None:
    one = storage.create(tmp_path / "a")
    assert one.lock()
    storage.rename(tmp_path / "a", tmp_path / "b")
    two = storage.open(tmp_path / "b", write=True)
    assert not two.lock()
    one.close()
    two.close()


def test_folders_are_made_listed_synced_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    assert storage.list(folder) is None
    storage.make_folder(folder)
    storage.make_folder(folder)
    storage.create(folder / "b").close()
    storage.create(folder / "a").close()
    storage.sync_folder(folder)
    assert storage.list(folder) == ["a", "b"]
    assert storage.list(folder / "a") is None
    with pytest.raises(OSError):
        storage.remove_folder(folder)
    storage.remove(folder / "a")
    storage.remove(folder / "b")
    storage.remove_folder(folder)
    assert storage.list(tmp_path / "x") == []
