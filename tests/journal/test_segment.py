"""The segment that is being written: what is written, what is synced, how it ends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rvq.journal import segment as module
from rvq.journal.layout import FOOTER, HEADER_BYTES, Extent, Header, State
from rvq.journal.places import new_path
from rvq.journal.scan import read_head
from rvq.journal.segment import SegmentWriter
from rvq.sim.storage import MemoryStorage
from tests.journal.samples import NOW, ROOT, disk, entry

PATH = ROOT / "label=work" / "part=2026092114" / "0000000000000001-00000001.rvqj"
HEADER = Header(1, 1, NOW, 0, "work", "journal")


def made(storage: MemoryStorage) -> SegmentWriter:
    storage.make_folder(ROOT)
    for folder in ROOT.parents:
        storage.sync_folder(folder)
    return SegmentWriter.create(storage, PATH, HEADER)


def told(storage: MemoryStorage) -> tuple[State, Extent]:
    mark = read_head(storage.open(PATH), PATH).watermark
    return mark.state, mark.extent


def test_a_new_segment_says_who_made_it_and_is_empty() -> None:
    storage = disk()
    made(storage)
    head = read_head(storage.open(PATH), PATH)
    assert head.header == HEADER
    assert told(storage) == (State.OPEN, Extent())
    assert storage.list(PATH.parent) == [PATH.name, f"{PATH.name}.idx"]


def test_a_new_segment_is_locked_from_the_first_moment() -> None:
    storage = disk()
    made(storage)
    assert not storage.open(PATH, write=True).lock()


def test_a_new_segment_survives_a_power_cut() -> None:
    for seed in range(30):
        storage = disk(seed)
        made(storage)
        storage.crash()
        assert told(storage) == (State.OPEN, Extent())


def test_the_watermark_moves_with_the_sync_and_not_before() -> None:
    storage = disk()
    segment = made(storage)
    segment.append([entry(1, rows=5), entry(2, rows=0)])
    assert (segment.synced, told(storage)[1]) == (Extent(), Extent())
    assert segment.written.rows == 5
    segment.sync()
    assert segment.synced == segment.written == told(storage)[1]
    assert segment.written == Extent(HEADER_BYTES + 64 + 48 + 40, 5, 1, NOW + 1, NOW + 2)


def test_one_sync_does_for_all_that_was_written() -> None:
    storage = disk()
    segment = made(storage)
    before = storage.syncs
    for number in range(10):
        segment.append([entry(number)])
    segment.sync()
    segment.sync()
    assert storage.syncs == before + 1


def test_only_the_synced_part_before_the_end_is_let_go_of_each_byte_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_BYTES", 500)
    monkeypatch.setattr(module, "LET_GO_BYTES", 300)
    segment = made(disk())
    let_go: list[tuple[int, int]] = []
    monkeypatch.setattr(segment._file, "let_go", lambda start, end: let_go.append((start, end)), raising=False)
    for number in range(20):
        segment.append([entry(number, size=100)])
        if number % 2:
            before = segment.synced.length
            segment.sync()
            assert not let_go or let_go[-1][1] <= segment.synced.length - 500
            assert segment.synced.length > before
    assert let_go[0][0] == HEADER_BYTES and let_go[-1][1] > segment.synced.length - 500 - 300 - 400
    assert all(one[1] == other[0] and one[1] - one[0] >= 300 for one, other in pairwise(let_go))


def test_a_seal_says_how_long_the_segment_is() -> None:
    storage = disk()
    segment = made(storage)
    segment.append([entry(1)])
    segment.sync()
    segment.seal()
    state, extent = told(storage)
    assert state is State.SEALED
    assert storage.open(PATH).size() == extent.length + FOOTER.size
    assert storage.open(PATH, write=True).lock(), "a sealed segment is nobody's"


def test_half_a_write_is_gone_before_the_next_one() -> None:
    storage = disk()
    segment = made(storage)
    segment.append([entry(1)])
    size = storage.open(PATH).size()
    storage.capacity = 5000
    with pytest.raises(OSError):
        segment.append([entry(2, size=9000)])
    assert storage.open(PATH).size() > size
    storage.capacity = None
    segment.append([entry(3)])
    assert storage.open(PATH).size() == segment.written.length == size + 112


def test_an_abandoned_segment_ends_at_its_watermark_and_stays_locked() -> None:
    storage = disk()
    segment = made(storage)
    segment.append([entry(1)])
    segment.sync()
    synced = segment.synced
    segment.append([entry(2)])
    storage.failing = lambda what, _path: what == "sync"
    with pytest.raises(OSError):
        segment.sync()
    segment.abandon()
    assert told(storage) == (State.ABANDONED, synced)
    assert not storage.open(PATH, write=True).lock()
    segment.close()
    assert storage.open(PATH, write=True).lock()


def test_a_header_that_was_not_synced_never_gets_its_name() -> None:
    storage = disk()
    storage.failing = lambda what, _path: what == "sync"
    with pytest.raises(OSError):
        made(storage)
    assert storage.list(PATH.parent) == [new_path(PATH).name]


def test_one_watermark_is_always_whole_whatever_a_failed_sync_and_a_crash_do() -> None:
    for seed in range(1500):
        storage = disk(seed)
        segment = made(storage)
        for number in range(seed % 3):
            segment.append([entry(number)])
            segment.sync()
        segment.append([entry(9)])
        storage.failing = lambda what, _path: what == "sync"
        with pytest.raises(OSError):
            segment.sync()
        segment.abandon()
        storage.crash()
        assert told(storage)[1].rows <= seed % 3
