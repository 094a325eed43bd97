"""A disk that loses what was not synced: its faults are there, and a sync ends them."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from rvq.sim.storage import Crashed, MemoryStorage

FOLDER = Path("/disk")
FILE = FOLDER / "a"


def disk(seed: int = 1) -> MemoryStorage:
    storage = MemoryStorage(Random(seed))
    storage.make_folder(FOLDER)
    storage.sync_folder(Path("/"))
    return storage


def after_a_crash(seed: int, *, sync: bool) -> bytes | None:
    storage = disk(seed)
    file = storage.create(FILE)
    file.write(0, b"a" * 1000)
    file.write(1000, b"b" * 1000)
    if sync:
        file.sync()
        storage.sync_folder(FOLDER)
    storage.crash()
    names = storage.list(FOLDER)
    return storage.open(FILE).read(0, 9999) if names == ["a"] else None


def test_what_was_synced_is_there_after_every_crash() -> None:
    assert {after_a_crash(seed, sync=True) for seed in range(100)} == {b"a" * 1000 + b"b" * 1000}


def test_what_was_not_synced_may_be_gone_torn_or_out_of_order() -> None:
    found = {after_a_crash(seed, sync=False) for seed in range(300)}
    assert None in found
    assert b"a" * 1000 + b"b" * 1000 in found
    there = {data for data in found if data is not None}
    assert any(len(data) < 1000 for data in there), "torn"
    assert any(data[:1] == b"\0" and data.endswith(b"b") for data in there), "the second write without the first"


def test_a_death_of_the_process_alone_loses_nothing_that_was_written() -> None:
    storage = disk()
    file = storage.create(FILE)
    file.write(0, b"hello")
    assert file.lock()
    storage.kill()
    with pytest.raises(Crashed):
        file.read(0, 1)
    again = storage.open(FILE, write=True)
    assert again.read(0, 99) == b"hello"
    assert again.lock()


def test_a_process_may_die_within_a_write() -> None:
    sizes = set()
    for seed in range(100):
        storage = disk(seed)
        file = storage.create(FILE)
        storage.die_after(5)
        with pytest.raises(Crashed):
            file.write(0, bytes(100_000))
        sizes.add(storage.open(FILE).size())
    assert len(sizes) > 50


def test_a_full_disk_takes_what_fits() -> None:
    storage = disk()
    storage.capacity = 10
    file = storage.create(FILE)
    file.write(0, b"12345")
    with pytest.raises(OSError) as error:
        file.write(5, b"6789012345")
    assert error.value.errno == errno.ENOSPC
    assert file.read(0, 99) == b"1234567890"
    file.write(0, b"again")


def test_a_failed_sync_lets_go_and_the_next_one_says_all_is_well() -> None:
    lost = 0
    for seed in range(100):
        storage = disk(seed)
        file = storage.create(FILE)
        storage.sync_folder(FOLDER)
        file.write(0, b"hello")
        storage.failing = lambda what, _path: what == "sync"
        with pytest.raises(OSError):
            file.sync()
        storage.failing = lambda _what, _path: False
        assert file.read(0, 99) == b"hello"
        file.sync()
        storage.crash()
        lost += storage.open(FILE).read(0, 99) != b"hello"
    assert lost > 10


def test_a_flipped_bit_stays_over_a_crash() -> None:
    storage = disk()
    file = storage.create(FILE)
    file.write(0, b"hello")
    file.sync()
    storage.sync_folder(FOLDER)
    storage.flip(FILE, 1, 0)
    storage.crash()
    assert storage.open(FILE).read(0, 99) == b"hdllo"


def test_names_that_were_not_synced_may_be_gone_or_the_old_ones() -> None:
    seen = set()
    for seed in range(100):
        storage = disk(seed)
        storage.create(FILE).sync()
        storage.sync_folder(FOLDER)
        storage.rename(FILE, FOLDER / "b")
        storage.make_folder(FOLDER / "c")
        storage.crash()
        seen.add(tuple(storage.list(FOLDER) or ()))
    assert seen == {("a",), ("b",), ("b", "c")}


def test_one_seed_is_one_story() -> None:
    assert [after_a_crash(seed, sync=False) for seed in range(50)] == [
        after_a_crash(seed, sync=False) for seed in range(50)
    ]


def test_it_refuses_what_a_file_system_refuses() -> None:
    storage = disk()
    for call in (lambda: storage.open(FILE), lambda: storage.remove(FILE), lambda: storage.create(FOLDER / "x" / "y")):
        with pytest.raises(FileNotFoundError):
            call()
    storage.create(FILE)
    with pytest.raises(OSError):
        storage.remove_folder(FOLDER)
    with pytest.raises(OSError):
        storage.open(FILE).write(0, b"x")
    assert storage.list(FOLDER / "x") is None
